"""Answering a request with an API error, from any thread."""

from __future__ import annotations

from generated.errors import ApiError
from server.http.exchange import Exchange
from server.http.refusals import speaks_anthropic


def refuse(exchange: Exchange, error: ApiError) -> None:
    """Send ``error`` in the envelope of the request's path, and put its reason on the access log."""
    if speaks_anthropic(exchange.record.method, exchange.record.path):
        error = naming_its_param(error)
    exchange.note(reason=str(error.__cause__ or error.message))
    exchange.refuse(error)


def naming_its_param(error: ApiError) -> ApiError:
    """The error with its param in the message: the Anthropic envelope has no other place for it."""
    param = error.param
    if param is None or param in error.message or error.anthropic_message != error.message:
        return error
    return error.relabelled(param=param, prefix=f"{param}: ")
