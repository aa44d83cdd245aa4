"""One engine connection shared by the reader thread and the threads that submit, stop and cancel.

Guarantees: one lock acquisition per buffer read and per command; the pipe is written without blocking, by the
caller as far as it takes bytes and by the reader for the rest; events are only ever handed to the reader
thread, which is woken when another thread caused some. Nothing is delivered while the lock is held.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from generated.states import ConnectionState
from server.wire.connection import NO_DEADLINE, Connection
from server.wire.events import Event, Sink, Submission
from server.wire.inflight import Request
from server.wire.outbox import Outbox, OutboxFailure

AWAKE: Final = -NO_DEADLINE  # the reader is not in its poll: it looks at everything before it sleeps again


class Channel:
    """A :class:`Connection` and the :class:`Outbox` in front of its engine's stdin, behind one lock."""

    def __init__(
        self, connection: Connection, outbox: Outbox, wake: Callable[[], None], clock: Callable[[], float]
    ) -> None:
        self._connection = connection
        self._outbox = outbox
        self._wake = wake
        self._clock = clock
        self._lock = threading.Lock()
        self._events: list[Event] = []
        self._sleeping_until = AWAKE

    # -- any thread --------------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """True between READY and the end of the connection."""
        return self._connection.state is ConnectionState.OPEN

    @property
    def in_flight(self) -> int:
        """Requests without an end yet."""
        with self._lock:
            return self._connection.in_flight

    def submit(self, submission: Submission, sink: Sink) -> Request | None:
        """Start a request.

        None if the connection is not open, and then the sink hears nothing. Raises FieldError.
        """
        with self._lock:
            if not self.is_open:
                return None
            now = self._clock()
            request = self._connection.submit(submission, sink, now)
            self._after_command(now)
            return request

    def stop(self, request: Request) -> None:
        """See :meth:`Connection.stop`."""
        with self._lock:
            now = self._clock()
            self._connection.stop(request, now)
            self._after_command(now)

    def cancel(self, request: Request) -> None:
        """See :meth:`Connection.cancel`."""
        with self._lock:
            now = self._clock()
            self._connection.cancel(request, now)
            self._after_command(now)

    def _after_command(self, now: float) -> None:
        self._write(now)
        asleep_too_long = self._connection.deadline < self._sleeping_until
        if self._events or asleep_too_long or (self._outbox and self._sleeping_until != AWAKE):
            self._wake()

    def _write(self, now: float) -> None:
        """Send what the connection has to say, and collect the events of all that happened."""
        try:
            self._outbox.send(self._connection.take_outgoing(), now)
        except OutboxFailure as failure:
            self._connection.write_failed(failure.outgoing, failure.reason, now)
            self._connection.take_outgoing()  # CANCELs for a pipe that takes nothing any more
        self._events += self._connection.take_events()

    # -- the reader thread -------------------------------------------------------------------------------

    def before_poll(self) -> tuple[float | None, bool]:
        """How long the reader may sleep (seconds, None: for ever), and whether it should wait for room in
        stdin as well.
        """
        with self._lock:
            if self._events:
                return 0.0, False
            until = self._connection.deadline
            if self._outbox.deadline is not None:
                until = min(until, self._outbox.deadline)
            self._sleeping_until = until
            return (None if until == NO_DEADLINE else until - self._clock()), bool(self._outbox)

    def receive_data(self, data: bytes) -> list[Event]:
        """Take what one read of stdout returned; returns the events to deliver."""
        with self._lock:
            now = self._clock()
            self._connection.receive_data(data, now)
            return self._collect(now)

    def receive_eof(self) -> list[Event]:
        """Stdout is at its end."""
        return self._tell(self._connection.receive_eof)

    def ready_timed_out(self) -> list[Event]:
        """READY did not come in time."""
        return self._tell(self._connection.ready_timed_out)

    def give_up(self, reason: str) -> list[Event]:
        """The connection is of no more use, whatever its stdout may say.

        Once it has been left, by this or by anything else, no thread writes to the pipe any more: it may be
        closed.
        """
        return self._tell(lambda now: self._connection.give_up(reason, now))

    def shut_down(self) -> list[Event]:
        """Fail what is in flight, because the gateway ends."""
        return self._tell(self._connection.shut_down)

    def attend(self) -> list[Event]:
        """After every poll: write what waits, act on deadlines, collect what other threads caused."""
        with self._lock:
            self._sleeping_until = AWAKE
            now = self._clock()
            try:
                self._outbox.flush(now)
                self._outbox.check(now)
            except OutboxFailure as failure:
                self._connection.write_failed(failure.outgoing, failure.reason, now)
                self._connection.take_outgoing()
            self._connection.check(now)
            return self._collect(now)

    def _tell(self, what: Callable[[float], None]) -> list[Event]:
        with self._lock:
            now = self._clock()
            what(now)
            return self._collect(now)

    def _collect(self, now: float) -> list[Event]:
        self._write(now)
        events, self._events = self._events, []
        return events
