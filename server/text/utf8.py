"""Incremental UTF-8 decoding: one U+FFFD per bad sequence, never an error (http.md §15).

Guarantees: the joined output depends only on the joined input; a piece that completes no character yields
`""`; at most three bytes are held, and only while they are a proper prefix of a character.
"""

from __future__ import annotations

from codecs import utf_8_decode


class Utf8Decoder:
    """Bytes in, text out. One per request: bytes never carry over to another."""

    __slots__ = ("pending",)

    def __init__(self, pending: bytes = b"") -> None:
        """Start with `pending` bytes already held, as when a prompt ends inside a character (http.md
        §9.3)."""
        self.pending = pending
        """The held bytes: the beginning of a character that is not complete yet."""

    def feed(self, data: bytes) -> str:
        """The characters that `data` completes."""
        if self.pending:
            data = self.pending + data
            self.pending = b""
        text, consumed = utf_8_decode(data, "replace")
        if consumed != len(data):
            self.pending = data[consumed:]
        return text

    def finish(self) -> str:
        """One U+FFFD when the input ended inside a character, else `""`. The decoder is empty afterwards."""
        dangling, self.pending = self.pending, b""
        return utf_8_decode(dangling, "replace", True)[0]
