"""From a Flask request to a handler of ours and back, the same for every endpoint.

A handler gets the exchange and answers through it; an ApiError it raises becomes the answer, in the
envelope of the path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

from flask import Flask, request

from generated.errors import ApiError
from server.api.body import read_object
from server.http.exchange import ENVIRON_KEY, ClientGone, Exchange
from server.http.refusals import speaks_anthropic

Body = dict[str, Any]
View = Callable[..., Callable[..., Iterable[bytes]]]

JSON_HEADERS = (("Content-Type", "application/json"),)


def current_exchange() -> Exchange:
    """The exchange of the request that is being handled."""
    return cast(Exchange, request.environ[ENVIRON_KEY])


def post_view(handler: Callable[[Exchange, Body], None]) -> View:
    """A view that reads the JSON body for ``handler``."""

    def view() -> Callable[..., Iterable[bytes]]:
        exchange = current_exchange()
        handler(exchange, read_object(request.get_data(cache=False)))
        return exchange.placeholder()

    view.__name__ = handler.__qualname__
    return view


def get_view(handler: Callable[..., None]) -> View:
    """A view for ``handler(exchange, **path parameters)``."""

    def view(**parameters: str) -> Callable[..., Iterable[bytes]]:
        exchange = current_exchange()
        handler(exchange, **parameters)
        return exchange.placeholder()

    view.__name__ = handler.__qualname__
    return view


def install_error_handlers(application: Flask) -> None:
    """Answer with the ApiErrors that views raise; let everything unexpected through to the HTTP layer,
    which logs it.
    """
    application.config["PROPAGATE_EXCEPTIONS"] = True
    application.register_error_handler(ApiError, _refuse)
    application.register_error_handler(ClientGone, _client_gone)


def _refuse(error: ApiError) -> Callable[..., Iterable[bytes]]:
    exchange = current_exchange()
    if speaks_anthropic(exchange.record.method, exchange.record.path):
        error = naming_its_param(error)
    exchange.note(reason=error.message)
    exchange.refuse(error)
    return exchange.placeholder()


def _client_gone(error: ClientGone) -> Callable[..., Iterable[bytes]]:
    return current_exchange().placeholder()


def naming_its_param(error: ApiError) -> ApiError:
    """The error with its param in the message: the Anthropic envelope has no other place for it."""
    param = error.param
    if param is None or param in error.message or error.anthropic_message != error.message:
        return error
    return error.relabelled(param=param, prefix=f"{param}: ")
