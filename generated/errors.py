# Generated from spec/protocol.yaml (target python, template python/errors.py.j2). Do not edit.
# Regenerate with: python -m codegen generate

"""Errors of the HTTP API as data, and the join from the words of an ERROR frame to them.

One function per error makes it; what varies is a keyword argument. Status, type, code and wording come from the spec
(``api_errors``, ``wire_errors``). No word of the wire ever gets into a message.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple


class ErrorKind(NamedTuple):
    """What is the same for every occurrence of an error."""

    name: str
    status: int
    type: str
    """``error.type`` of the OpenAI envelope."""
    code: str | None
    """``error.code`` of the OpenAI envelope."""
    anthropic_type: str
    """``error.type`` of the Anthropic envelope."""
    retry: str
    """What a client should do: ``never`` retry, retrying is ``safe``, or retry ``after`` the named time."""
    retry_after: int | None
    """Seconds for the Retry-After header, or None."""
    close: bool
    """The connection closes after the answer."""
    doc: str


class ApiError(Exception):
    """An error answer of the API: everything both envelopes and the headers need."""

    def __init__(
        self,
        kind: ErrorKind,
        param: str | None,
        message: str,
        anthropic_message: str | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.param = param
        self.message = message
        self.anthropic_message = message if anthropic_message is None else anthropic_message

    @property
    def name(self) -> str:
        """The error's name in the spec."""
        return self.kind.name

    @property
    def status(self) -> int:
        """HTTP status."""
        return self.kind.status

    @property
    def type(self) -> str:
        """``error.type`` of the OpenAI envelope."""
        return self.kind.type

    @property
    def code(self) -> str | None:
        """``error.code`` of the OpenAI envelope."""
        return self.kind.code

    @property
    def anthropic_type(self) -> str:
        """``error.type`` of the Anthropic envelope."""
        return self.kind.anthropic_type

    @property
    def retry(self) -> str:
        """``never``, ``safe`` or ``after``."""
        return self.kind.retry

    @property
    def retry_after(self) -> int | None:
        """Seconds for the Retry-After header, or None."""
        return self.kind.retry_after

    @property
    def close(self) -> bool:
        """Whether the connection closes after the answer."""
        return self.kind.close

    def openai(self) -> dict[str, Any]:
        """The whole body in the OpenAI envelope."""
        return {
            "error": {
                "message": self.message,
                "type": self.kind.type,
                "param": self.param,
                "code": self.kind.code,
            }
        }

    def anthropic(self, request_id: str) -> dict[str, Any]:
        """The whole body in the Anthropic envelope."""
        return {
            "type": "error",
            "error": {"type": self.kind.anthropic_type, "message": self.anthropic_message},
            "request_id": request_id,
        }

    def relabelled(self, *, param: str | None, prefix: str = "") -> ApiError:
        """The same error about another param, with ``prefix`` before its message; the cause is kept."""
        copy = ApiError(self.kind, param, prefix + self.message, prefix + self.anthropic_message)
        copy.__cause__ = self.__cause__
        return copy


