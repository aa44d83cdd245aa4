"""Running the application for one request, in a worker thread."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from waitress.task import WSGITask

from generated import errors
from server.http.accesslog import ERROR
from server.http.encodings import IDENTITY, BadBody, BodyTooLarge, content_coding, decoded
from server.http.exchange import ENVIRON_KEY, ClientGone, Exchange, ResponseStream
from server.http.parser import RequestParser

if TYPE_CHECKING:
    from server.http.channel import Channel

_BODILESS_STATUSES: Final = frozenset({204, 304})

logger = logging.getLogger("colibri.http")


class RequestTask(WSGITask):  # type: ignore[misc]  # waitress has no types
    """The request is complete; call the application and send what it returns, unless it answered through the
    exchange.
    """

    def __init__(self, channel: Channel, exchange: Exchange, request: RequestParser) -> None:
        super().__init__(channel, request)
        self._exchange = exchange
        self._answer: tuple[int, list[tuple[str, str]]] | None = None
        self._decoded: BinaryIO | None = None

    def service(self) -> None:
        """Never raises; whatever goes wrong ends the exchange."""
        exchange = self._exchange
        try:
            if not exchange.is_over:
                self._run(exchange)
        except ClientGone:
            exchange.give_up()
        except Exception:
            self._failed(exchange)
        finally:
            self.request.close()
            if self._decoded is not None:
                self._decoded.close()

    def cancel(self) -> None:
        """The server stopped before a worker was free; closing the connection ends the exchange."""

    def _run(self, exchange: Exchange) -> None:
        if not self._decode(exchange):
            return
        environ = self.get_environment()
        body = self.channel.server.application(environ, self._start_response)
        try:
            if exchange.stream is not None:
                if not exchange.detached:
                    exchange.stream.fail()  # a no-op when the view has ended it
            elif not exchange.detached and not exchange.answered:
                if exchange.promised:
                    if exchange.client.gone.is_set():
                        raise ClientGone  # there is nobody to answer, and that is no fault
                    raise RuntimeError("the view returned the placeholder without an answer")
                self._send(exchange, body)
        finally:
            close = getattr(body, "close", None)
            if close is not None:
                close()

    def _failed(self, exchange: Exchange) -> None:
        record = exchange.record
        logger.exception("%s %s %s failed", exchange.request_id, record.method, record.path)
        if exchange.stream is not None:
            exchange.stream.fail()
        else:
            exchange.note(outcome=ERROR)
            exchange.refuse(errors.engine_error())

    def _decode(self, exchange: Exchange) -> bool:
        """Undo the Content-Encoding; False when the request was refused for its body."""
        headers = self.request.headers
        coding = content_coding(headers.pop("CONTENT_ENCODING", "")) if self.request.has_body else IDENTITY
        if self.request.has_body:
            headers["CONTENT_LENGTH"] = str(self.request.body_size)
        if coding == IDENTITY:
            return True
        server = self.channel.server
        limit = server.config.max_body_bytes
        try:
            self._decoded, size = decoded(self.request.get_body_stream(), coding, limit)
        except BodyTooLarge:
            exchange.refuse(errors.request_too_large(limit=limit), close=True)
            return False
        except BadBody:
            exchange.refuse(errors.malformed_http(reason=f"its body is not valid {coding}"))
            return False
        headers["CONTENT_LENGTH"] = str(size)
        return True

    def get_environment(self) -> dict[str, Any]:
        """The WSGI environ, with the raw path decoded as it is (no slashes merged) and the exchange."""
        environ = cast(dict[str, Any], super().get_environment())
        environ["PATH_INFO"] = self.request.path
        environ["REMOTE_ADDR"] = environ["REMOTE_HOST"] = self.channel.peer
        environ[ENVIRON_KEY] = self._exchange
        environ.pop("waitress.client_disconnected", None)
        if self._decoded is not None:
            environ["wsgi.input"] = self._decoded
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
        elif self.request.command == "HEAD" and length is not None:
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
        if self.request.command != "HEAD":
            self._write_piece(stream, first)
            for piece in rest:
                self._write_piece(stream, piece)
        stream.finish()

    @staticmethod
    def _write_piece(stream: ResponseStream, piece: bytes) -> None:
        if piece and not stream.write(piece):
            stream.wait_writable()
