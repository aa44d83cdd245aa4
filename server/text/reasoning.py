"""The reasoning split: which text is thought and which is answer (http.md §15).

Guarantees, for any splitting of the same input: text is reasoning from the start iff thinking is on, until
the first closing marker, once; every other marker, opening or closing, is removed and changes nothing;
without a closing marker everything is reasoning. Markers are looked for in the input only: text that looks
like one after a removal stays. Held back is only a suffix that is a proper prefix of a marker.
"""

from __future__ import annotations

import re

from generated import markup

OPEN = markup.GLM_REASONING_OPEN
CLOSE = markup.GLM_REASONING_CLOSE
MARKERS = (OPEN, CLOSE)
_remove_markers = re.compile(f"{re.escape(OPEN)}|{re.escape(CLOSE)}").sub
_PREFIXES = frozenset(marker[:length] for marker in MARKERS for length in range(1, len(marker)))


ReasoningPlace = tuple[bool, str]
"""All that tells what a `ReasoningSplitter` does next: `inside` and `held`."""


class ReasoningSplitter:
    """Text in, `(is_reasoning, text)` stretches out."""

    __slots__ = ("held", "inside")

    def __init__(self, inside: bool) -> None:
        """`inside`: the prompt ended with an open marker, that is, thinking is on."""
        self.inside = inside
        """True while the text is reasoning."""
        self.held = ""
        """A proper prefix of a marker, not settled yet."""

    @property
    def idle(self) -> bool:
        """True when nothing is held, so that text without `<` passes unchanged."""
        return not self.held

    @property
    def place(self) -> ReasoningPlace:
        """Where the splitter stands."""
        return self.inside, self.held

    def stand(self, place: ReasoningPlace) -> None:
        """Go to a place it has been at."""
        self.inside, self.held = place

    def feed(self, text: str) -> list[tuple[bool, str]]:
        """The non-empty stretches that `text` settles, in order."""
        data = text
        if self.held:
            data = self.held + text
            if data in _PREFIXES:
                self.held = data
                return []
            if text == "<":
                held, self.held = self.held, text
                return [(self.inside, held)]
            self.held = ""
            if "<" not in text and not data.startswith(MARKERS):
                return [(self.inside, data)]
        elif "<" not in text:
            return [(self.inside, text)] if text else []
        end = data.rfind("<", max(0, len(data) - len(CLOSE) + 1))
        if end < 0 or data[end:] not in _PREFIXES:
            end = len(data)
        self.held = data[end:]
        stretches = []
        start = 0
        if self.inside:
            start = data.find(CLOSE, 0, end)
            self.inside = start < 0
            thought = data[: end if start < 0 else start].replace(OPEN, "")
            if thought:
                stretches.append((True, thought))
        if not self.inside and (answer := _remove_markers("", data[start:end])):
            stretches.append((False, answer))
        return stretches

    def finish(self) -> list[tuple[bool, str]]:
        """End of input: the unfinished marker was text."""
        held, self.held = self.held, ""
        return [(self.inside, held)] if held else []