KINDS: Final[Mapping[str, ErrorKind]] = {
    "invalid_request": ErrorKind(
        name="invalid_request",
        status=400,
        type="invalid_request_error",
        code=None,
        anthropic_type="invalid_request_error",
        retry="never",
        retry_after=None,
        close=False,
        doc="A request field of the older kind that is out of its range.",
    ),
    "invalid_value": ErrorKind(
        name="invalid_value",
        status=400,
        type="invalid_request_error",
        code="invalid_value",
        anthropic_type="invalid_request_error",
        retry="never",
        retry_after=None,
        close=False,
        doc="A value that the field does not take.",
    ),
    "unsupported_value": ErrorKind(
        name="unsupported_value",
        status=400,
        type="invalid_request_error",
        code="unsupported_value",
        anthropic_type="invalid_request_error",
        retry="never",
        retry_after=None,
        close=False,
        doc="A value that is understood but not served.",
    ),
    "unsupported_parameter": ErrorKind(
        name="unsupported_parameter",
        status=400,
        type="invalid_request_error",
        code="unsupported_parameter",
        anthropic_type="invalid_request_error",
        retry="never",
        retry_after=None,
        close=False,
        doc="A field that this server, or this engine's family, does not serve.",
    ),
    "unsupported_content_type": ErrorKind(
        name="unsupported_content_type",
        status=400,
        type="invalid_request_error",
        code="unsupported_content_type",
        anthropic_type="invalid_request_error",
        retry="never",
        retry_after=None,
        close=False,
        doc="A content part of a kind that is not served.",
    ),
    "unsupported_role": ErrorKind(
        name="unsupported_role",
        status=400,
        type="invalid_request_error",
        code="unsupported_role",
        anthropic_type="invalid_request_error",
        retry="never",
        retry_after=None,
        close=False,
        doc="A message role that does not exist.",
    ),
    "malformed_body": ErrorKind(
        name="malformed_body",
        status=400,
        type="invalid_request_error",
        code=None,
        anthropic_type="invalid_request_error",
        retry="never",
        retry_after=None,
        close=False,
        doc="The body is not strict UTF-8 JSON, or not an object.",
    ),
    "malformed_http": ErrorKind(
        name="malformed_http",
        status=400,
        type="invalid_request_error",
        code=None,
        anthropic_type="invalid_request_error",
        retry="never",
        retry_after=None,
        close=True,
        doc="The framing of the request cannot be trusted; the connection closes.",
    ),
    "context_length_exceeded": ErrorKind(
        name="context_length_exceeded",
        status=400,
        type="invalid_request_error",
        code="context_length_exceeded",
        anthropic_type="invalid_request_error",
        retry="never",
        retry_after=None,
        close=False,
        doc="The prompt does not fit the context.",
    ),
    "context_length_exceeded_unmeasured": ErrorKind(
        name="context_length_exceeded_unmeasured",
        status=400,
        type="invalid_request_error",
        code="context_length_exceeded",
        anthropic_type="invalid_request_error",
        retry="never",
        retry_after=None,
        close=False,
        doc="The prompt does not fit the context and the engine gave no numbers.",
    ),
    "prompt_batch_cap_exceeded": ErrorKind(
        name="prompt_batch_cap_exceeded",
        status=400,
        type="invalid_request_error",
        code="prompt_batch_cap_exceeded",
        anthropic_type="invalid_request_error",
        retry="never",
        retry_after=None,
        close=False,
        doc="Too many members.",
    ),
    "prompt_batch_token_budget_exceeded": ErrorKind(
        name="prompt_batch_token_budget_exceeded",
        status=400,
        type="invalid_request_error",
        code="prompt_batch_token_budget_exceeded",
        anthropic_type="invalid_request_error",
        retry="never",
        retry_after=None,
        close=False,
        doc="The prompt budget of a batch is spent.",
    ),
    "batch_completion_budget_exceeded": ErrorKind(
        name="batch_completion_budget_exceeded",
        status=400,
        type="invalid_request_error",
        code="batch_completion_budget_exceeded",
        anthropic_type="invalid_request_error",
        retry="never",
        retry_after=None,
        close=False,
        doc="The completion budget of a batch is spent.",
    ),
    "batch_completion_budget_unset": ErrorKind(
        name="batch_completion_budget_unset",
        status=400,
        type="invalid_request_error",
        code="batch_completion_budget_exceeded",
        anthropic_type="invalid_request_error",
        retry="never",
        retry_after=None,
        close=False,
        doc="The completion budget of a batch is spent by the default max_tokens.",
    ),
    "tokenizer_unavailable": ErrorKind(
        name="tokenizer_unavailable",
        status=400,
        type="invalid_request_error",
        code="unsupported_parameter",
        anthropic_type="invalid_request_error",
        retry="never",
        retry_after=None,
        close=False,
        doc="The model directory has no tokenizer.",
    ),
    "invalid_api_key": ErrorKind(
        name="invalid_api_key",
        status=401,
        type="authentication_error",
        code="invalid_api_key",
        anthropic_type="authentication_error",
        retry="never",
        retry_after=None,
        close=False,
        doc="The server has a key and the request does not carry it.",
    ),
    "forbidden": ErrorKind(
        name="forbidden",
        status=403,
        type="invalid_request_error",
        code="forbidden",
        anthropic_type="permission_error",
        retry="never",
        retry_after=None,
        close=False,
        doc="The Host guard refused the name.",
    ),
    "model_not_found": ErrorKind(
        name="model_not_found",
        status=404,
        type="invalid_request_error",
        code="model_not_found",
        anthropic_type="not_found_error",
        retry="never",
        retry_after=None,
        close=False,
        doc="The body names another model.",
    ),
    "not_found": ErrorKind(
        name="not_found",
        status=404,
        type="invalid_request_error",
        code="not_found",
        anthropic_type="not_found_error",
        retry="never",
        retry_after=None,
        close=False,
        doc="No such path.",
    ),
    "method_not_allowed": ErrorKind(
        name="method_not_allowed",
        status=405,
        type="invalid_request_error",
        code="method_not_allowed",
        anthropic_type="invalid_request_error",
        retry="never",
        retry_after=None,
        close=False,
        doc="The path exists and takes other methods.",
    ),
    "request_timeout": ErrorKind(
        name="request_timeout",
        status=408,
        type="invalid_request_error",
        code="request_timeout",
        anthropic_type="invalid_request_error",
        retry="safe",
        retry_after=None,
        close=True,
        doc="The read deadline passed.",
    ),
    "request_too_large": ErrorKind(
        name="request_too_large",
        status=413,
        type="invalid_request_error",
        code="request_too_large",
        anthropic_type="request_too_large",
        retry="never",
        retry_after=None,
        close=True,
        doc="The body is over the limit.",
    ),
    "unsupported_encoding": ErrorKind(
        name="unsupported_encoding",
        status=415,
        type="invalid_request_error",
        code="unsupported_encoding",
        anthropic_type="invalid_request_error",
        retry="never",
        retry_after=None,
        close=False,
        doc="A content encoding the server cannot decode.",
    ),
    "queue_full": ErrorKind(
        name="queue_full",
        status=429,
        type="rate_limit_error",
        code="queue_full",
        anthropic_type="rate_limit_error",
        retry="after",
        retry_after=1,
        close=False,
        doc="No room to wait.",
    ),
    "queue_timeout": ErrorKind(
        name="queue_timeout",
        status=429,
        type="rate_limit_error",
        code="queue_timeout",
        anthropic_type="rate_limit_error",
        retry="after",
        retry_after=1,
        close=False,
        doc="The queue deadline passed.",
    ),
    "engine_error": ErrorKind(
        name="engine_error",
        status=500,
        type="server_error",
        code="engine_error",
        anthropic_type="api_error",
        retry="safe",
        retry_after=None,
        close=False,
        doc="An engine, protocol or unexpected failure; the log has the reason under the request id.",
    ),
    "engine_logprobs_unsupported": ErrorKind(
        name="engine_logprobs_unsupported",
        status=503,
        type="server_error",
        code="engine_logprobs_unsupported",
        anthropic_type="api_error",
        retry="never",
        retry_after=None,
        close=False,
        doc="The engine never acknowledged a request for log probabilities.",
    ),
    "engine_tok_ids_unsupported": ErrorKind(
        name="engine_tok_ids_unsupported",
        status=503,
        type="server_error",
        code="engine_tok_ids_unsupported",
        anthropic_type="api_error",
        retry="never",
        retry_after=None,
        close=False,
        doc="The engine never acknowledged a prompt of token ids.",
    ),
    "engine_unavailable": ErrorKind(
        name="engine_unavailable",
        status=503,
        type="server_error",
        code="engine_unavailable",
        anthropic_type="overloaded_error",
        retry="after",
        retry_after=1,
        close=False,
        doc="The engine is down or restarting.",
    ),
    "shutting_down": ErrorKind(
        name="shutting_down",
        status=503,
        type="server_error",
        code="shutting_down",
        anthropic_type="overloaded_error",
        retry="after",
        retry_after=1,
        close=False,
        doc="SIGTERM was seen.",
    ),
    "too_many_connections": ErrorKind(
        name="too_many_connections",
        status=503,
        type="server_error",
        code="too_many_connections",
        anthropic_type="overloaded_error",
        retry="after",
        retry_after=1,
        close=True,
        doc="A connection cap was reached.",
    ),
}
"""Every error by name, in the order of the spec."""


