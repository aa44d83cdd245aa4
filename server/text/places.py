"""Where the stages of the pipeline stand between two pieces, and what one character does there.

While the stages hold little, a few values tell where they stand, and the same character at the same place
always gives out the same and leads to the same place. What the stages did once is therefore remembered and
done again without them; when a piece comes that is not known at its place, they are put where they would
stand. So an engine that sends single bytes costs one look-up a byte, whatever the bytes nearly spell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from server.text.pieces import ContentDelta, Piece, ReasoningDelta
from server.text.reasoning import ReasoningPlace, ReasoningSplitter
from server.text.stop import StopFilter, StopPlace
from server.text.tools import ToolPlace, ToolSplitter

TextPiece = type[ContentDelta] | type[ReasoningDelta]

_MOST_STEPS = 4096
"""Steps one pipeline remembers before it begins anew: a bound on its memory, far above what text and markers
need."""


@dataclass(slots=True, eq=False)
class Step:
    """What one character does at a place."""

    place: Place
    """Where the stages stand after it."""
    kind: TextPiece | None
    """The piece that comes out, if one does, and its text."""
    text: str
    into_call: str
    """What goes into the open call."""


@dataclass(slots=True, eq=False)
class Place:
    """Where the stages stand; each pipeline has one object for each of its places."""

    stop: StopPlace | None = None
    reasoning: ReasoningPlace | None = None
    tools: ToolPlace | None = None
    plain: TextPiece | None = None
    """What text becomes here in which nothing can begin that a stage waits for."""
    past: Callable[[str], bool] | None = None
    """Where such text goes inside a call or before the first of the text; False when it must be fed."""
    steps: dict[bytes | str, Step] = field(default_factory=dict)
    """The known steps: by the byte of an ASCII character, by any other character itself."""


NOWHERE = Place()
"""The stages hold more than a place tells: nothing is known here and nothing goes past them."""


class Stages:
    """The stop filter and the two splits of one pipeline, with the places they have been at."""

    __slots__ = ("_places", "_steps_left", "place", "reasoning", "stop", "tools")

    def __init__(
        self, stop: StopFilter, reasoning: ReasoningSplitter | None, tools: ToolSplitter | None
    ) -> None:
        """`reasoning` and `tools`: None where the pipeline has no such stage."""
        self.stop, self.reasoning, self.tools = stop, reasoning, tools
        self._places: dict[tuple[StopPlace, ReasoningPlace | None, ToolPlace | None], Place] = {}
        self._steps_left = _MOST_STEPS
        self.place = NOWHERE
        """Where the stages stand, or would stand had they been fed all the steps taken."""
        self._observe()

    def feed(self, text: str) -> list[Piece]:
        """Through every stage; then see where they stand."""
        pieces: list[Piece] = []
        if released := self.stop.feed(text):
            self._after_stop(released, pieces)
        self._observe()
        return pieces

    def finish(self, text: str) -> list[Piece]:
        """`text` and the end of input through every stage; the tool split is fed, its end is the caller's."""
        pieces: list[Piece] = []
        if released := (self.stop.feed(text) if text else "") + self.stop.finish():
            self._after_stop(released, pieces)
        if self.reasoning is not None:
            self._after_reasoning(self.reasoning.finish(), pieces)
        return pieces

    def learn(self, text: str) -> list[Piece]:
        """`feed` for one character, remembered as a step when it will always do the same here.

        It will when it ends neither a call nor its name, completes no stop sequence and meets no blanks that
        may have to go: all that changes is then told by the place and the text of the call.
        """
        stop, tools, before = self.stop, self.tools, self.place
        account, left, parts = stop.account, 0, 0
        if tools is not None:
            left, parts = tools.left, len(tools.call_parts)
        pieces = self.feed(text)
        after = self.place
        if after is NOWHERE or len(pieces) > 1 or stop.account != account:
            return pieces
        if tools is not None and (tools.left != left or not tools.repeats(before.tools, after.tools)):
            return pieces
        into_call = "".join(tools.call_parts[parts:]) if tools is not None else ""
        step = Step(after, None, "", into_call)
        if pieces:
            piece = pieces[0]
            if not isinstance(piece, ContentDelta | ReasoningDelta):
                return pieces
            step.kind, step.text = type(piece), piece.text
        before.steps[text.encode() if text.isascii() else text] = step
        self._steps_left -= 1
        if not self._steps_left:
            self._places.clear()
            self._steps_left = _MOST_STEPS
        return pieces

    def _observe(self) -> None:
        stop, reasoning, tools = self.stop.place, self.reasoning, self.tools
        if stop is None:
            self.place = NOWHERE
            return
        key = (
            stop,
            reasoning.place if reasoning is not None else None,
            tools.place if tools is not None else None,
        )
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = Place(*key)
            self._open_ways_past(place)
        self.place = place

    def catch_up(self, passed: int) -> None:
        """Put the stages where the steps taken have led; `passed` code points went past them."""
        place = self.place
        self.stop.skip(passed)
        if place is NOWHERE:
            return
        assert place.stop is not None
        self.stop.stand(place.stop)
        if self.reasoning is not None and place.reasoning is not None:
            self.reasoning.stand(place.reasoning)
        if self.tools is not None and place.tools is not None:
            self.tools.stand(place.tools)

    def _open_ways_past(self, place: Place) -> None:
        reasoning, tools = self.reasoning, self.tools
        if self.stop.waits_for_text:
            place.past = self.stop.wait_with
        if not self.stop.idle or (reasoning is not None and reasoning.held):
            return
        if reasoning is not None and reasoning.inside:
            place.plain = ReasoningDelta
        elif tools is None or tools.idle:
            place.plain = ContentDelta
        elif tools.swallowing and not tools.held:
            place.past = tools.swallow

    def _after_stop(self, text: str, pieces: list[Piece]) -> None:
        if self.reasoning is not None:
            self._after_reasoning(self.reasoning.feed(text), pieces)
        elif self.tools is not None:
            pieces += self.tools.feed(text)
        else:
            pieces.append(ContentDelta(text))

    def _after_reasoning(self, stretches: Iterable[tuple[bool, str]], pieces: list[Piece]) -> None:
        for is_reasoning, text in stretches:
            if is_reasoning:
                pieces.append(ReasoningDelta(text))
            elif self.tools is None:
                pieces.append(ContentDelta(text))
            else:
                pieces += self.tools.feed(text)
