"""From the bytes of one connection to exchanges: parse, judge at the end of the head, answer early or give to
the handler or the application.

Runs on the I/O thread, and so do handlers as far as they get without waiting. Bytes behind a request in
progress are kept unparsed until its answer is complete, so that answers come in order and a body is never
taken for a request line.
"""

from __future__ import annotations

from typing import Final, Protocol

from generated import errors
from server.http.bodies import FixedBody
from server.http.exchange import Carrier, Exchange
from server.http.gate import Verdict
from server.http.parser import RequestParser
from server.http.phase import Phase
from server.http.shared import Shared
from server.http.task import task_for

_ANSWERED_AT_ONCE: Final = 8  # early answers to pipelined requests before other connections have their turn
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class Connection(Carrier, Protocol):
    """The connection as its reader sees it."""

    phase: Phase

    def left_early(self) -> bool: ...

    def enter_locked(self, phase: Phase) -> None: ...

    def resume_soon_locked(self) -> None: ...


class RequestReader:
    """Reads the requests of one channel.

    ``reading_since`` is the time of the first byte of the request being read, None between requests;
    ``behind`` are the bytes that came behind the request in progress. Both are guarded by the channel's lock
    where a worker may be at work at the same time.
    """

    def __init__(self, shared: Shared, channel: Connection) -> None:
        self._shared = shared
        self._channel = channel
        self.request: RequestParser | None = None
        self.reading_since: float | None = None
        self.behind = b""

    def received(self, data: bytes) -> None:
        """Take what the socket gave."""
        channel = self._channel
        requests = 0
        while data and channel.phase is Phase.READING:
            if requests == _ANSWERED_AT_ONCE:
                with channel.lock:
                    self.behind = data
                    channel.resume_soon_locked()
                return
            if self.request is None:
                self.request = self._shared.new_parser()
            request = self.request
            taken = request.received(data)
            data = data[taken:]
            if self.reading_since is None and not request.untouched:
                self.reading_since = self._shared.clock()
            if request.fault is not None:
                self._faulty(request, request.fault)
            elif request.head_finished and not request.judged:
                request.judged = True
                self._judge(request, body_waits=bool(data))
            elif request.too_large:
                limit = self._shared.config.max_body_bytes
                self.refuse(errors.request_too_large(limit=limit))
            if request.completed and self.request is request:
                requests += 1
                if self._complete(request, data):
                    return  # from here on other threads may be ahead of us
        if channel.phase is Phase.FLUSHING:
            self.behind = data

    def end_of_input(self) -> bool:
        """The client sends no more; True when it is owed an answer about a body that was cut short."""
        request, exchange = self.request, self._channel.exchange
        if request is None or not request.head_finished or exchange is None or exchange.answered:
            return False
        self.refuse(errors.malformed_http(reason="its body is incomplete"))
        return True

    def too_slow(self, seconds: float) -> bool:
        """The read deadline has passed; True when there is at least a request line to answer."""
        request = self.request
        if request is None or not request.request_line_finished:
            return False
        if self._channel.exchange is None:
            self._open(request)
        self.refuse(errors.request_timeout(seconds=seconds))
        return True

    def forget(self) -> None:
        """Nothing that was or will be received matters any more."""
        if self.request is not None:
            self.request.close()
        self.request = None
        self.reading_since = None
        self.behind = b""

    def refuse_connection(self, error: errors.ApiError) -> None:
        """Over a cap: one answer, then close, without waiting for a request."""
        self._open(None)
        self.refuse(error)

    def refuse(self, error: errors.ApiError) -> None:
        """Answer and close; only close when the request was refused before, while its body was still
        coming.
        """
        exchange = self._channel.exchange
        assert exchange is not None
        if exchange.answered:
            self._end_early(exchange, keep_alive=False)
        else:
            exchange.refuse(error, close=True)

    # -- from head to answer or worker -----------------------------------------------------------------------

    def _open(self, request: RequestParser | None) -> Exchange:
        exchange = Exchange(self._channel, request)
        if request is not None and request.command:
            exchange.record.method = request.command
            exchange.record.path = request.raw_path
        self._channel.exchange = exchange
        self._shared.began(exchange)
        return exchange

    def _faulty(self, request: RequestParser, fault: str) -> None:
        if self._channel.exchange is None:
            self._open(request)
        self.refuse(errors.malformed_http(reason=fault))

    def _judge(self, request: RequestParser, *, body_waits: bool) -> None:
        exchange = self._open(request)
        verdict = self._shared.gate.judge(request, shutting_down=self._shared.is_shutting_down)
        if verdict.route is not None:
            exchange.record.route = verdict.route.path
        if verdict.error is not None or verdict.preflight:
            self._answer_early(request, exchange, verdict)
            return
        exchange.authorized = verdict.authorized
        if request.expects_continue and request.has_body and not body_waits:
            with self._channel.lock:
                self._channel.send_locked(CONTINUE)

    def _answer_early(self, request: RequestParser, exchange: Exchange, verdict: Verdict) -> None:
        body = request.body
        # A client that waits for 100 may or may not send its body after a refusal: only closing is safe.
        drainable = not (request.expects_continue and request.has_body) and (
            not isinstance(body, FixedBody) or body.remaining <= self._shared.config.max_body_bytes
        )
        close = verdict.closes or not drainable
        if not close:
            request.discard_body()
        exchange.from_foreign_host = verdict.empty
        if verdict.error is None:
            exchange.respond(204, [], b"", close=close)
        elif verdict.empty:
            exchange.respond(verdict.error.status, [], b"", close=close)
        else:
            exchange.refuse(verdict.error, close=close, extra=verdict.extra_headers)

    def _complete(self, request: RequestParser, behind: bytes) -> bool:
        """True when the request is the application's now; ``behind`` are the bytes that follow it."""
        channel = self._channel
        self.request = None
        self.reading_since = None
        exchange = channel.exchange
        if exchange is None or exchange.answered:  # refused at its head; the body is drained now
            request.close()
            if exchange is not None:
                self._end_early(exchange, keep_alive=not self._shared.is_shutting_down)
            return False
        if channel.left_early():
            return False
        with channel.lock:
            self.behind = behind
            channel.enter_locked(Phase.BUSY)
        task = task_for(self._shared, exchange, request)
        if not task.begin():
            self._shared.workers.add_task(task)
        return True

    def _end_early(self, exchange: Exchange, *, keep_alive: bool) -> None:
        with self._channel.lock:
            ended = self._channel.end_locked(exchange, keep_alive=keep_alive)
        if ended:
            exchange.complete(None)