def invalid_request(*, param: str | None, message: str) -> ApiError:
    """400 ``null``: A request field of the older kind that is out of its range. (spec:
    api_errors.invalid_request)
    """
    return ApiError(KINDS["invalid_request"], param, message)


def invalid_value(*, param: str | None, message: str) -> ApiError:
    """400 ``invalid_value``: A value that the field does not take. (spec: api_errors.invalid_value)"""
    return ApiError(KINDS["invalid_value"], param, message)


def unsupported_value(*, param: str | None, message: str) -> ApiError:
    """400 ``unsupported_value``: A value that is understood but not served. (spec:
    api_errors.unsupported_value)
    """
    return ApiError(KINDS["unsupported_value"], param, message)


def unsupported_parameter(*, param: str | None, message: str) -> ApiError:
    """400 ``unsupported_parameter``: A field that this server, or this engine's family, does not serve.
    (spec: api_errors.unsupported_parameter)
    """
    return ApiError(KINDS["unsupported_parameter"], param, message)


def unsupported_content_type(*, param: str | None, message: str) -> ApiError:
    """400 ``unsupported_content_type``: A content part of a kind that is not served. (spec:
    api_errors.unsupported_content_type)
    """
    return ApiError(KINDS["unsupported_content_type"], param, message)


def unsupported_role(*, param: str | None, message: str) -> ApiError:
    """400 ``unsupported_role``: A message role that does not exist. (spec: api_errors.unsupported_role)"""
    return ApiError(KINDS["unsupported_role"], param, message)


