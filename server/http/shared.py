"""What all connections of one server share: its settings, its loop, its workers, and who answers what."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from waitress.adjustments import Adjustments

from generated import limits
from generated.http import X_CLIENT_REQUEST_ID_HEADER, X_REQUEST_ID_HEADER
from server.http.accesslog import AccessLog
from server.http.config import HttpConfig
from server.http.eventloop import EventLoop
from server.http.exchange import Exchange
from server.http.gate import Gate
from server.http.heads import SERVER_NAME
from server.http.parser import RequestParser
from server.http.workers import WorkerPool

WsgiApplication = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

Work = Callable[[], None]
Handler = Callable[[Exchange, bytes], Work | None]
"""Answers requests of one method on one path; see the package docstring, (5)."""

_SPARE_WORKERS: Final = 8  # beyond one per connection, so that a parked view never holds up another request
_VISIBLE_ASCII: Final = re.compile(r"[\x21-\x7e]+")


class Shared:
    """See the module docstring. ``handlers`` by method and route; ``application`` has all other routes;
    ``clock`` gives the seconds the deadlines are measured in.
    """

    def __init__(
        self,
        application: WsgiApplication,
        handlers: Mapping[tuple[str, str], Handler],
        config: HttpConfig,
        clock: Callable[[], float],
    ) -> None:
        self.application = application
        self.handlers = handlers
        self.config = config
        self.clock = clock
        self.adj = Adjustments(ident=SERVER_NAME, clear_untrusted_proxy_headers=False)
        self.gate = Gate(config)
        self.loop = EventLoop()
        self.workers = WorkerPool(config.max_connections + _SPARE_WORKERS)
        self.is_shutting_down = False
        self.port = config.port  # until it is known which one 0 stands for
        self._access_log = AccessLog(as_json=config.json_log, key=config.key)
        self._observer = config.observer

    def new_parser(self) -> RequestParser:
        """A parser for the next request of a connection."""
        return RequestParser(
            self.adj, max_header_bytes=limits.HEADER_BYTES, max_body_bytes=self.config.max_body_bytes
        )

    def layer_headers(self, exchange: Exchange) -> list[tuple[str, str]]:
        """What every answer carries: its request id, the client's own, CORS."""
        headers = [(X_REQUEST_ID_HEADER, exchange.request_id)]
        if exchange.request is not None:
            received = exchange.request.headers
            echoed = received.get("X_REQUEST_ID", "")
            if len(echoed) <= limits.CLIENT_REQUEST_ID_LENGTH and _VISIBLE_ASCII.fullmatch(echoed):
                headers.append((X_CLIENT_REQUEST_ID_HEADER, echoed))
            if not exchange.from_foreign_host:
                headers += self.gate.cors.headers(received)
        return headers

    def began(self, exchange: Exchange) -> None:
        """A request was seen."""
        if self._observer is not None:
            self._observer.began(exchange.record)

    def ended(self, exchange: Exchange, outcome: str | None) -> None:
        """A request is over."""
        record = exchange.record
        record.close(outcome)
        self._access_log.write(record)
        if self._observer is not None:
            self._observer.ended(record)
