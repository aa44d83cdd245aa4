"""One connection: its socket, its phase, its output.

A connection is always in one :class:`Phase` and has at most one open exchange. The socket is read and closed
on the I/O thread only; it is written from whatever thread has something to send, under the channel's lock.
"""

from __future__ import annotations

import contextlib
import logging
import select
import socket
import struct
import threading
from collections.abc import Callable, Sequence
from typing import Final

from generated.errors import ApiError
from server.http.eventloop import GONE, HANG_UP, READ, WRITE
from server.http.exchange import Exchange
from server.http.heads import Framing, Head, build_head
from server.http.output import Broken, Output
from server.http.phase import Phase
from server.http.reading import RequestReader
from server.http.shared import Shared

logger = logging.getLogger("colibri.http")

LINGER_SECONDS: Final = 10.0  # how long an answered connection is drained before it is closed
LINGER_SILENCE: Final = 2.0  # and how long it may be silent meanwhile
_READ_SIZE: Final = 64 * 1024
_READS_PER_EVENT: Final = 16
_COPIED: Final = 64 * 1024  # a larger body is not copied behind its head
_RESET: Final = struct.pack("ii", 1, 0)

LEFT: Final = "the client has left"
WAS_RESET: Final = "the connection was reset"


class Channel:
    """See the module docstring. ``exchange`` is the open exchange, or None."""

    def __init__(
        self, shared: Shared, sock: socket.socket, peer: str, on_closed: Callable[[Channel], None]
    ) -> None:
        """``on_closed(channel)`` is called once, on the I/O thread."""
        self.shared = shared
        self.socket = sock
        self.peer = peer
        self.lock = threading.RLock()
        self.exchange: Exchange | None = None
        self.on_writable: Callable[[], None] | None = None
        self.given_up = False  # set under the lock
        self.counted = True  # towards the connection caps
        self.phase = Phase.READING  # changed under the lock
        self._fd = sock.fileno()
        self._output = Output(sock)
        self._on_closed = on_closed
        self._reader = RequestReader(shared, self)
        self._interest = READ | GONE
        self._half_closed = False
        self._close_after = False
        self._reset_after = False
        now = self.shared.clock()
        self._idle_since = now
        self._stalled_since = now
        self._linger_until = self._linger_silence_until = 0.0
        shared.loop.watch(self._fd, self, self._interest)

    # -- state -----------------------------------------------------------------------------------------------

    @property
    def pending_bytes(self) -> int:
        """Bytes of answers that the kernel has not taken yet."""
        return self._output.pending

    @property
    def is_quiet(self) -> bool:
        """Nothing would be lost by closing it: between requests, everything sent."""
        return self.phase is Phase.READING and self.exchange is None and self._reader.reading_since is None

    def enter_locked(self, phase: Phase) -> None:
        """Change the phase and with it what the loop watches. Needs the lock."""
        self.phase = phase
        self._update_interest_locked()

    def _update_interest_locked(self, *, unread: bool = False) -> None:
        """``unread``: bytes have come that are not to be read yet."""
        if self.phase is Phase.CLOSED:
            return
        interest = WRITE if self._output.pending else 0
        if self.phase is Phase.READING:
            interest |= READ | GONE
        elif self.phase is Phase.LINGERING:
            interest |= READ
        elif unread:
            interest |= GONE
        else:
            interest |= GONE | (self._interest & READ)  # most send nothing now: that saves telling the kernel
        if interest != self._interest:
            self._interest = interest
            self.shared.loop.change(self._fd, interest)

    # -- events, on the I/O thread ---------------------------------------------------------------------------

    def handle_events(self, events: int) -> None:
        """What epoll saw. A fault of ours costs this connection and no other."""
        try:
            self._handle(events)
        except Exception:
            logger.exception("closing the connection of %s after an unexpected fault", self.peer)
            self.close("unexpected fault")

    def _handle(self, events: int) -> None:
        if events & WRITE:
            self._drain()
        if events & (GONE | HANG_UP):
            if self.phase in (Phase.BUSY, Phase.FLUSHING):
                if self._has_left():
                    self.close(LEFT)
                return
            self._half_closed = True
        if self.phase in (Phase.READING, Phase.LINGERING):
            self._read()
        elif events & READ:
            self._leave_unread()

    def _leave_unread(self) -> None:
        """Bytes have come while an answer is owed: they stay with the kernel until it is complete."""
        with self.lock:
            if self.phase in (Phase.BUSY, Phase.FLUSHING):
                self._update_interest_locked(unread=True)

    def _has_left(self) -> bool:
        """Ask the socket itself: the event may be older than the request it seems to concern."""
        with self.lock:
            if self.phase is Phase.CLOSED:
                return False
            poll = select.poll()
            poll.register(self._fd, select.POLLRDHUP)
            return bool(poll.poll(0))

    def left_early(self) -> bool:
        """A request is complete: close instead of running it when its client has left meanwhile."""
        if self._half_closed and self._has_left():
            self.close(LEFT)
            return True
        return False

    def _read(self) -> None:
        for _ in range(_READS_PER_EVENT):
            try:
                data = self.socket.recv(_READ_SIZE)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                self.close(WAS_RESET)
                return
            if not data:
                if self.phase is Phase.LINGERING or not self._reader.end_of_input():
                    self.close(LEFT)
                return
            if self.phase is Phase.LINGERING:
                self._linger_silence_until = self.shared.clock() + LINGER_SILENCE
            else:
                self._reader.received(data)
            if len(data) < _READ_SIZE or not self._wants_more():
                return

    def _wants_more(self) -> bool:
        """Whether to read on without a look at the other connections: in the middle of a long body."""
        in_body = self.phase is Phase.READING and self._reader.reading_since is not None
        return in_body or self.phase is Phase.LINGERING

    def _drain(self) -> None:
        with self.lock:
            try:
                if self._output.drain():
                    self._stalled_since = self.shared.clock()
            except Broken:
                self.break_off_locked(WAS_RESET)
                return
            if not self._output.pending:
                if self.phase is Phase.FLUSHING:
                    self._flushed_locked()
                else:
                    self._update_interest_locked()
            callback = self._writable_callback_locked()
        if callback is not None:
            callback()

    def _writable_callback_locked(self) -> Callable[[], None] | None:
        stream = self.exchange.stream if self.exchange is not None else None
        if self.on_writable is None or (stream is not None and not stream.writable):
            return None
        callback, self.on_writable = self.on_writable, None
        return callback

    def refuse_connection(self, error: ApiError) -> None:
        """Over a cap: one answer, then close, without waiting for a request."""
        self._reader.refuse_connection(error)

    # -- answers, from any thread ----------------------------------------------------------------------------

    def speaks_chunked(self, exchange: Exchange) -> bool:
        """Whether a body of unknown length can be sent in chunks."""
        return exchange.request is not None and exchange.request.version == "1.1"

    def head(
        self,
        exchange: Exchange,
        status: int,
        headers: Sequence[tuple[str, str]],
        framing: Framing,
        close: bool,
        length: int,
    ) -> Head:
        """The head of an answer with everything the layer adds. Raises ValueError for unsendable headers."""
        request = exchange.request
        parsed = request is not None and request.head_finished and request.fault is None
        may_go_on = parsed and request is not None and request.keep_alive
        return build_head(
            status,
            headers,
            self.shared.layer_headers(exchange),
            version=request.version if request is not None and parsed else "1.1",
            method=request.command if request is not None else "",
            framing=framing,
            length=length,
            keep_alive=may_go_on and not close and not self.shared.is_shutting_down,
            asked_keep_alive=request is not None and request.asked_keep_alive,
        )

    def ended(self, exchange: Exchange, outcome: str | None) -> None:
        """The exchange is over; whatever is left to send needs it no more."""
        self.shared.ended(exchange, outcome)

    def respond(self, exchange: Exchange, head: Head, body: Sequence[bytes]) -> None:
        """Send a whole answer and, unless its request is still being drained, end the exchange. ``body``
        comes in pieces.

        The books are closed first: once the answer is sent, the client's next request may want the
        interpreter.
        """
        size = sum(map(len, body))
        with self.lock:
            if self.exchange is not exchange or exchange.answered:
                return
            exchange.answered = True
            exchange.record.status = head.status
            if not head.bodiless:
                exchange.record.bytes_sent += size
            request = self._reader.request
            # the exchange ends when the body is drained, and not now
            early = (
                self.phase is Phase.READING
                and head.keep_alive
                and request is not None
                and not request.completed
            )
            if not early:
                exchange.complete(None)
            if head.bodiless or size > _COPIED:
                self.send_locked(head.data)
                for piece in () if head.bodiless else body:
                    self.send_locked(piece)
            else:
                self.send_locked(b"".join((head.data, *body)))
            if not early:
                self.end_locked(exchange, keep_alive=head.keep_alive)

    def send_locked(self, data: bytes) -> int:
        """Send or keep ``data``; returns the bytes pending. Needs the lock.

        A broken connection is closed soon, by the I/O thread.
        """
        if self.phase is Phase.CLOSED or self.given_up:
            return 0
        pending_before = self._output.pending
        if not pending_before:
            # Before there is anything pending: the loop looks at the two without the lock, and must never see
            # bytes that have only just come beside the time of others that went long ago.
            self._stalled_since = self.shared.clock()
        try:
            pending = self._output.send(data)
        except Broken:
            self.break_off_locked(WAS_RESET)
            return 0
        if pending and not pending_before:
            self._update_interest_locked()
        return pending

    def break_off_locked(self, reason: str) -> None:
        """Give the connection up from a thread that must not close it. Needs the lock.

        Nothing more is sent: behind what was forgotten it would pass for the whole.
        """
        self.given_up = True
        self._output.clear()
        self._reset_after = True
        self.shared.loop.call_soon(lambda: self.close(reason))

    def end_locked(self, exchange: Exchange, *, keep_alive: bool, reset: bool = False) -> bool:
        """The exchange's answer is complete; False when it was over already. Needs the lock."""
        if self.exchange is not exchange:
            return False
        self.exchange = None
        self._close_after = not keep_alive or self.shared.is_shutting_down or self.given_up
        self._reset_after = reset or self.given_up
        self.phase = Phase.FLUSHING
        if self._output.pending:
            self._update_interest_locked()
        else:
            self._flushed_locked()
        return True

    def _flushed_locked(self) -> None:
        """The last byte of an answer is with the kernel."""
        if self._close_after:
            self._part_locked()
            return
        self._idle_since = self.shared.clock()
        if self._reader.behind:
            self.resume_soon_locked()
        else:
            self.enter_locked(Phase.READING)

    def resume_soon_locked(self) -> None:
        """Go on with the bytes that are behind, after a look at the other connections. Needs the lock."""
        self.enter_locked(Phase.FLUSHING)  # READING would let the loop read newer bytes first
        self.shared.loop.call_soon(self._resume)

    def _resume(self) -> None:
        with self.lock:
            if self.phase is not Phase.FLUSHING or self.exchange is not None:
                return
            data, self._reader.behind = self._reader.behind, b""
            self.enter_locked(Phase.READING)
        self._reader.received(data)

    def _part_locked(self) -> None:
        """Say that nothing more comes, then throw away what the client still sends.

        Closing now could reset the answer away before the client has read it.
        """
        if not self._reset_after:
            now = self.shared.clock()
            self._linger_until = now + LINGER_SECONDS
            self._linger_silence_until = now + LINGER_SILENCE
            self._reader.forget()
            with contextlib.suppress(OSError):
                self.socket.shutdown(socket.SHUT_WR)
                self.enter_locked(Phase.LINGERING)
                return
        self.shared.loop.call_soon(lambda: self.close(None))

    # -- time and the end, on the I/O thread -----------------------------------------------------------------

    def check_deadlines(self, now: float) -> None:
        """Called a few times a second at most."""
        config = self.shared.config
        if self._output.pending and now - self._stalled_since > config.write_stall:  # in this order
            self._reset_after = True
            self.close("the client stopped reading")
        elif self.phase is Phase.LINGERING:
            if now > self._linger_until or now > self._linger_silence_until:
                self.close(None)
        elif self.phase is Phase.READING:
            since = self._reader.reading_since
            if since is None:
                if now - self._idle_since > config.idle_timeout:
                    self.close(None)
            elif now - since > config.read_deadline and not self._reader.too_slow(config.read_deadline):
                self.close("no request line in time")

    def close(self, reason: str | None) -> None:
        """Close the socket; an open exchange ends as cancelled."""
        with self.lock:
            if self.phase is Phase.CLOSED:
                return
            self.phase = Phase.CLOSED
            exchange, self.exchange = self.exchange, None
            callback, self.on_writable = self.on_writable, None
            self._output.clear()
            self._reader.forget()
            self.shared.loop.forget(self._fd)
            if self._reset_after:
                with contextlib.suppress(OSError):  # reset by the other side already
                    self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self.socket.close()
        self._on_closed(self)
        if exchange is not None:
            if exchange.answered and exchange.stream is None:
                exchange.complete(None)  # refused at its head; only the rest of its body was missing
            else:
                exchange.client_left(reason)
        if callback is not None:
            callback()