def malformed_body(*, reason: int | float | str) -> ApiError:
    """400 ``null``: The body is not strict UTF-8 JSON, or not an object. (spec: api_errors.malformed_body)"""
    return ApiError(KINDS["malformed_body"], None, f"The request body is not a JSON object: {reason}.")


def malformed_http(*, reason: int | float | str) -> ApiError:
    """400 ``null``: The framing of the request cannot be trusted; the connection closes. (spec:
    api_errors.malformed_http)
    """
    return ApiError(KINDS["malformed_http"], None, f"The request is not well-formed HTTP: {reason}.")


def context_length_exceeded(
    *,
    limit: int | float | str,
    used: int | float | str,
    param: str | None,
) -> ApiError:
    """400 ``context_length_exceeded``: The prompt does not fit the context. (spec:
    api_errors.context_length_exceeded)
    """
    return ApiError(
        KINDS["context_length_exceeded"],
        param,
        f"This model's maximum context length is {limit} tokens, but the prompt has at least {used} tokens.",
        f"prompt is too long: {used} tokens > {limit} maximum",
    )


def context_length_exceeded_unmeasured(*, param: str | None) -> ApiError:
    """400 ``context_length_exceeded``: The prompt does not fit the context and the engine gave no numbers.
    (spec: api_errors.context_length_exceeded_unmeasured)
    """
    return ApiError(
        KINDS["context_length_exceeded_unmeasured"],
        param,
        "The prompt is longer than this model's maximum context length.",
        "prompt is too long for this model's maximum context length",
    )


def prompt_batch_cap_exceeded(*, limit: int | float | str, got: int | float | str) -> ApiError:
    """400 ``prompt_batch_cap_exceeded``: Too many members. (spec: api_errors.prompt_batch_cap_exceeded)"""
    return ApiError(
        KINDS["prompt_batch_cap_exceeded"],
        "prompt",
        f"A request takes at most {limit} prompts, this one has {got}.",
    )


def prompt_batch_token_budget_exceeded(*, limit: int | float | str, got: int | float | str) -> ApiError:
    """400 ``prompt_batch_token_budget_exceeded``: The prompt budget of a batch is spent. (spec:
    api_errors.prompt_batch_token_budget_exceeded)
    """
    return ApiError(
        KINDS["prompt_batch_token_budget_exceeded"],
        "prompt",
        f"The prompts of a batch may hold {limit} tokens together, these hold {got}.",
    )


def batch_completion_budget_exceeded(*, limit: int | float | str, got: int | float | str) -> ApiError:
    """400 ``batch_completion_budget_exceeded``: The completion budget of a batch is spent. (spec:
    api_errors.batch_completion_budget_exceeded)
    """
    return ApiError(
        KINDS["batch_completion_budget_exceeded"],
        "max_tokens",
        f"A batch may generate {limit} tokens together, this one asks for {got}.",
    )


def batch_completion_budget_unset(*, limit: int | float | str, got: int | float | str) -> ApiError:
    """400 ``batch_completion_budget_exceeded``: The completion budget of a batch is spent by the default
    max_tokens. (spec: api_errors.batch_completion_budget_unset)
    """
    return ApiError(
        KINDS["batch_completion_budget_unset"],
        "max_tokens",
        f"A batch may generate {limit} tokens together; without max_tokens this one asks for {got}. Set max_tokens.",
    )


