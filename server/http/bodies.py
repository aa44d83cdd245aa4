"""Receiving request bodies: where a body ends, how many bytes it has, and nothing else.

Both receivers consume exactly the bytes of their body, whatever the split of the input, and stop at the first
framing fault. They speak the protocol of waitress's receivers (``received``, ``completed``, ``error``,
``getfile``, ``getbuf``, ``len``)."""

from __future__ import annotations

import re
from io import BytesIO
from typing import BinaryIO, Final, Protocol

_CHUNK_LINE_LIMIT: Final = 1024
_TRAILER_LIMIT: Final = 8192
_CHUNK_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*(?:;[\t\x20-\x7e\x80-\xff]*)?")
_TRAILER_LINE: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*")


class Buffer(Protocol):
    """Where the bytes of a body go (a waitress buffer, or :class:`Discarded`)."""

    def append(self, data: bytes) -> None: ...

    def getfile(self) -> BinaryIO: ...

    def get(self) -> bytes: ...

    def close(self) -> None: ...

    def __len__(self) -> int: ...


class Discarded:
    """A buffer that only counts: for bodies that are drained and never looked at."""

    def __init__(self) -> None:
        self._size = 0

    def append(self, data: bytes) -> None:
        self._size += len(data)

    def getfile(self) -> BinaryIO:
        return BytesIO()

    def get(self) -> bytes:
        return b""

    def close(self) -> None:
        pass

    def __len__(self) -> int:
        return self._size


class _Body:
    """What both receivers are to waitress beside ``received``; ``error`` is the framing fault in words ("the
    request is not well-formed: ...").
    """

    error: str | None = None
    completed: bool

    def __init__(self, buffer: Buffer) -> None:
        self._buffer = buffer

    def discard(self) -> None:
        """Forget what came and drop what comes; the end of the body stays where it is."""
        self._buffer.close()
        self._buffer = Discarded()

    def getfile(self) -> BinaryIO:
        return self._buffer.getfile()

    def whole(self) -> bytes:
        """The bytes of the body so far."""
        return self._buffer.get()

    def getbuf(self) -> Buffer:
        return self._buffer

    def __len__(self) -> int:
        return len(self._buffer)


class FixedBody(_Body):
    """A body of ``size`` bytes (Content-Length)."""

    def __init__(self, size: int, buffer: Buffer) -> None:
        super().__init__(buffer)
        self.remaining = size
        self.completed = size == 0

    def received(self, data: bytes) -> int:
        """Takes what belongs to the body; returns how many bytes that was."""
        taken = data[: self.remaining]
        if taken:
            self._buffer.append(taken)
            self.remaining -= len(taken)
            self.completed = self.remaining == 0
        return len(taken)


class ChunkedBody(_Body):
    """A chunked body (RFC 9112 §7.1). Chunk extensions and trailers are read, bounded and ignored.

    ``announced`` is what the chunk sizes promise so far, so that a limit can be applied before the bytes
    arrive.
    """

    def __init__(self, buffer: Buffer) -> None:
        super().__init__(buffer)
        self.completed = False
        self.announced = 0
        self._chunk_remaining = 0
        self._line = bytearray()
        self._step = self._size_line
        self._trailer_size = 0

    def received(self, data: bytes) -> int:
        """Takes what belongs to the body; returns how many bytes that was. After a fault nothing more is
        taken.
        """
        position = 0
        while position < len(data) and not self.completed and self.error is None:
            if self._chunk_remaining:
                taken = data[position : position + self._chunk_remaining]
                self._buffer.append(taken)
                self._chunk_remaining -= len(taken)
                position += len(taken)
            else:
                position = self._take_line(data, position)
        return position

    def _take_line(self, data: bytes, position: int) -> int:
        end = data.find(b"\n", position)
        stop = len(data) if end < 0 else end + 1
        self._line += data[position:stop]
        if len(self._line) > _CHUNK_LINE_LIMIT:
            self.error = "a chunk line of its body is too long"
        elif end >= 0:
            if not self._line.endswith(b"\r\n"):
                self.error = "a chunk line of its body does not end in CRLF"
            else:
                line = bytes(self._line[:-2])
                self._line.clear()
                self._step(line)
        return stop

    def _size_line(self, line: bytes) -> None:
        found = _CHUNK_SIZE.fullmatch(line)
        if found is None:
            self.error = "a chunk of its body has no valid size"
            return
        size = int(found[1], 16)
        self.announced += size
        self._chunk_remaining = size
        self._step = self._chunk_end if size else self._trailer

    def _chunk_end(self, line: bytes) -> None:
        if line:
            self.error = "a chunk of its body is longer than its size"
        self._step = self._size_line

    def _trailer(self, line: bytes) -> None:
        self._trailer_size += len(line)
        if not line:
            self.completed = True
        elif self._trailer_size > _TRAILER_LIMIT or not _TRAILER_LINE.fullmatch(line):
            self.error = "its body ends in an invalid trailer"
