"""GET /v1/models and GET /v1/models/{id} (http.md §5)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from flask import request

from generated import errors
from generated.words import MODEL_LIST_OBJECT, MODEL_OBJECT
from server.api.gateway import Gateway
from server.api.views import JSON_HEADERS
from server.http.exchange import Exchange
from server.sse import compact_json

ANTHROPIC_VERSION = "anthropic-version"
"""The request header that asks for the Anthropic shape."""


class Models:
    """The one model that is served, in the shape of either dialect."""

    def __init__(self, gateway: Gateway) -> None:
        self._model = gateway.model
        self._max_tokens = gateway.settings.max_tokens

    def listing(self, exchange: Exchange) -> None:
        """GET /v1/models."""
        if self._anthropic():
            model = self._anthropic_shape()
            body = {"data": [model], "has_more": False, "first_id": model["id"], "last_id": model["id"]}
        else:
            body = {"object": MODEL_LIST_OBJECT, "data": [self._openai_shape()]}
        exchange.respond(200, JSON_HEADERS, compact_json(body))

    def single(self, exchange: Exchange, id: str) -> None:
        """GET /v1/models/{id}; ``id`` is percent-decoded."""
        if id != self._model.id:
            raise errors.not_found(path=f"/v1/models/{id}", nearest=f"/v1/models/{self._model.id}")
        body = self._anthropic_shape() if self._anthropic() else self._openai_shape()
        exchange.respond(200, JSON_HEADERS, compact_json(body))

    @staticmethod
    def _anthropic() -> bool:
        return ANTHROPIC_VERSION in request.headers

    def _openai_shape(self) -> dict[str, Any]:
        return {
            "id": self._model.id,
            "object": MODEL_OBJECT,
            "created": self._model.created,
            "owned_by": "colibri",
            "context_length": self._model.context_length,
            "max_output_tokens": self._max_tokens,
        }

    def _anthropic_shape(self) -> dict[str, Any]:
        created = datetime.fromtimestamp(self._model.created, UTC)
        return {
            "type": "model",
            "id": self._model.id,
            "display_name": self._model.id,
            "created_at": created.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