def tokenizer_unavailable() -> ApiError:
    """400 ``unsupported_parameter``: The model directory has no tokenizer. (spec:
    api_errors.tokenizer_unavailable)
    """
    return ApiError(
        KINDS["tokenizer_unavailable"],
        "model",
        "Tokens cannot be counted: the model directory holds no tokenizer.",
    )


def invalid_api_key() -> ApiError:
    """401 ``invalid_api_key``: The server has a key and the request does not carry it. (spec:
    api_errors.invalid_api_key)
    """
    return ApiError(
        KINDS["invalid_api_key"],
        None,
        "The API key is missing or wrong. Send it as `Authorization: Bearer KEY` or `x-api-key: KEY`.",
    )


def forbidden(*, host: int | float | str) -> ApiError:
    """403 ``forbidden``: The Host guard refused the name. (spec: api_errors.forbidden)"""
    return ApiError(
        KINDS["forbidden"],
        None,
        f"The host {host} is not allowed. Start the server with --allowed-host {host} to serve it.",
    )


def model_not_found(*, model: int | float | str, served: int | float | str) -> ApiError:
    """404 ``model_not_found``: The body names another model. (spec: api_errors.model_not_found)"""
    return ApiError(
        KINDS["model_not_found"],
        "model",
        f"The model {model} does not exist. This server serves {served}.",
    )


def not_found(*, path: int | float | str, nearest: int | float | str) -> ApiError:
    """404 ``not_found``: No such path. (spec: api_errors.not_found)"""
    return ApiError(KINDS["not_found"], None, f"There is nothing at {path}. Did you mean {nearest}?")


def method_not_allowed(
    *,
    path: int | float | str,
    method: int | float | str,
    allow: int | float | str,
) -> ApiError:
    """405 ``method_not_allowed``: The path exists and takes other methods. (spec:
    api_errors.method_not_allowed)
    """
    return ApiError(KINDS["method_not_allowed"], None, f"{path} does not take {method}. It takes {allow}.")


def request_timeout(*, seconds: int | float | str) -> ApiError:
    """408 ``request_timeout``: The read deadline passed. (spec: api_errors.request_timeout)"""
    return ApiError(
        KINDS["request_timeout"],
        None,
        f"The request was not fully received within {seconds} seconds.",
    )


def request_too_large(*, limit: int | float | str) -> ApiError:
    """413 ``request_too_large``: The body is over the limit. (spec: api_errors.request_too_large)"""
    return ApiError(KINDS["request_too_large"], None, f"The request body is larger than {limit} bytes.")


def unsupported_encoding(*, encoding: int | float | str) -> ApiError:
    """415 ``unsupported_encoding``: A content encoding the server cannot decode. (spec:
    api_errors.unsupported_encoding)
    """
    return ApiError(
        KINDS["unsupported_encoding"],
        None,
        f"The content encoding {encoding} is not served. Use identity, gzip or deflate.",
    )


def queue_full() -> ApiError:
    """429 ``queue_full``: No room to wait. (spec: api_errors.queue_full)"""
    return ApiError(KINDS["queue_full"], None, "All slots are busy and the waiting room is full.")


def queue_timeout() -> ApiError:
    """429 ``queue_timeout``: The queue deadline passed. (spec: api_errors.queue_timeout)"""
    return ApiError(KINDS["queue_timeout"], None, "No slot became free in time.")


def engine_error() -> ApiError:
    """500 ``engine_error``: An engine, protocol or unexpected failure; the log has the reason under the
    request id. (spec: api_errors.engine_error)
    """
    return ApiError(KINDS["engine_error"], None, "The engine failed to complete the request.")


def engine_logprobs_unsupported() -> ApiError:
    """503 ``engine_logprobs_unsupported``: The engine never acknowledged a request for log probabilities.
    (spec: api_errors.engine_logprobs_unsupported)
    """
    return ApiError(
        KINDS["engine_logprobs_unsupported"],
        "logprobs",
        "This engine is too old to report log probabilities.",
    )


def engine_tok_ids_unsupported() -> ApiError:
    """503 ``engine_tok_ids_unsupported``: The engine never acknowledged a prompt of token ids. (spec:
    api_errors.engine_tok_ids_unsupported)
    """
    return ApiError(
        KINDS["engine_tok_ids_unsupported"],
        "prompt",
        "This engine is too old to take token ids.",
    )


