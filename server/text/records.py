"""Which of the engine's records survive the stop filter (http.md §9.3).

A record is one DATA frame: its bytes and its numbers. The stop filter counts in code points of the decoded
text; this module knows which code points each record has a share in. Guarantees: a record survives iff none
of the characters it shares was removed; a record without bytes survives unless it lies inside a removed
range.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from server.text.utf8 import Utf8Decoder


class RecordSpans:
    """Code point spans of records, in the order of the engine. 16 bytes a record."""

    __slots__ = ("_decoder", "_ends", "_position", "_starts")

    def __init__(self, pending: bytes = b"") -> None:
        """`pending`: what the pipeline of the same generation was given."""
        self._decoder = Utf8Decoder(pending)
        self._position = 0
        self._starts = array("Q")
        self._ends = array("Q")

    def __len__(self) -> int:
        return len(self._starts)

    def add(self, payload: bytes) -> str:
        """Take the next record; return its text: `""` while it only begins a character."""
        text = self._decoder.feed(payload)
        self._starts.append(self._position)
        self._position += len(text)
        # A character still under way has the index `position`, and this record a share in it.
        shares_next = bool(payload) and bool(self._decoder.pending)
        self._ends.append(self._position + shares_next)
        return text

    def finish(self) -> str:
        """End of input: the U+FFFD of a dangling beginning; it belongs to the last record."""
        return self._decoder.finish()

    def survivors(self, removed: Sequence[tuple[int, int | None]]) -> list[bool]:
        """One flag a record. `removed`: `Pipeline.removed`, ascending ranges without overlap."""
        flags: list[bool] = []
        ranges = iter(removed)
        current = next(ranges, None)
        for start, end in zip(self._starts, self._ends, strict=True):
            while current is not None and current[1] is not None and current[1] <= start:
                current = next(ranges, None)
            if current is None:
                flags.append(True)
                continue
            first = current[0]
            flags.append(end <= first if end > start else start <= first)
        return flags
