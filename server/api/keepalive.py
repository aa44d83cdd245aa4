"""Keepalives: one thread that writes to committed streams on which nothing was written for a while (http.md
§15).

Guarantees: a registered stream gets a keepalive when ``interval`` seconds have passed since its last write,
never sooner and at most a fraction of the interval later; none after it was removed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

logger = logging.getLogger("colibri.api")

_GRAIN: Final = 0.05
"""Share of the interval the thread sleeps at least, so that streams whose times differ a little share a
wake-up.
"""


class Kept(Protocol):
    """A stream that wants keepalives."""

    @property
    def last_write(self) -> float:
        """Time of the last write, on the timer's clock."""

    def write_keepalive(self, silent_since: float) -> None:
        """Write one keepalive, unless something was written after ``silent_since``; never blocks."""


class KeepaliveTimer:
    """Watches any number of streams with one thread, which starts with the first of them."""

    def __init__(self, interval: float, clock: Callable[[], float] = time.monotonic) -> None:
        """``interval`` in seconds."""
        self._interval = interval
        self._clock = clock
        self._changed = threading.Condition()
        self._streams: set[Kept] = set()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._asleep = False

    def add(self, stream: Kept) -> None:
        """Start watching ``stream``."""
        with self._changed:
            if self._closed:
                return
            self._streams.add(stream)
            if self._thread is None:
                self._start_locked()
            elif self._asleep:
                self._changed.notify()

    def _start_locked(self) -> None:
        """Where the system does not let us have a thread the streams do without, until the next one comes."""
        thread = threading.Thread(target=self._run, name="keepalive", daemon=True)
        try:
            thread.start()  # and waits for the lock
        except (RuntimeError, MemoryError) as fault:
            logger.error("no thread for keepalives: %s", fault)
            return
        self._thread = thread

    def remove(self, stream: Kept) -> None:
        """Stop watching ``stream``; nothing for one that is not watched."""
        with self._changed:
            self._streams.discard(stream)

    def close(self) -> None:
        """End the thread."""
        with self._changed:
            self._closed = True
            self._streams.clear()
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._await_stream_locked()
                if self._closed:
                    return
                pause = min(stream.last_write for stream in self._streams) + self._interval - self._clock()
                # Also where one is due already: a stream stays due whose client does not read, or has left
                # while the engine is still at it, and without a pause this thread would never rest.
                self._changed.wait(max(pause, self._interval * _GRAIN))
                streams = list(self._streams)
            self.write_due(streams)

    def _await_stream_locked(self) -> None:
        """A stream that comes within the first interval wants nothing before that is over, and so need not
        wake this thread: it would compete with the first byte.
        """
        if not self._streams and not self._closed:
            self._changed.wait(self._interval)
        while not self._streams and not self._closed:
            self._asleep = True
            self._changed.wait()
            self._asleep = False

    def write_due(self, streams: list[Kept]) -> None:
        """Write to those of ``streams`` that are due."""
        oldest = self._clock() - self._interval
        for stream in streams:
            last_write = stream.last_write
            if last_write <= oldest:
                try:
                    stream.write_keepalive(last_write)
                except Exception:
                    logger.exception("a keepalive failed")