def engine_unavailable() -> ApiError:
    """503 ``engine_unavailable``: The engine is down or restarting. (spec: api_errors.engine_unavailable)"""
    return ApiError(KINDS["engine_unavailable"], None, "The engine is not ready.")


def shutting_down() -> ApiError:
    """503 ``shutting_down``: SIGTERM was seen. (spec: api_errors.shutting_down)"""
    return ApiError(KINDS["shutting_down"], None, "The server is shutting down.")


def too_many_connections() -> ApiError:
    """503 ``too_many_connections``: A connection cap was reached. (spec: api_errors.too_many_connections)"""
    return ApiError(KINDS["too_many_connections"], None, "Too many connections.")


NAMED_BY_CALLER: Final[Mapping[str, Callable[..., ApiError]]] = {
    "invalid_request": invalid_request,
    "invalid_value": invalid_value,
    "unsupported_value": unsupported_value,
    "unsupported_parameter": unsupported_parameter,
    "unsupported_content_type": unsupported_content_type,
    "unsupported_role": unsupported_role,
}
"""The errors whose param and message the caller says: ``NAMED_BY_CALLER[name](param=…, message=…)``."""


class WireError(StrEnum):
    """The codes an engine puts into an ERROR frame."""

    CONTEXT_EXCEEDED = "CONTEXT_EXCEEDED"
    """The prompt does not fit. `used` may be capped at limit + 1."""
    EMPTY_PROMPT = "EMPTY_PROMPT"
    """The prompt holds no token."""
    BAD_REQUEST = "BAD_REQUEST"
    """The header was refused; for a request of token ids: a malformed or out-of-vocabulary id."""
    BAD_FRAME = "BAD_FRAME"
    """The terminator of a payload is missing; the engine exits after it."""
    SLOT_BUSY = "SLOT_BUSY"
    """The slot already runs a request."""
    DUPLICATE_ID = "DUPLICATE_ID"
    """The id is in flight already."""
    NOT_FOUND = "NOT_FOUND"
    """STOP or CANCEL named an id that is not in flight."""
    CANCELLED = "CANCELLED"
    """Answer to CANCEL."""


class WireCode(StrEnum):
    """What the words of an ERROR frame can mean: the codes, and what engines without codes spell out."""

    CONTEXT_EXCEEDED = "CONTEXT_EXCEEDED"
    """The prompt does not fit. `used` may be capped at limit + 1."""
    EMPTY_PROMPT = "EMPTY_PROMPT"
    """The prompt holds no token."""
    BAD_REQUEST = "BAD_REQUEST"
    """The header was refused; for a request of token ids: a malformed or out-of-vocabulary id."""
    BAD_FRAME = "BAD_FRAME"
    """The terminator of a payload is missing; the engine exits after it."""
    SLOT_BUSY = "SLOT_BUSY"
    """The slot already runs a request."""
    DUPLICATE_ID = "DUPLICATE_ID"
    """The id is in flight already."""
    NOT_FOUND = "NOT_FOUND"
    """STOP or CANCEL named an id that is not in flight."""
    CANCELLED = "CANCELLED"
    """Answer to CANCEL."""
    QUEUE_FULL = "QUEUE_FULL"
    """An engine with a queue of its own has no room."""
    OTHER = "OTHER"
    """Any other words. They are logged and never reach a client."""


class _Spelling(NamedTuple):
    """One entry of the join: how the words are recognised, and what the numbers in them are called."""

    code: WireCode
    on_wire: bool
    details: tuple[re.Pattern[str], ...]
    spelled: tuple[re.Pattern[str], ...]


