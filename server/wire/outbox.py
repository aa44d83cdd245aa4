"""Messages on their way into the engine's stdin: in order, without blocking, every write checked (wire.md
section 2).

A message is written directly by whoever sends it as far as the pipe takes it. What is left waits here until
the reader thread finds the pipe writable. Not thread-safe: the owner holds a lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from server.wire.outgoing import Outgoing


class OutboxFailure(Exception):
    """A message could not be written: ``outgoing`` is the first one that is not completely in the pipe."""

    def __init__(self, outgoing: Outgoing, reason: str) -> None:
        super().__init__(reason)
        self.outgoing = outgoing
        self.reason = reason


class Outbox:
    """A queue before a non-blocking ``write``, which returns how many bytes it took or raises OSError."""

    def __init__(self, write: Callable[[memoryview], int], patience: float) -> None:
        """``patience``: seconds without any progress after which the pipe counts as broken."""
        self._write = write
        self._patience = patience
        self._queue: deque[tuple[Outgoing, memoryview]] = deque()
        self._progress_at = 0.0

    def __bool__(self) -> bool:
        """True while something waits to be written."""
        return bool(self._queue)

    @property
    def deadline(self) -> float | None:
        """When :meth:`check` will fail unless there is progress before; None while nothing waits."""
        return self._progress_at + self._patience if self._queue else None

    def send(self, messages: Iterable[Outgoing], now: float) -> None:
        """Queue messages and write what the pipe takes. Raises OutboxFailure."""
        was_empty = not self._queue
        self._queue.extend((message, memoryview(message.data)) for message in messages)
        if was_empty and self._queue:
            self._progress_at = now
            self.flush(now)

    def flush(self, now: float) -> None:
        """Write what the pipe takes now.

        Short writes are continued. Raises OutboxFailure when it is broken.
        """
        while self._queue:
            outgoing, rest = self._queue[0]
            try:
                written = self._write(rest)
            except OSError as error:
                raise OutboxFailure(outgoing, error.strerror or str(error)) from error
            if written == 0:
                return
            self._progress_at = now
            if written == len(rest):
                self._queue.popleft()
            else:
                self._queue[0] = (outgoing, rest[written:])

    def check(self, now: float) -> None:
        """Raises OutboxFailure when a message has waited too long without progress."""
        deadline = self.deadline
        if deadline is not None and deadline <= now:
            raise OutboxFailure(self._queue[0][0], f"no progress for {self._patience:g} s")
