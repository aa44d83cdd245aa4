"""The errors the layer answers by itself, and how any API error becomes the body of an answer (http.md §1).

The layer asks for errors by meaning and knows neither status nor code: :class:`Refusals` is filled from the
generated table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

from generated.http import ANTHROPIC_PATHS


class ApiErrorBody(Protocol):
    """The part of the generated ``ApiError`` the layer reads."""

    @property
    def status(self) -> int: ...

    @property
    def retry_after(self) -> int | None: ...

    def openai(self) -> Mapping[str, Any]: ...

    def anthropic(self, request_id: str) -> Mapping[str, Any]: ...


class Refusals(Protocol):
    """The constructors of :mod:`generated.errors` the layer uses; the module itself satisfies this."""

    def malformed_http(self, *, reason: str) -> ApiErrorBody: ...

    def invalid_api_key(self) -> ApiErrorBody: ...

    def forbidden(self, *, host: str) -> ApiErrorBody: ...

    def not_found(self, *, path: str, nearest: str) -> ApiErrorBody: ...

    def method_not_allowed(self, *, path: str, method: str, allow: str) -> ApiErrorBody: ...

    def request_timeout(self, *, seconds: float) -> ApiErrorBody: ...

    def request_too_large(self, *, limit: int) -> ApiErrorBody: ...

    def unsupported_encoding(self, *, encoding: str) -> ApiErrorBody: ...

    def too_many_connections(self) -> ApiErrorBody: ...

    def shutting_down(self) -> ApiErrorBody: ...

    def engine_error(self) -> ApiErrorBody: ...


def speaks_anthropic(method: str, path: str) -> bool:
    """True for a POST to ``/v1/messages`` and below: its errors take the Anthropic envelope."""
    return method == "POST" and any(path == root or path.startswith(f"{root}/") for root in ANTHROPIC_PATHS)


def envelope(error: ApiErrorBody, *, anthropic: bool, request_id: str) -> bytes:
    """The JSON body of ``error``: compact UTF-8, non-ASCII unescaped."""
    body = error.anthropic(request_id) if anthropic else error.openai()
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "replace")


def refusal_headers(error: ApiErrorBody) -> list[tuple[str, str]]:
    """Content type and, where the error says so, ``Retry-After``."""
    headers = [("Content-Type", "application/json")]
    if error.retry_after is not None:
        headers.append(("Retry-After", str(error.retry_after)))
    return headers