_SPELLINGS: Final[tuple[_Spelling, ...]] = (
    _Spelling(
        code=WireCode.CONTEXT_EXCEEDED,
        on_wire=True,
        details=(
            re.compile(r"(?P<used>[0-9]{1,20}) (?P<limit>[0-9]{1,20})"),
            re.compile(
                r"prompt_tokens=(?P<used>[0-9]{1,20}) requested=(?P<requested>[0-9]{1,20}) capacity=(?P<limit>[0-9]{1,20})",
            ),
            re.compile(r""),
        ),
        spelled=(
            re.compile(
                r"context exceeds CTX \((?P<prompt>[0-9]{1,20}) \+ (?P<requested>[0-9]{1,20}) > (?P<limit>[0-9]{1,20})\)",
            ),
            re.compile(r"context exceeds CTX(?:\W.*)?"),
        ),
    ),
    _Spelling(
        code=WireCode.EMPTY_PROMPT,
        on_wire=True,
        details=(),
        spelled=(re.compile(r"empty prompt(?:\W.*)?"),),
    ),
    _Spelling(
        code=WireCode.BAD_REQUEST,
        on_wire=True,
        details=(),
        spelled=(),
    ),
    _Spelling(
        code=WireCode.BAD_FRAME,
        on_wire=True,
        details=(),
        spelled=(),
    ),
    _Spelling(
        code=WireCode.SLOT_BUSY,
        on_wire=True,
        details=(),
        spelled=(),
    ),
    _Spelling(
        code=WireCode.DUPLICATE_ID,
        on_wire=True,
        details=(),
        spelled=(),
    ),
    _Spelling(
        code=WireCode.NOT_FOUND,
        on_wire=True,
        details=(),
        spelled=(),
    ),
    _Spelling(
        code=WireCode.CANCELLED,
        on_wire=True,
        details=(),
        spelled=(),
    ),
    _Spelling(
        code=WireCode.QUEUE_FULL,
        on_wire=False,
        details=(),
        spelled=(re.compile(r"queue full(?:\W.*)?"), re.compile(r"engine busy(?:\W.*)?")),
    ),
)


def _recognise(words: Sequence[str]) -> tuple[WireCode, dict[str, int]]:
    """The wire error and the numbers its words carry."""
    text = " ".join(words)
    for entry in _SPELLINGS:
        if entry.on_wire and words and words[0] == entry.code:
            rest = " ".join(words[1:])
            return entry.code, _numbers(entry.details, rest) or {}
        found = _numbers(entry.spelled, text)
        if found is not None:
            return entry.code, found
    return WireCode.OTHER, {}


def _numbers(patterns: tuple[re.Pattern[str], ...], text: str) -> dict[str, int] | None:
    """The numbers of the first pattern that is all of ``text``; None if there is none."""
    for pattern in patterns:
        match = pattern.fullmatch(text)
        if match is not None:
            return {name: int(digits) for name, digits in match.groupdict().items()}
    return None


def wire_code(words: Sequence[str]) -> WireCode:
    """The wire error that the words of an ERROR frame are; ``OTHER`` for words of no meaning to us."""
    return _recognise(words)[0]


def join_wire_error(
    words: Sequence[str],
    *,
    ids: bool,
    prompt_param: str,
) -> ApiError:
    """What the client of a request gets when the engine ended it with an ERROR of these words (wire.md section 4).

    ``ids`` says that its prompt was token ids, ``prompt_param`` names the field a complaint about the prompt is put
    down to. Not for a request that was sent CANCEL: whatever ends it, nobody is there to be told.
    """
    code, numbers = _recognise(words)
    if code is WireCode.CONTEXT_EXCEEDED and "used" in numbers:
        return context_length_exceeded(limit=numbers["limit"], used=numbers["used"], param=prompt_param)
    if code is WireCode.CONTEXT_EXCEEDED and "prompt" in numbers:
        return context_length_exceeded(
            limit=numbers["limit"],
            used=numbers["prompt"] + numbers["requested"],
            param=prompt_param,
        )
    if code is WireCode.CONTEXT_EXCEEDED:
        return context_length_exceeded_unmeasured(param=prompt_param)
    if code is WireCode.EMPTY_PROMPT:
        return invalid_value(param=prompt_param, message="The prompt holds no tokens.")
    if code is WireCode.BAD_REQUEST and ids:
        return invalid_value(
            param=prompt_param,
            message="The prompt holds a token id that the model does not have.",
        )
    if code is WireCode.BAD_REQUEST:
        return engine_error()
    if code is WireCode.BAD_FRAME:
        return engine_error()
    if code is WireCode.SLOT_BUSY:
        return engine_error()
    if code is WireCode.DUPLICATE_ID:
        return engine_error()
    if code is WireCode.NOT_FOUND:
        return engine_error()
    if code is WireCode.CANCELLED:
        return engine_error()
    if code is WireCode.QUEUE_FULL:
        return engine_unavailable()
    return engine_error()
