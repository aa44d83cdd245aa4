"""Giving one complete request to whoever answers its route: a handler, or the WSGI application.

A handler begins on the I/O thread when the request is short, and a worker goes on where it would have to
wait; everything else runs in a worker."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from typing import Any, BinaryIO, Final

from generated import errors
from server.http.accesslog import ERROR
from server.http.encodings import IDENTITY, BadBody, BodyTooLarge, content_coding, decoded
from server.http.exchange import ENVIRON_KEY, ClientGone, Exchange, ResponseStream
from server.http.heads import SERVER_NAME
from server.http.parser import RequestParser
from server.http.shared import Handler, Shared, Work

_SHORT: Final = 32 * 1024  # bytes of a body that is read and checked in a moment; longer ones get a thread
_BODILESS_STATUSES: Final = frozenset({204, 304})
_UNPREFIXED: Final = frozenset({"CONTENT_TYPE", "CONTENT_LENGTH"})

logger = logging.getLogger("colibri.http")


class Task:
    """The request is complete: have it answered. Never raises; whatever goes wrong ends the exchange."""

    def __init__(self, shared: Shared, exchange: Exchange, request: RequestParser) -> None:
        self._shared = shared
        self._exchange = exchange
        self._request = request
        self._decoded: BinaryIO | None = None

    def begin(self) -> bool:
        """Do on the I/O thread what can be done without waiting; False when a worker has to go on."""
        return False

    def service(self) -> None:
        """Do the rest, in a worker."""
        raise NotImplementedError

    def cancel(self) -> None:
        """No worker is going to take it: the server has stopped, which has ended the exchange, or there is no
        thread to be had.
        """
        self._close()
        self._exchange.turn_away(errors.too_many_connections())

    def _guarded(self, step: Callable[[], None]) -> None:
        exchange = self._exchange
        try:
            if not exchange.is_over:
                step()
        except ClientGone:
            exchange.give_up()
        except Exception:
            self._failed()

    def _failed(self) -> None:
        exchange, record = self._exchange, self._exchange.record
        logger.exception("%s %s %s failed", exchange.request_id, record.method, record.path)
        stream = exchange.stream
        if stream is not None:
            stream.fail()
        elif not exchange.is_over:
            exchange.note(outcome=ERROR)
            exchange.refuse(errors.engine_error())

    def _decode(self) -> bool:
        """Undo the Content-Encoding; False when the request was refused for its body."""
        request, exchange = self._request, self._exchange
        headers = request.headers
        coding = content_coding(headers.pop("CONTENT_ENCODING", "")) if request.has_body else IDENTITY
        if request.has_body:
            headers["CONTENT_LENGTH"] = str(request.body_size)
        if coding == IDENTITY:
            return True
        limit = self._shared.config.max_body_bytes
        try:
            self._decoded, size = decoded(request.get_body_stream(), coding, limit)
        except BodyTooLarge:
            exchange.refuse(errors.request_too_large(limit=limit), close=True)
            return False
        except BadBody:
            exchange.refuse(errors.malformed_http(reason=f"its body is not valid {coding}"))
            return False
        headers["CONTENT_LENGTH"] = str(size)
        return True

    def _close(self) -> None:
        self._request.close()
        if self._decoded is not None:
            self._decoded.close()


class HandlerTask(Task):
    """A request for a handler."""

    def __init__(self, shared: Shared, exchange: Exchange, request: RequestParser, handler: Handler) -> None:
        super().__init__(shared, exchange, request)
        self._handler = handler
        self._work: Work | None = None
        self._begun = False

    def begin(self) -> bool:
        """See :class:`Task`."""
        request = self._request
        if request.body_size > _SHORT or "CONTENT_ENCODING" in request.headers:
            return False
        self._begun = True
        self._guarded(self._handle)
        self._close()
        return self._work is None

    def service(self) -> None:
        """See :class:`Task`."""
        if not self._begun:
            self._guarded(self._decode_and_handle)
            self._close()
        if self._work is not None:
            self._guarded(self._go_on)

    def _decode_and_handle(self) -> None:
        if self._decode():
            self._handle()

    def _handle(self) -> None:
        body = self._request.body_bytes() if self._decoded is None else self._decoded.read()
        self._work = self._handler(self._exchange, body)
        if self._work is None:
            self._require_answer()

    def _go_on(self) -> None:
        assert self._work is not None
        self._work()
        self._require_answer()

    def _require_answer(self) -> None:
        """Whoever has not detached the exchange has answered it, or was left by the client."""
        exchange = self._exchange
        if exchange.detached:
            return
        stream = exchange.stream
        if stream is not None:
            stream.fail()  # a no-op when the handler has ended it
        elif not exchange.answered and not exchange.is_over:
            raise RuntimeError("the handler returned without an answer")


class WsgiTask(Task):
    """A request for the application: call it and send what it returns, unless it answered through the
    exchange.
    """

    def __init__(self, shared: Shared, exchange: Exchange, request: RequestParser) -> None:
        super().__init__(shared, exchange, request)
        self._answer: tuple[int, list[tuple[str, str]]] | None = None

    def service(self) -> None:
        """See :class:`Task`."""
        self._guarded(self._run)
        self._close()

    def _run(self) -> None:
        if not self._decode():
            return
        exchange = self._exchange
        body = self._shared.application(self._environment(), self._start_response)
        try:
            stream = exchange.stream
            if stream is not None:
                if not exchange.detached:
                    stream.fail()  # a no-op when the view has ended it
            elif not exchange.detached and not exchange.answered:
                if exchange.promised:
                    if exchange.is_over:
                        raise ClientGone  # there is nobody to answer, and that is no fault
                    raise RuntimeError("the view returned the placeholder without an answer")
                self._send(exchange, body)
        finally:
            close = getattr(body, "close", None)
            if close is not None:
                close()

    def _environment(self) -> dict[str, Any]:
        """The WSGI environ, with the raw path decoded as it is (no slashes merged) and the exchange."""
        request, exchange = self._request, self._exchange
        environ: dict[str, Any] = {
            "REQUEST_METHOD": request.command,
            "SCRIPT_NAME": "",
            "PATH_INFO": request.path,
            "QUERY_STRING": request.query,
            "REQUEST_URI": request.request_uri,
            "REMOTE_ADDR": exchange.record.client,
            "SERVER_NAME": self._shared.config.host,
            "SERVER_PORT": str(self._shared.port),
            "SERVER_PROTOCOL": f"HTTP/{request.version}",
            "SERVER_SOFTWARE": SERVER_NAME,
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": request.url_scheme,
            "wsgi.input": self._decoded or request.get_body_stream(),
            "wsgi.input_terminated": True,
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
            ENVIRON_KEY: exchange,
        }
        for name, value in request.headers.items():
            environ.setdefault(name if name in _UNPREFIXED else f"HTTP_{name}", value)
        return environ

    def _start_response(
        self, status: str, headers: Sequence[tuple[str, str]], exc_info: object = None
    ) -> Callable[[bytes], object]:
        if self._answer is not None and exc_info is None:
            raise AssertionError("start_response was called twice")
        self._answer = (int(status.split(" ", 1)[0]), list(headers))
        return self._write_unsupported

    @staticmethod
    def _write_unsupported(data: bytes) -> object:
        raise NotImplementedError("the write callable of start_response is not offered; return an iterable")

    def _send(self, exchange: Exchange, body: Iterable[bytes]) -> None:
        pieces = iter(body)
        first = next(pieces, b"")  # start_response may be called as late as here
        length = self._announced_length()
        status, headers = self._answer or (0, [])
        if status in _BODILESS_STATUSES:
            exchange.respond(status, headers, b"")
        elif self._request.command == "HEAD" and length is not None:
            exchange.respond(status, headers, b"", length=length)
        elif length is not None or (isinstance(body, Sized) and len(body) <= 1):
            exchange.respond(status, headers, b"".join([first, *pieces]))
        else:
            self._stream(exchange, first, pieces)

    def _announced_length(self) -> int | None:
        if self._answer is None:
            raise AssertionError("the application did not call start_response")
        for name, value in self._answer[1]:
            if name.lower() == "content-length":
                return int(value)
        return None

    def _stream(self, exchange: Exchange, first: bytes, rest: Iterator[bytes]) -> None:
        """An answer of unknown length: chunked, at the pace of the client. An exception from ``rest`` cuts it
        off.
        """
        assert self._answer is not None
        status, headers = self._answer
        stream = exchange.open_stream(headers, status=status, content=())
        if self._request.command != "HEAD":
            self._write_piece(stream, first)
            for piece in rest:
                self._write_piece(stream, piece)
        stream.finish()

    @staticmethod
    def _write_piece(stream: ResponseStream, piece: bytes) -> None:
        if piece and not stream.write(piece):
            stream.wait_writable()


def task_for(shared: Shared, exchange: Exchange, request: RequestParser) -> Task:
    """The task of a request whose head was judged."""
    handler = shared.handlers.get((request.command, exchange.record.route))
    if handler is None:
        return WsgiTask(shared, exchange, request)
    return HandlerTask(shared, exchange, request, handler)
