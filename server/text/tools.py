"""Tool calls in the answer, in the GLM syntax (http.md §10).

    <tool_call>NAME<arg_key>K</arg_key><arg_value>V</arg_value>...</tool_call>

Guarantees, for any splitting of the same input: each call comes out once, at its closing tag; text around
calls is released as it arrives, except for a suffix that is a proper prefix of the opening tag. After an
opening tag text is held only while it can still become a call. Nothing is lost: what does not become a call
is content, markers included. Time is linear in the input.

What is a call. Blanks may stand between the parts. The block ends at the first closing tag. NAME alone, or
NAME followed by arguments, is a call for any name; NAME followed by anything else only when the client
declared the name, since prose mentions the marker too. A second opening tag before the first argument makes
the first one prose. Only complete argument pairs count; of a key given twice the last value is taken.

A last call without closing tag: a half-written closing tag is dropped, then it is a call iff it holds a
complete pair or is exactly a declared name.

With `salvage` a recognised call without arguments gives the text after its name, freed of whole keys, of
argument tags and of one pair of parentheses, to the tool's primary parameter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from generated import markup
from server.text.arguments import ToolSignature, arguments_json
from server.text.pieces import ContentDelta, ToolCall

AnswerPiece = ContentDelta | ToolCall

OPEN, CLOSE = markup.GLM_CALL_OPEN, markup.GLM_CALL_CLOSE
_KEY_OPEN, _KEY_CLOSE = markup.GLM_ARGUMENT_KEY_OPEN, markup.GLM_ARGUMENT_KEY_CLOSE
_VALUE_OPEN, _VALUE_CLOSE = markup.GLM_ARGUMENT_VALUE_OPEN, markup.GLM_ARGUMENT_VALUE_CLOSE

_AFTER_NAME = (_KEY_OPEN, CLOSE)
TAGS = (OPEN, CLOSE, _KEY_OPEN)


def _proper_prefixes(tags: Iterable[str]) -> frozenset[str]:
    return frozenset(tag[:length] for tag in tags for length in range(1, len(tag)))


def _any_of(texts: Iterable[str]) -> str:
    """The pattern of any of the texts, the first that fits; blanks and `#` are safe in a verbose one."""
    return f"(?:{'|'.join(map(re.escape, texts))})"


_OPEN_PREFIXES = _proper_prefixes((OPEN,))
_CLOSE_PREFIXES = _proper_prefixes((CLOSE,))
_HEAD_PREFIXES = _proper_prefixes(TAGS)
_match_name = re.compile(r"[A-Za-z0-9_.\-]*").match
_match_blanks = re.compile(r"\s*").match
_find_before_arguments = re.compile(_any_of(TAGS)).search
_remove_argument_tags = re.compile(
    rf"{re.escape(_KEY_OPEN)}[^<]*{re.escape(_KEY_CLOSE)}"
    rf"|{_any_of((_KEY_OPEN, _KEY_CLOSE, _VALUE_OPEN, _VALUE_CLOSE))}"
).sub
_LONGEST_TAG = len(CLOSE)

# An opening tag that is a call, or may become one with more input: for any name when the group `strict`
# matched, else only for a declared name. Without the group `name` the tag is the end of the input.
_find_candidates = re.compile(
    rf"""{re.escape(OPEN)}\s*+(?:\Z|(?P<name>[A-Za-z0-9_.\-]++)(?:
        (?P<strict>\s*+(?:\Z|{_any_of(_AFTER_NAME)}
            |{_any_of(sorted(_proper_prefixes(_AFTER_NAME), key=len, reverse=True))}\Z))
        |[^<]*+(?:(?!{_any_of(TAGS)})<[^<]*+)*+(?!{re.escape(OPEN)})))""",
    re.VERBOSE,
).finditer


ToolPlace = tuple[Callable[[str, int, list[AnswerPiece]], int], str]
"""What tells what a `ToolSplitter` does next, within one call: its stage and `held`."""


class ToolSplitter:
    """Answer text in, `ContentDelta` and `ToolCall` pieces out."""

    __slots__ = (
        "_salvage",
        "_signatures",
        "_stage",
        "call_parts",
        "calls",
        "held",
        "inside_call",
        "left",
    )

    def __init__(self, tools: Iterable[ToolSignature], salvage: bool = False) -> None:
        """`tools`: the tools offered to the model; `salvage`: COLI_TOOL_SALVAGE."""
        self._signatures = {tool.name: tool for tool in tools}
        self._salvage = salvage
        self.inside_call = False
        """True while a call is open that may still be completed."""
        self.calls = 0
        """Calls given out so far."""
        self.left = 0
        """Calls left so far: given out or, since they were none, released as text."""
        self._stage: Callable[[str, int, list[AnswerPiece]], int] = self._outside
        self.held = ""
        """What the stage could not settle: a proper prefix of a tag."""
        self.call_parts: list[str] = []
        """Settled text of the open call, without its opening tag."""

    @property
    def idle(self) -> bool:
        """True when nothing is held, so that text without `<` passes unchanged."""
        return not self.held and not self.inside_call

    @property
    def place(self) -> ToolPlace:
        """Where the splitter stands."""
        return self._stage, self.held

    def stand(self, place: ToolPlace) -> None:
        """Go to a place it has been at; what led there of an open call is in `call_parts`."""
        self._stage, self.held = place
        self.inside_call = self._stage != self._outside

    def repeats(self, before: ToolPlace | None, after: ToolPlace | None) -> bool:
        """Whether a character that led from one place to the other, and left no call, always does: not where
        a name ends, since there it counts which."""
        assert before is not None and after is not None
        return before[0] != self._in_name or after[0] == self._in_name

    @property
    def swallowing(self) -> bool:
        """True where a call takes any text without `<`, so that it may go to `swallow` when nothing is
        held."""
        return self._stage in (self._declared_head, self._in_arguments)

    def swallow(self, text: str) -> bool:
        """`feed` for text without `<` while `swallowing`; True."""
        self.call_parts.append(text)
        return True

    def feed(self, text: str) -> list[AnswerPiece]:
        """The pieces that `text` settles, in order; neighbouring content is one piece."""
        pieces: list[AnswerPiece] = []
        data = text
        if self.held:
            data = self.held + text
            if not self.inside_call and data in _OPEN_PREFIXES:
                self.held = data
                return pieces
            if text == "<" and not self.inside_call:
                pieces.append(ContentDelta(self.held))
                self.held = text
                return pieces
            self.held = ""
        place = 0
        while place < len(data):
            place = self._stage(data, place, pieces)
        return pieces if len(pieces) < 2 else _merged(pieces)

    def finish(self) -> list[AnswerPiece]:
        """End of input: recover the open call or release it as content."""
        pieces: list[AnswerPiece] = []
        text, self.held = self.held, ""
        if self.inside_call:
            text = "".join((OPEN, *self.call_parts, text))
            self._leave()
            call = self._unclosed(text[len(OPEN) :])
            if call is None and (inner := text.rfind(OPEN)) > 0:
                call = self._unclosed(text[inner + len(OPEN) :])
                if call is not None:
                    pieces.append(ContentDelta(text[:inner]))
            if call is not None:
                pieces.append(call)
                text = ""
        if text:
            pieces.append(ContentDelta(text))
        return pieces

    # A stage settles data from `place` on and returns where the next stage continues. What it cannot settle
    # yet it keeps in `_held`, and returns the end of the data.

    def _outside(self, data: str, place: int, pieces: list[AnswerPiece]) -> int:
        for found in _find_candidates(data, place):
            name = found["name"]
            if name is not None and found["strict"] is None and name not in self._signatures:
                continue
            if found.start() > place:
                pieces.append(ContentDelta(data[place : found.start()]))
            start = found.start() + len(OPEN)
            end = data.find(CLOSE, start)
            if end >= 0:
                pieces.append(self._built(body := data[start:end], _pairs(body)))
                return end + len(CLOSE)
            self.inside_call = True
            self._stage = self._before_name
            return start
        end = data.rfind("<", max(place, len(data) - len(OPEN) + 1))
        if end < 0 or data[end:] not in _OPEN_PREFIXES:
            end = len(data)
        self.held = data[end:]
        if end > place:
            pieces.append(ContentDelta(data[place:end]))
        return len(data)

    def _before_name(self, data: str, place: int, pieces: list[AnswerPiece]) -> int:
        end = _end(_match_blanks(data, place))
        self.call_parts.append(data[place:end])
        if end < len(data):
            self._stage = self._in_name
        return end

    def _in_name(self, data: str, place: int, pieces: list[AnswerPiece]) -> int:
        end = _end(_match_name(data, place))
        self.call_parts.append(data[place:end])
        if end == len(data):
            return end
        name = "".join(self.call_parts).lstrip()
        if not name:
            return self._prose(end, pieces)
        self._stage = self._declared_head if name in self._signatures else self._strict_head
        return end

    def _strict_head(self, data: str, place: int, pieces: list[AnswerPiece]) -> int:
        """After a name nobody declared: blanks, then an argument or the closing tag, or it was prose."""
        end = _end(_match_blanks(data, place))
        self.call_parts.append(data[place:end])
        if data.startswith(_AFTER_NAME, end):
            self._stage = self._declared_head
            return end
        rest = data[end : end + _LONGEST_TAG]
        if any(tag.startswith(rest) for tag in _AFTER_NAME):
            self.held = rest
            return len(data)
        return self._prose(end, pieces)

    def _declared_head(self, data: str, place: int, pieces: list[AnswerPiece]) -> int:
        tag = _find_before_arguments(data, place)
        if tag is None:
            return self._hold_tail(data, place)
        self.call_parts.append(data[place : tag.start()])
        if tag.group() == OPEN:
            return self._prose(tag.start(), pieces)
        self._stage = self._in_arguments
        return tag.start()

    def _in_arguments(self, data: str, place: int, pieces: list[AnswerPiece]) -> int:
        tag = data.find(CLOSE, place)
        if tag < 0:
            return self._hold_tail(data, place)
        self.call_parts.append(data[place:tag])
        body = "".join(self.call_parts)
        self._leave()
        pieces.append(self._built(body, _pairs(body)))
        return tag + len(CLOSE)

    def _hold_tail(self, data: str, place: int) -> int:
        """Settle all but a suffix that could be the beginning of a tag."""
        end = data.rfind("<", max(place, len(data) - _LONGEST_TAG + 1))
        if end < 0 or data[end:] not in _HEAD_PREFIXES:
            end = len(data)
        self.call_parts.append(data[place:end])
        self.held = data[end:]
        return len(data)

    def _prose(self, place: int, pieces: list[AnswerPiece]) -> int:
        """The opening tag was not one: it and what was settled after it are content."""
        pieces.append(ContentDelta("".join((OPEN, *self.call_parts))))
        self._leave()
        return place

    def _leave(self) -> None:
        self.left += 1
        self.call_parts.clear()
        self.inside_call = False
        self._stage = self._outside

    def _unclosed(self, body: str) -> ToolCall | None:
        half = body.rfind("<")
        if half >= 0 and body[half:] in _CLOSE_PREFIXES:
            body = body[:half]
        if body.strip() in self._signatures:
            self.calls += 1
            return ToolCall(body.strip(), "{}")
        pairs = _pairs(body)
        head = body[: body.find(_KEY_OPEN)].strip()
        name = head[: _end(_match_name(head))]
        if pairs and name and (name == head or name in self._signatures):
            return self._built(body, pairs)
        return None

    def _built(self, body: str, pairs: dict[str, str]) -> ToolCall:
        start = _end(_match_blanks(body))
        end = _end(_match_name(body, start))
        name = body[start:end]
        signature = self._signatures.get(name)
        if self._salvage and not pairs and signature is not None and signature.primary is not None:
            bare = _remove_argument_tags("", body[end:]).strip()
            if bare.startswith("(") and bare.endswith(")"):
                bare = bare[1:-1].strip()
            if bare:
                pairs = {signature.primary: bare}
        self.calls += 1
        return ToolCall(name, arguments_json(pairs, signature))


def _end(match: re.Match[str] | None) -> int:
    """End of a match whose pattern also matches the empty string."""
    assert match is not None
    return match.end()


def _pairs(body: str) -> dict[str, str]:
    """The complete argument pairs of a call's body."""
    pairs: dict[str, str] = {}
    place = 0
    while (key_end := body.find(_KEY_CLOSE, place)) >= 0:
        key_start = body.rfind(_KEY_OPEN, place, key_end)
        place = key_end + len(_KEY_CLOSE)
        value_start = _end(_match_blanks(body, place))
        if key_start < 0 or not body.startswith(_VALUE_OPEN, value_start):
            continue
        value_start += len(_VALUE_OPEN)
        value_end = body.find(_VALUE_CLOSE, value_start)
        if value_end < 0:
            break
        pairs[body[key_start + len(_KEY_OPEN) : key_end]] = body[value_start:value_end]
        place = value_end + len(_VALUE_CLOSE)
    return pairs


def _merged(pieces: list[AnswerPiece]) -> list[AnswerPiece]:
    """Neighbouring content joined into one piece."""
    merged: list[AnswerPiece] = []
    run: list[str] = []
    for piece in pieces:
        if isinstance(piece, ContentDelta):
            run.append(piece.text)
            continue
        if run:
            merged.append(ContentDelta("".join(run)))
            run = []
        merged.append(piece)
    if run:
        merged.append(ContentDelta("".join(run)))
    return merged
