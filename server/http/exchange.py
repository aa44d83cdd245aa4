"""One request and its one answer: what a view holds, from any thread, until the answer is complete or the
client has left.

An exchange ends exactly once: by ``respond``, by the end of its stream, or because the client left. Whatever
comes after that end is ignored (``respond``, ``finish``, ``fail``) or raises :class:`ClientGone` (``write``),
so a late engine thread can never touch the next request of the same connection."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol

from generated.errors import ApiError
from generated.http import REQUEST_ID
from server.http.accesslog import CANCELLED, ERROR, AccessRecord
from server.http.heads import Framing, Head
from server.http.parser import RequestParser
from server.http.refusals import envelope, refusal_headers, speaks_anthropic
from server.ids import new_id

logger = logging.getLogger("colibri.http")

SSE_HEADERS: Final = (
    ("Content-Type", "text/event-stream; charset=utf-8"),
    ("Cache-Control", "no-cache, no-transform"),
    ("X-Accel-Buffering", "no"),
)
LAST_CHUNK: Final = b"0\r\n\r\n"
ENVIRON_KEY: Final = "colibri.exchange"

_KEEPING_UP: Final = 64 * 1024  # bytes waiting for the socket up to which a client counts as keeping up
_ABANDONED: Final = 32 * 1024 * 1024  # a stream whose client is this far behind is given up


class ClientGone(ConnectionError):
    """The client has left (or stopped reading for too long); nobody is waiting for the answer."""


class Carrier(Protocol):
    """The connection as its exchanges see it; methods ending in ``_locked`` need its lock."""

    peer: str
    lock: threading.RLock
    exchange: Exchange | None
    """The one exchange that is open; an exchange that is not this one is over."""
    on_writable: Callable[[], None] | None
    given_up: bool
    """Nothing more is sent; the I/O thread is about to close it."""

    @property
    def pending_bytes(self) -> int: ...

    def speaks_chunked(self, exchange: Exchange) -> bool: ...

    def head(
        self,
        exchange: Exchange,
        status: int,
        headers: Sequence[tuple[str, str]],
        framing: Framing,
        close: bool,
        length: int,
    ) -> Head: ...

    def respond(self, exchange: Exchange, head: Head, body: Sequence[bytes]) -> None: ...

    def send_locked(self, data: bytes) -> int: ...

    def break_off_locked(self, reason: str) -> None: ...

    def end_locked(self, exchange: Exchange, *, keep_alive: bool, reset: bool = False) -> bool: ...

    def ended(self, exchange: Exchange, outcome: str | None) -> None: ...


class ClientWatch:
    """Whether the client of one request is still there. ``is_gone`` becomes true, and ``gone`` is set, within
    100 ms of its departure, in every phase.
    """

    __slots__ = ("_callbacks", "_gone", "_lock", "is_gone")

    def __init__(self) -> None:
        self.is_gone = False
        self._gone: threading.Event | None = None
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], None]] | None = []

    @property
    def gone(self) -> threading.Event:
        """To wait for the departure."""
        with self._lock:
            if self._gone is None:
                self._gone = threading.Event()
                if self.is_gone:
                    self._gone.set()
            return self._gone

    def on_gone(self, callback: Callable[[], None]) -> None:
        """Call ``callback()`` once when the client leaves: on the I/O thread, or here and now when it has
        left already.

        Dropped without a call when the exchange ends in an answer.
        """
        with self._lock:
            if self._callbacks is not None:
                self._callbacks.append(callback)
                return
        if self.is_gone:
            callback()

    def _left(self) -> None:
        with self._lock:
            callbacks, self._callbacks = self._callbacks or [], None
            self.is_gone = True
            if self._gone is not None:
                self._gone.set()
        for callback in callbacks:
            try:
                callback()
            except Exception:
                logger.exception("a callback for a departed client failed")

    def _answered(self) -> None:
        with self._lock:
            self._callbacks = None


class Exchange:
    """See the package docstring for how a view uses it. Attributes: ``request_id``, ``client``,
    ``authorized``, ``record``.
    """

    def __init__(self, channel: Carrier, request: RequestParser | None) -> None:
        self.request_id = new_id(REQUEST_ID)
        self.client = ClientWatch()
        self.authorized = False
        self.record = AccessRecord(self.request_id, channel.peer)
        self.request = request
        self.detached = False
        self.promised = False  # the view said that it has answered or will answer through the exchange
        self.answered = False  # the answer was begun: guarded by the channel's lock
        self.from_foreign_host = False  # then no CORS header is given away
        self.stream: ResponseStream | None = None
        self._channel = channel

    @property
    def is_over(self) -> bool:
        """True once the exchange has ended, in an answer or with the client's departure."""
        return self._channel.exchange is not self

    def note(self, **fields: object) -> None:
        """Add fields to the access record; see :class:`AccessRecord`. Raises TypeError for an unknown
        field.
        """
        self.record.note(fields)

    def detach(self) -> None:
        """The answer will come from another thread; what the view returns is ignored and its worker is
        free.
        """
        self.detached = True

    @staticmethod
    def placeholder() -> Callable[..., Iterable[bytes]]:
        """An empty WSGI application for a view to return when the exchange is answered elsewhere."""
        return _placeholder

    # -- answers ---------------------------------------------------------------------------------------------

    def respond(
        self,
        status: int,
        headers: Sequence[tuple[str, str]],
        body: bytes | Sequence[bytes],
        *,
        close: bool = False,
        length: int | None = None,
    ) -> None:
        """Send a whole answer; never blocks. A no-op when the exchange is over or an answer was already
        begun.

        ``body`` may come in pieces: a large one is then sent without ever being joined. ``length`` is that of
        the body a GET would have, for a HEAD answered with an empty ``body``. Raises ValueError for a header
        that cannot be sent, before anything is sent.
        """
        pieces = (body,) if isinstance(body, bytes) else body
        length = sum(map(len, pieces)) if length is None else length
        self._channel.respond(self, self._head(status, headers, Framing.LENGTH, close, length=length), pieces)

    def refuse(self, error: ApiError, *, close: bool = False, extra: Sequence[tuple[str, str]] = ()) -> None:
        """Answer with an API error in the envelope this request's path calls for; never blocks."""
        anthropic = speaks_anthropic(self.record.method, self.record.path)
        body = envelope(error, anthropic=anthropic, request_id=self.request_id)
        self.respond(error.status, [*refusal_headers(error), *extra], body, close=close or error.close)

    def open_stream(
        self,
        headers: Sequence[tuple[str, str]] = (),
        *,
        status: int = 200,
        content: Sequence[tuple[str, str]] = SSE_HEADERS,
    ) -> ResponseStream:
        """Commit to a streamed answer; its head goes out with the first write. Raises ClientGone when the
        client has left.
        """
        framing = Framing.CHUNKED if self._channel.speaks_chunked(self) else Framing.UNTIL_CLOSE
        head = self._head(status, [*content, *headers], framing, close=False)
        with self._channel.lock:
            if self.is_over:
                raise ClientGone
            if self.answered:
                raise RuntimeError("the answer to this request was already begun")
            self.stream = stream = ResponseStream(self._channel, self, head)
            self.answered = True
            self.record.status = status
        return stream  # the attribute is the I/O thread's again, and None once the client has left

    def _head(
        self, status: int, headers: Sequence[tuple[str, str]], framing: Framing, close: bool, length: int = 0
    ) -> Head:
        return self._channel.head(self, status, headers, framing, close, length)

    # -- ends, called by the layer
    # ----------------------------------------------------------------------------------------

    def give_up(self) -> None:
        """Nobody is going to answer: close the connection unless the exchange is over."""
        with self._channel.lock:
            if not self.is_over:
                self._channel.break_off_locked("given up by the view")

    def turn_away(self, error: ApiError) -> None:
        """Nobody goes on with what was begun: answer with ``error``. Whoever waits for the client to
        leave is told that it did, and lets go of what was taken for it.
        """
        if not self.is_over:
            self.client._left()
            self.refuse(error)

    def client_left(self, reason: str | None = None) -> None:
        """The connection is gone before the answer was complete."""
        self.stream = None
        if reason is not None:
            self.record.reason = reason
        self.client._left()
        self._channel.ended(self, CANCELLED)

    def complete(self, outcome: str | None) -> None:
        """The answer is known to its last byte and about to be handed over to the socket, or was."""
        self.stream = None  # which holds the exchange: no circle shall be left
        self.client._answered()
        self._channel.ended(self, outcome)


