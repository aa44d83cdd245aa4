"""Content-Encoding of request bodies: identity, gzip and deflate, decoded under the body limit.

The limit applies to the output and is checked while decoding, so a small body that expands without end costs
no more memory than the limit."""

from __future__ import annotations

import tempfile
import zlib
from typing import BinaryIO, Final

IDENTITY: Final = "identity"
GZIP: Final = "gzip"
DEFLATE: Final = "deflate"
_KNOWN: Final = frozenset({IDENTITY, GZIP, DEFLATE})

_PIECE: Final = 64 * 1024
_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS
_IN_MEMORY: Final = 512 * 1024
_MEMBERS_LIMIT: Final = 1024  # gzip members in one body; each costs a fresh decoder


class UnsupportedCoding(Exception):
    """The Content-Encoding named is none of ours; ``coding`` is its name."""

    def __init__(self, coding: str) -> None:
        super().__init__(coding)
        self.coding = coding


class BodyTooLarge(Exception):
    """The decoded body is larger than the limit."""


class BadBody(Exception):
    """The body is not what its Content-Encoding says."""


def content_coding(header: str) -> str:
    """The one coding of a Content-Encoding value. Raises :class:`UnsupportedCoding` for others and for more
    than one.
    """
    codings = [
        coding for part in header.split(",") if (coding := part.strip(" \t").lower()) not in ("", IDENTITY)
    ]
    if not codings:
        return IDENTITY
    if len(codings) > 1 or codings[0] not in _KNOWN:
        raise UnsupportedCoding(", ".join(codings)[:80])
    return codings[0]


def decoded(source: BinaryIO, coding: str, limit: int) -> tuple[BinaryIO, int]:
    """``source`` decoded: a file at its start, and its size in bytes.

    Raises :class:`BodyTooLarge` when the output passes ``limit`` bytes and :class:`BadBody` when the input is
    cut, corrupt or followed by something else."""
    if coding == GZIP:
        return _inflate(source, limit, _GZIP_WINDOW, members=_MEMBERS_LIMIT)
    try:
        return _inflate(source, limit, zlib.MAX_WBITS, members=1)
    except BadBody:
        source.seek(0)  # many clients send "deflate" without the zlib wrapper
        return _inflate(source, limit, -zlib.MAX_WBITS, members=1)


def _inflate(source: BinaryIO, limit: int, window: int, *, members: int) -> tuple[BinaryIO, int]:
    # closed with the request
    output: BinaryIO = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # type: ignore[assignment]  # noqa: SIM115
    size = 0
    decoder = zlib.decompressobj(window)
    pending = source.read(_PIECE)
    try:
        while pending:
            if decoder.eof:
                members -= 1
                if not members:
                    raise BadBody
                decoder = zlib.decompressobj(window)
            piece = decoder.decompress(pending, _PIECE)
            size += len(piece)
            if size > limit:
                raise BodyTooLarge
            output.write(piece)
            rest = decoder.unused_data if decoder.eof else decoder.unconsumed_tail
            pending = rest or source.read(_PIECE)
        size += _flush(decoder, output, limit - size)
    except (zlib.error, BadBody, BodyTooLarge) as fault:
        output.close()
        if isinstance(fault, zlib.error):
            raise BadBody from None
        raise
    output.seek(0)
    return output, size


def _flush(decoder: zlib._Decompress, output: BinaryIO, room: int) -> int:
    """What the decoder still holds; the last member must be complete."""
    rest = decoder.flush() if not decoder.eof else b""
    if not decoder.eof:
        raise BadBody
    if len(rest) > room:
        raise BodyTooLarge
    output.write(rest)
    return len(rest)
