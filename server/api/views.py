"""From the HTTP layer to an endpoint of ours and back: pages through Flask, bodies without it.

An endpoint gets the exchange and answers through it; an ApiError it raises becomes the answer, in the
envelope of the path.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from flask import Flask, Response, request

from generated.errors import ApiError
from server.api.body import read_object
from server.api.refusal import refuse
from server.http.exchange import ENVIRON_KEY, ClientGone, Exchange
from server.http.shared import Handler, Work

Body = dict[str, Any]
BodyEndpoint = Callable[[Exchange, Body], Work | None]
"""Answers a request with a JSON body, or returns the work that will, where that has to wait."""
View = Callable[..., Response]

JSON_HEADERS = (("Content-Type", "application/json"),)


def current_exchange() -> Exchange:
    """The exchange of the request that is being handled."""
    return cast(Exchange, request.environ[ENVIRON_KEY])


def body_handler(endpoint: BodyEndpoint) -> Handler:
    """A handler of the HTTP layer that reads the JSON body for ``endpoint``."""

    def handle(exchange: Exchange, body: bytes) -> Work | None:
        try:
            work = endpoint(exchange, read_object(body))
        except ApiError as error:
            refuse(exchange, error)
            return None
        return None if work is None else _refusing(exchange, work)

    return handle


def perform(work: Work | None) -> None:
    """Go on with what an endpoint left to do; only where waiting is allowed."""
    if work is not None:
        work()


def _refusing(exchange: Exchange, work: Work) -> Work:
    def run() -> None:
        try:
            work()
        except ApiError as error:
            refuse(exchange, error)

    return run


def get_view(handler: Callable[..., None]) -> View:
    """A view for ``handler(exchange, **path parameters)``."""

    def view(**parameters: str) -> Response:
        exchange = current_exchange()
        handler(exchange, **parameters)
        return _answered(exchange)

    view.__name__ = handler.__qualname__
    return view


def install_error_handlers(application: Flask) -> None:
    """Answer with the ApiErrors that views raise; let everything unexpected through to the HTTP layer,
    which logs it.
    """
    application.config["PROPAGATE_EXCEPTIONS"] = True
    application.register_error_handler(ApiError, _refuse)
    application.register_error_handler(ClientGone, _client_gone)


def _refuse(error: ApiError) -> Response:
    exchange = current_exchange()
    refuse(exchange, error)
    return _answered(exchange)


def _client_gone(error: ClientGone) -> Response:
    return _answered(current_exchange())


class _Nothing(Response):
    """What Flask runs for an exchange that is answered already, or going to be: nothing."""

    def __call__(self, environ: object, start_response: object) -> tuple[bytes, ...]:
        return ()


_NOTHING = _Nothing(status=204)


def _answered(exchange: Exchange) -> Response:
    """What a view returns when the exchange is answered already, or going to be: it is not looked at.

    Stands for ``exchange.placeholder()``, which Flask would have to run to make a response of it.
    """
    exchange.promised = True
    return _NOTHING