class ResponseStream:
    """A streamed answer. Every method may be called from any thread and none but ``wait_writable`` blocks."""

    def __init__(self, channel: Carrier, exchange: Exchange, head: Head) -> None:
        self._channel = channel
        self._exchange = exchange
        self._lock = channel.lock
        self._head: bytes | None = head.data
        self._chunked = head.framing is Framing.CHUNKED
        self._keep_alive = head.keep_alive
        self._bodiless = head.bodiless
        self._record = exchange.record

    @property
    def closed(self) -> bool:
        """True after ``finish`` or ``fail`` and once the client has left or was given up."""
        return self._channel.exchange is not self._exchange or self._channel.given_up

    @property
    def writable(self) -> bool:
        """True while the client keeps up: at most 64 KiB wait for its socket."""
        return self._channel.pending_bytes <= _KEEPING_UP

    def write(self, data: bytes) -> bool:
        """Send ``data`` (one or more whole events) as one chunk; False: the client has fallen behind, see the
        package docstring.

        The data is sent from the calling thread when the socket has room and kept for the I/O thread
        otherwise. Raises ClientGone."""
        if not data:
            return self.writable
        channel = self._channel
        with self._lock:
            if channel.exchange is not self._exchange or channel.given_up:
                raise ClientGone
            pending = channel.send_locked(self._framed(data))
            if pending > _ABANDONED:
                channel.break_off_locked("the client is too far behind")
        return pending <= _KEEPING_UP

    def flush(self) -> None:
        """Send the head now, before the first event. Raises ClientGone."""
        with self._lock:
            if self.closed:
                raise ClientGone
            if self._head is not None:
                self._channel.send_locked(self._take_head())

    def on_writable(self, callback: Callable[[], None]) -> None:
        """Call ``callback()`` once when the client has caught up or left: on the I/O thread, or at once when
        that is so already.
        """
        with self._lock:
            if not self.closed and not self.writable:
                self._channel.on_writable = callback
                return
        callback()

    def wait_writable(self, timeout: float | None = None) -> bool:
        """Block until the client has caught up; False after ``timeout`` seconds. Raises ClientGone."""
        caught_up = threading.Event()
        self.on_writable(caught_up.set)
        in_time = caught_up.wait(timeout)
        if self._exchange.client.is_gone:
            raise ClientGone
        return in_time

    def finish(self, data: bytes = b"") -> None:
        """Send the last bytes and end the answer properly; a no-op on a closed stream."""
        with self._lock:
            if self.closed:
                return
            last = self._framed(data) if data else self._take_head()
            if self._chunked and not self._bodiless:
                last += LAST_CHUNK
            self._exchange.complete(None)  # before it is sent: see Channel.respond
            if last:
                self._channel.send_locked(last)
            self._channel.end_locked(self._exchange, keep_alive=self._keep_alive)

    def fail(self) -> None:
        """End the answer so that the client sees a cut transfer: no terminating chunk, connection closed. A
        no-op when closed.
        """
        with self._lock:
            if self.closed:
                return
            head = self._take_head()
            if head:
                self._channel.send_locked(head)
            # without chunks a plain end of connection would look like success
            ended = self._channel.end_locked(self._exchange, keep_alive=False, reset=not self._chunked)
        if ended:
            self._exchange.complete(ERROR)

    def _take_head(self) -> bytes:
        head, self._head = self._head or b"", None
        return head

    def _framed(self, data: bytes) -> bytes:
        """``data`` as it goes on the wire, behind the head if that is still to be sent."""
        self._record.bytes_sent += len(data)
        if self._bodiless:
            return self._take_head()
        framed = b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data
        return self._take_head() + framed if self._head is not None else framed


def _placeholder(environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
    environ[ENVIRON_KEY].promised = True
    start_response("204 No Content", [])
    return []
