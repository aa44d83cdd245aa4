"""Bytes on their way to one socket: sent at once when there is room, kept in order otherwise."""

from __future__ import annotations

import socket
from collections import deque
from typing import Final

_JOINED: Final = 128 * 1024  # small pieces are joined up to this size before a send


class Broken(Exception):
    """The socket cannot be written to any more."""


class Output:
    """Not thread-safe: the channel's lock guards it. ``pending`` is what the kernel has not taken yet, in
    bytes.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._pieces: deque[bytes | memoryview] = deque()
        self.pending = 0

    def send(self, data: bytes) -> int:
        """Send or keep ``data``; returns ``pending``. Raises :class:`Broken`."""
        sent = 0 if self._pieces else self._try(data)
        if sent < len(data):
            self._pieces.append(memoryview(data)[sent:] if sent else data)
            self.pending += len(data) - sent
        return self.pending

    def drain(self) -> int:
        """Send what the kernel takes now; returns how many bytes that was. Raises :class:`Broken`."""
        total = 0
        while self._pieces:
            piece = self._next()
            sent = self._try(piece)
            total += sent
            self.pending -= sent
            if sent < len(piece):
                self._pieces.appendleft(memoryview(piece)[sent:])
                break
        return total

    def clear(self) -> None:
        """Forget everything."""
        self._pieces.clear()
        self.pending = 0

    def _next(self) -> bytes | memoryview:
        first = self._pieces.popleft()
        if not self._pieces or len(first) >= _JOINED:
            return first
        parts, size = [first], len(first)
        while self._pieces and size + len(self._pieces[0]) <= _JOINED:
            parts.append(self._pieces.popleft())
            size += len(parts[-1])
        return b"".join(parts)

    def _try(self, data: bytes | memoryview) -> int:
        try:
            return self._socket.send(data)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as fault:
            raise Broken(str(fault)) from None
