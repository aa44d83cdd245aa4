"""The I/O loop: epoll over waitress's dispatchers.

It replaces ``wasyncore.loop``, which asks every dispatcher twice per wake-up what it waits for and cannot
watch for a peer that has gone while nothing is to be read. Here a dispatcher says so itself, from any thread,
when its interest changes; and the departure of a client (EPOLLRDHUP) is watched by the same thread that
closes sockets. A file descriptor is closed only on that thread and new connections are accepted after all
other events of a wake-up, so an event can never reach a newer connection that was given the same number."""

from __future__ import annotations

import logging
import select
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol

READ: Final = select.EPOLLIN
WRITE: Final = select.EPOLLOUT
GONE: Final = select.EPOLLRDHUP
HANG_UP: Final = select.EPOLLHUP | select.EPOLLERR

logger = logging.getLogger("colibri.http")


class Handler(Protocol):
    """Something with a file descriptor in the loop."""

    def handle_events(self, events: int) -> None: ...


class EventLoop:
    """``run_once`` belongs to one thread; ``watch``, ``change`` and ``call_soon`` may be called from any."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._handlers: dict[int, Handler] = {}
        self._calls: deque[Callable[[], None]] = deque()
        self._wake: Callable[[], None] | None = None
        self._woken = False
        self._closing = threading.RLock()  # a signal handler may interrupt its holder
        self._thread: int | None = None
        self.last: int | None = None  # descriptor whose events are handled after all others

    def set_waker(self, fd: int, handler: Handler, wake: Callable[[], None]) -> None:
        """``wake()`` must make ``fd`` readable from any thread and from a signal handler."""
        self._wake = wake
        self.watch(fd, handler, READ)

    def watch(self, fd: int, handler: Handler, interest: int) -> None:
        """Start watching ``fd``."""
        self._handlers[fd] = handler
        self._epoll.register(fd, interest)

    def change(self, fd: int, interest: int) -> None:
        """Replace the interest in a watched ``fd``."""
        self._epoll.modify(fd, interest)

    def forget(self, fd: int) -> None:
        """Stop watching ``fd``; to be called before it is closed."""
        if self._handlers.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def call_soon(self, call: Callable[[], None]) -> None:
        """Run ``call()`` on the loop's thread, soon and in order."""
        self._calls.append(call)
        self.wake()

    def wake(self, *, from_signal: bool = False) -> None:
        """End a wait that is going on. A signal handler may interrupt the wait of its own thread, which would
        then just go on.
        """
        if from_signal or (not self._woken and threading.get_ident() != self._thread):
            with self._closing:
                if self._wake is not None:
                    self._woken = True
                    self._wake()

    def run_once(self, timeout: float) -> None:
        """Wait at most ``timeout`` seconds and handle what has happened."""
        self._thread = threading.get_ident()
        events = self._epoll.poll(0 if self._calls else timeout)
        if len(events) > 1 and self.last is not None:
            events.sort(key=self._is_last)
        for fd, flags in events:
            handler = self._handlers.get(fd)
            if handler is not None:
                self._guarded(handler.handle_events, flags)
        # Only now, when the waker's descriptor is read out: a call from another thread that comes in between
        # would have its byte read out with the others and leave the mark, and the next wait would not end.
        self._woken = False
        for _ in range(len(self._calls)):
            self._guarded(self._calls.popleft())

    def _is_last(self, event: tuple[int, int]) -> bool:
        return event[0] == self.last

    @staticmethod
    def _guarded(call: Callable[..., None], *arguments: Any) -> None:
        try:
            call(*arguments)
        except Exception:
            logger.exception("a fault in the I/O loop")

    def close(self) -> None:
        """Close the epoll descriptor; the watched ones stay open. Nobody is woken any more."""
        with self._closing:
            self._wake = None
        self._handlers.clear()
        self._epoll.close()
