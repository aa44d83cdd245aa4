# Generated from spec/protocol.yaml (target python, template python/http.py.j2). Do not edit.
# Regenerate with: python -m codegen generate

"""Facts of the HTTP API that belong to no single endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple


class IdForm(NamedTuple):
    """Form of a random id: ``prefix`` and that many random hexadecimal ``digits``."""

    prefix: str
    digits: int


class FinishReason(NamedTuple):
    """The word of each dialect for one outcome."""

    openai: str
    anthropic: str


class Outcome(StrEnum):
    """How an answer ended."""

    STOP = "stop"
    """The model ended its turn. (spec: http.finish_reasons.stop)"""
    SEQUENCE = "sequence"
    """A stop sequence matched. (spec: http.finish_reasons.sequence)"""
    LENGTH = "length"
    """The token limit ended the answer. (spec: http.finish_reasons.length)"""
    TOOL_CALLS = "tool_calls"
    """The answer calls tools. (spec: http.finish_reasons.tool_calls)"""


class HealthStatus(StrEnum):
    """The ``status`` of GET /health."""

    OK = "ok"
    """Requests are served. (spec: http.health_statuses.ok)"""
    STARTING = "starting"
    """The engine has not said READY yet. (spec: http.health_statuses.starting)"""
    RESTARTING = "restarting"
    """The engine died and is being replaced. (spec: http.health_statuses.restarting)"""
    DOWN = "down"
    """The engine is gone and stays so. (spec: http.health_statuses.down)"""


class Route(NamedTuple):
    """One method on one path; a path may hold ``{placeholders}``."""

    method: str
    path: str
    dialect: str


CHECK_ORDER: Final[tuple[str, ...]] = (
    "host",
    "key",
    "route",
    "body",
    "json",
    "model",
    "endpoint",
)
"""What is checked of a request, one after the other; the first fault is the answer."""

ROUTES: Final[tuple[Route, ...]] = (
    Route("POST", "/v1/completions", "openai"),
    Route("POST", "/v1/chat/completions", "openai"),
    Route("POST", "/v1/messages", "anthropic"),
    Route("POST", "/v1/messages/count_tokens", "anthropic"),
    Route("GET", "/v1/models", "openai"),
    Route("GET", "/v1/models/{id}", "openai"),
    Route("GET", "/health", "openai"),
    Route("GET", "/profile", "openai"),
    Route("GET", "/experts", "openai"),
    Route("GET", "/metrics", "openai"),
    Route("GET", "/openapi.json", "openai"),
    Route("GET", "/docs", "openai"),
)
"""Everything that is served."""

OPEN_PATHS: Final[tuple[str, ...]] = ("/health", "/profile", "/experts")
"""Paths that are served, reduced, without the key."""

ANTHROPIC_PATHS: Final[tuple[str, ...]] = ("/v1/messages",)
"""A POST at or below one of these answers errors in the Anthropic envelope."""

LOOPBACK_HOSTS: Final[frozenset[str]] = frozenset({"127.0.0.1", "localhost", "::1"})
"""Host names that the Host guard always allows."""

X_REQUEST_ID_HEADER: Final = "x-request-id"
"""`req_` and 32 hexadecimal digits, minted by the server. Sent: always. (spec: http.headers.x-request-id)"""

X_CLIENT_REQUEST_ID_HEADER: Final = "x-client-request-id"
"""The client's X-Request-Id when it is visible ASCII of bounded length. Sent: when given. (spec:
http.headers.x-client-request-id)
"""

X_COLIBRI_QUEUE_WAIT_MS_HEADER: Final = "x-colibri-queue-wait-ms"
"""Whole milliseconds the request waited for its slot; on 200 answers of generation requests. Sent: on
generation. (spec: http.headers.x-colibri-queue-wait-ms)
"""

RETRY_AFTER_HEADER: Final = "Retry-After"
"""Seconds to wait before trying again. Sent: on retry. (spec: http.headers.Retry-After)"""

REQUEST_ID: Final = IdForm("req_", 32)
"""One HTTP request. (spec: http.ids.request)"""

CHAT_COMPLETION_ID: Final = IdForm("chatcmpl-", 32)
"""One chat completion. (spec: http.ids.chat_completion)"""

COMPLETION_ID: Final = IdForm("cmpl-", 32)
"""One text completion. (spec: http.ids.completion)"""

TOOL_CALL_ID: Final = IdForm("call_", 24)
"""One tool call. (spec: http.ids.tool_call)"""

ANTHROPIC_TOOL_CALL_ID: Final = IdForm("toolu_", 24)
"""One tool call on /v1/messages. (spec: http.ids.anthropic_tool_call)"""

ANTHROPIC_MESSAGE_ID: Final = IdForm("msg_", 24)
"""One message on /v1/messages. (spec: http.ids.anthropic_message)"""

CORS_METHODS: Final[tuple[str, ...]] = ("GET", "POST", "OPTIONS")
"""Methods a browser may use from another origin."""

CORS_HEADERS: Final[tuple[str, ...]] = (
    "Authorization",
    "Content-Type",
    "x-api-key",
    "anthropic-version",
    "anthropic-beta",
)
"""Request headers a browser may send from another origin."""

CORS_HEADER_PREFIXES: Final[tuple[str, ...]] = ("x-stainless-",)
"""Headers a preflight asked for are allowed as well when they start like this."""

CORS_EXPOSE: Final[tuple[str, ...]] = (
    "x-request-id",
    "x-colibri-queue-wait-ms",
    "Retry-After",
)
"""Response headers a page may read."""

CORS_MAX_AGE: Final = 600
"""Seconds a browser may keep the answer to a preflight."""

FINISH_REASONS: Final[Mapping[Outcome, FinishReason]] = {
    Outcome.STOP: FinishReason("stop", "end_turn"),
    Outcome.SEQUENCE: FinishReason("stop", "stop_sequence"),
    Outcome.LENGTH: FinishReason("length", "max_tokens"),
    Outcome.TOOL_CALLS: FinishReason("tool_calls", "tool_use"),
}
"""The words of both dialects by outcome."""

HEALTH_STATUSES: Final[Mapping[HealthStatus, int]] = {
    HealthStatus.OK: 200,
    HealthStatus.STARTING: 503,
    HealthStatus.RESTARTING: 503,
    HealthStatus.DOWN: 503,
}
"""HTTP status of GET /health by its word."""
