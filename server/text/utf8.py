"""Incremental UTF-8 decoding: one U+FFFD per bad sequence, never an error (http.md §15).

Guarantees: the joined output depends only on the joined input; a piece that completes no character yields `""`;
at most three bytes are held, and only while they are a proper prefix of a character.
"""

from __future__ import annotations

import codecs

_new_decoder = codecs.getincrementaldecoder("utf-8")


class Utf8Decoder:
    """Bytes in, text out. One per request: bytes never carry over to another."""

    __slots__ = ("_decoder",)

    def __init__(self, pending: bytes = b"") -> None:
        """Start with `pending` bytes already held, as when a prompt ends inside a character (http.md §9.3)."""
        self._decoder = _new_decoder("replace")
        if pending:
            self._decoder.decode(pending)

    def feed(self, data: bytes) -> str:
        """The characters that `data` completes."""
        return self._decoder.decode(data)

    def finish(self) -> str:
        """One U+FFFD when the input ended inside a character, else `""`. The decoder is empty afterwards."""
        return self._decoder.decode(b"", True)

    @property
    def pending(self) -> bytes:
        """The held bytes: the beginning of a character that is not complete yet."""
        return self._decoder.getstate()[0]
