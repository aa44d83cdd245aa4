# Generated from spec/protocol.yaml (target python, template python/fields.py.j2). Do not edit.
# Regenerate with: python -m codegen generate

"""Fields of the request bodies: type, range, null rule, capability and refusal of each, in the order they are checked.

``ENDPOINTS["POST /v1/completions"].orders["flat"]`` is one order of checks. Each step is a field to ask for its value
(``step.check(body, environment)`` gives the value or raises the ApiError of the fault) or a :class:`Hook`, the place of
a check that needs more than one field's value. Values are judged as they stand in the JSON text: a boolean is no
number, 1.0 is no integer, and a number may have any length.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from . import errors


class FieldEnvironment(NamedTuple):
    """What the checks have to know about the server."""

    can: frozenset[str]
    """Capabilities of the engine's family."""
    last_slot: int
    """Fact of this server that bounds a field: ``server.last_slot`` of the spec."""
    settings: Mapping[str, Any]
    """Values in force of ``max_tokens``, ``temperature``, ``top_p``."""


class Hook(NamedTuple):
    """A place in an order of checks where the gateway's own flow runs."""

    name: str


def _same(value: object, other: object) -> bool:
    """Equal and of the same JSON type: true is not 1, and 1.0 is not 1."""
    return type(value) is type(other) and value == other


class Field:
    """A field of a body. Subclasses say what the value has to be; here is what holds for all."""

    kind = "a value"

    def __init__(
        self,
        name: str,
        error: str,
        *,
        default: Any = None,
        default_setting: str | None = None,
        required: bool = False,
        null_refused: bool = False,
        off: tuple[Any, ...] = (),
        refuse: tuple[tuple[Any, str], ...] = (),
        needs: str | None = None,
        loses_to: Field | None = None,
        only_with: str | None = None,
    ) -> None:
        """``error``: api error of a bad value; the other arguments are the spec's (see spec/README.md)."""
        self.name = name
        self.error = error
        self.default = default
        self.default_setting = default_setting
        self.required = required
        self.null_refused = null_refused
        self.off = off
        self.refuse = refuse
        self.needs = needs
        self.loses_to = loses_to
        self.only_with = only_with

    def check(self, body: Mapping[str, Any], environment: FieldEnvironment) -> Any:
        """The value in force: the checked one, else the default (None without one). Raises ApiError."""
        winner = self.loses_to
        if winner is not None and body.get(winner.name) is not None:
            return winner.check(body, environment)
        if self.only_with is not None and body.get(self.only_with) is not True:
            return self.default
        value = body.get(self.name)
        if value is None and not (self.null_refused and self.name in body):
            return self._absent(environment)
        if any(_same(value, off) for off in self.off):
            return None
        value = self._read(value, body, environment)
        for refused, error in self.refuse:
            if _same(value, refused):
                raise self._fault("is not served here", error=error)
        if self.needs is not None and value and self.needs not in environment.can:
            raise self._fault("is not served by this model's engine", error="unsupported_parameter")
        return value

    def _absent(self, environment: FieldEnvironment) -> Any:
        if self.required:
            raise self._fault("is required")
        return self.default if self.default_setting is None else environment.settings[self.default_setting]

    def _read(self, value: Any, body: Mapping[str, Any], environment: FieldEnvironment) -> Any:
        """``value`` as the caller wants it. Raises ApiError when it is not what the field takes."""
        raise NotImplementedError

    def _fault(self, says: str, *, error: str | None = None, param: str | None = None) -> errors.ApiError:
        make = errors.NAMED_BY_CALLER[error or self.error]
        return make(param=param or self.name, message=f"{param or self.name} {says}.")


class Accept(Field):
    """Nothing but the accepted values."""

    def __init__(self, name: str, error: str, accepted: tuple[Any, ...], **common: Any) -> None:
        super().__init__(name, error, **common)
        self.accepted = accepted

    def _read(self, value: Any, body: Mapping[str, Any], environment: FieldEnvironment) -> Any:
        if not any(_same(value, accepted) for accepted in self.accepted):
            served = " or ".join(json.dumps(accepted) for accepted in self.accepted)
            raise self._fault(f"is only served as {served}" if served else "is not served")
        return value


class Integer(Field):
    """A whole number in a range, written without a point."""

    def __init__(
        self,
        name: str,
        error: str,
        low: int,
        high: int | None = None,
        *,
        high_fact: str | None = None,
        clamp_setting: str | None = None,
        zero_with: tuple[Field, ...] = (),
        **common: Any,
    ) -> None:
        """``high_fact``: the bound is that fact of the environment. ``clamp_setting``: values above that setting are
        lowered to it. ``zero_with``: 0 is taken too where all of these fields are in force.
        """
        super().__init__(name, error, **common)
        self.low = low
        self.high = high
        self.high_fact = high_fact
        self.clamp_setting = clamp_setting
        self.zero_with = zero_with

    def _read(self, value: Any, body: Mapping[str, Any], environment: FieldEnvironment) -> int:
        if _same(value, 0) and self._zero_passes(body, environment):
            return 0
        high = self.high if self.high_fact is None else getattr(environment, self.high_fact)
        if type(value) is not int or value < self.low or (high is not None and value > high):
            bounds = f"of at least {self.low}" if high is None else f"from {self.low} to {high}"
            raise self._fault(f"must be an integer {bounds}")
        return value if self.clamp_setting is None else min(value, environment.settings[self.clamp_setting])

    def _zero_passes(self, body: Mapping[str, Any], environment: FieldEnvironment) -> bool:
        conditions = [_in_force(field, body, environment) for field in self.zero_with]
        return bool(conditions) and all(conditions)


def _in_force(field: Field, body: Mapping[str, Any], environment: FieldEnvironment) -> bool:
    """Whether the body switches ``field`` on, with a value that passes its check."""
    try:
        return bool(field.check(body, environment))
    except errors.ApiError:
        return False


class Number(Field):
    """A number in a range."""

    def __init__(self, name: str, error: str, low: float, high: float, bounds: str, **common: Any) -> None:
        """``bounds`` says the range in words; ``low`` may be a hair above what it says, see the view."""
        super().__init__(name, error, **common)
        self.low = low
        self.high = high
        self.bounds = bounds

    def _read(self, value: Any, body: Mapping[str, Any], environment: FieldEnvironment) -> float:
        if type(value) not in (int, float) or not self.low <= value <= self.high:
            raise self._fault(f"must be a number {self.bounds}")
        return float(value) + 0.0  # minus zero is zero


class Boolean(Field):
    """true or false."""

    def _read(self, value: Any, body: Mapping[str, Any], environment: FieldEnvironment) -> bool:
        if not isinstance(value, bool):
            raise self._fault("must be true or false")
        return value


class Text(Field):
    """A string."""

    def _read(self, value: Any, body: Mapping[str, Any], environment: FieldEnvironment) -> str:
        if not isinstance(value, str):
            raise self._fault("must be a string")
        return value


class OneOf(Field):
    """One of some words."""

    def __init__(self, name: str, error: str, accepted: tuple[str, ...], **common: Any) -> None:
        super().__init__(name, error, **common)
        self.accepted = accepted

    def _read(self, value: Any, body: Mapping[str, Any], environment: FieldEnvironment) -> str:
        if not isinstance(value, str) or value not in self.accepted:
            raise self._fault(f"must be one of {', '.join(self.accepted)}")
        return value


class Object(Field):
    """A JSON object; what is in it is the caller's to read."""

    def _read(self, value: Any, body: Mapping[str, Any], environment: FieldEnvironment) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise self._fault("must be an object")
        return value


class Strings(Field):
    """A non-empty string, or a list of them; an empty list is none. The value is a tuple."""

    def __init__(self, name: str, error: str, most: int, **common: Any) -> None:
        super().__init__(name, error, default=(), **common)
        self.most = most

    def _read(self, value: Any, body: Mapping[str, Any], environment: FieldEnvironment) -> tuple[str, ...]:
        members = [value] if isinstance(value, str) else value
        if not isinstance(members, list) or len(members) > self.most:
            raise self._fault(f"must be a string or a list of at most {self.most} strings")
        for place, member in enumerate(members):
            if not isinstance(member, str) or not member:
                raise self._fault("must be a non-empty string", param=f"{self.name}.{place}")
        return tuple(members)


class Zero(Field):
    """A field that is not served: only the number 0 passes."""

    def _read(self, value: Any, body: Mapping[str, Any], environment: FieldEnvironment) -> None:
        if type(value) not in (int, float) or value != 0:
            raise self._fault("is not served; only 0 is taken")


class One(Field):
    """A field that is not served: only the integer 1 passes."""

    def _read(self, value: Any, body: Mapping[str, Any], environment: FieldEnvironment) -> None:
        if not _same(value, 1):
            raise self._fault("is not served; only 1 is taken")


class Empty(Field):
    """A field that is not served: only an empty string, list or object passes."""

    def _read(self, value: Any, body: Mapping[str, Any], environment: FieldEnvironment) -> None:
        if not isinstance(value, str | list | dict) or value:
            raise self._fault("is not served; only an empty value is taken")


class AnyValue(Field):
    """Any JSON value; without effect."""

    def _read(self, value: Any, body: Mapping[str, Any], environment: FieldEnvironment) -> Any:
        return value


Step = Field | Hook
"""One step of an order of checks."""


class Endpoint(NamedTuple):
    """One method on one path."""

    method: str
    path: str
    dialect: str
    """Whose envelope and shapes it speaks: ``openai`` or ``anthropic``."""
    names: tuple[str, ...]
    """Every field of the body that means something, those read by hooks included."""
    fields: Mapping[str, Field]
    """The fields that are checked here, by name."""
    orders: Mapping[str, tuple[Step, ...]]
    """Orders of checks by name."""


_GROUP_SCORE: Final = Accept(
    "group_score",
    "unsupported_value",
    (False,),
)

_N: Final = Accept(
    "n",
    "unsupported_value",
    (1,),
)

_STOP: Final = Strings(
    "stop",
    "invalid_value",
    4,
)

_FREQUENCY_PENALTY: Final = Zero(
    "frequency_penalty",
    "unsupported_parameter",
)

_PRESENCE_PENALTY: Final = Zero(
    "presence_penalty",
    "unsupported_parameter",
)

_LOGIT_BIAS: Final = Empty(
    "logit_bias",
    "unsupported_parameter",
)

_BEST_OF: Final = One(
    "best_of",
    "unsupported_parameter",
)

_SUFFIX: Final = Empty(
    "suffix",
    "unsupported_parameter",
)

_ECHO: Final = Boolean(
    "echo",
    "invalid_value",
    default=False,
    null_refused=True,
)

_LOGPROBS: Final = Integer(
    "logprobs",
    "invalid_value",
    0,
    32,
    off=(False, 0),
    needs="logprobs",
)

_MAX_COMPLETION_TOKENS: Final = Integer(
    "max_completion_tokens",
    "invalid_request",
    1,
    clamp_setting="max_tokens",
    default_setting="max_tokens",
)

_MAX_TOKENS: Final = Integer(
    "max_tokens",
    "invalid_request",
    1,
    clamp_setting="max_tokens",
    zero_with=(_ECHO, _LOGPROBS),
    default_setting="max_tokens",
    loses_to=_MAX_COMPLETION_TOKENS,
)

_TEMPERATURE: Final = Number(
    "temperature",
    "invalid_request",
    0.0,
    2.0,
    "from 0 to 2",
    default_setting="temperature",
)

_TOP_P: Final = Number(
    "top_p",
    "invalid_request",
    7.00649235e-46,
    1.0,
    "above 0 and at most 1",
    default_setting="top_p",
)

_X_COLIBRI_IGNORE_LEADING_STOP: Final = Boolean(
    "x_colibri_ignore_leading_stop",
    "invalid_value",
    default=False,
)

_CACHE_SLOT: Final = Integer(
    "cache_slot",
    "invalid_request",
    0,
    high_fact="last_slot",
)

_STREAM: Final = Boolean(
    "stream",
    "invalid_request",
    default=False,
)

_STREAM_OPTIONS: Final = Object(
    "stream_options",
    "invalid_request",
    only_with="stream",
)

_REASONING_EFFORT: Final = OneOf(
    "reasoning_effort",
    "invalid_request",
    ("none", "minimal", "low", "medium", "high", "xhigh"),
)

_ENABLE_THINKING: Final = Boolean(
    "enable_thinking",
    "invalid_request",
)

_CHAT_COMPLETIONS_MAX_TOKENS: Final = Integer(
    "max_tokens",
    "invalid_request",
    1,
    clamp_setting="max_tokens",
    default_setting="max_tokens",
    loses_to=_MAX_COMPLETION_TOKENS,
)

_CHAT_COMPLETIONS_ECHO: Final = Boolean(
    "echo",
    "invalid_value",
    null_refused=True,
    refuse=((True, "unsupported_parameter"),),
)

_CHAT_COMPLETIONS_LOGPROBS: Final = Boolean(
    "logprobs",
    "invalid_value",
    default=False,
)

_TOP_LOGPROBS: Final = Integer(
    "top_logprobs",
    "invalid_value",
    0,
    32,
)

_TOP_K: Final = Accept(
    "top_k",
    "unsupported_parameter",
    (),
)

_MESSAGES_MAX_TOKENS: Final = Integer(
    "max_tokens",
    "invalid_request",
    1,
    clamp_setting="max_tokens",
    required=True,
)


ENDPOINTS: Final[Mapping[str, Endpoint]] = {
    "POST /v1/completions": Endpoint(
        method="POST",
        path="/v1/completions",
        dialect="openai",
        names=(
            "model",
            "group_score",
            "prompt",
            "echo",
            "logprobs",
            "n",
            "tools",
            "functions",
            "tool_choice",
            "stop",
            "frequency_penalty",
            "presence_penalty",
            "logit_bias",
            "best_of",
            "suffix",
            "response_format",
            "max_completion_tokens",
            "max_tokens",
            "temperature",
            "top_p",
            "x_colibri_ignore_leading_stop",
            "cache_slot",
            "stream",
            "stream_options",
            "seed",
            "user",
            "metadata",
            "store",
            "service_tier",
        ),
        fields={
            "group_score": _GROUP_SCORE,
            "n": _N,
            "stop": _STOP,
            "frequency_penalty": _FREQUENCY_PENALTY,
            "presence_penalty": _PRESENCE_PENALTY,
            "logit_bias": _LOGIT_BIAS,
            "best_of": _BEST_OF,
            "suffix": _SUFFIX,
            "max_tokens": _MAX_TOKENS,
            "temperature": _TEMPERATURE,
            "top_p": _TOP_P,
            "echo": _ECHO,
            "logprobs": _LOGPROBS,
            "x_colibri_ignore_leading_stop": _X_COLIBRI_IGNORE_LEADING_STOP,
            "cache_slot": _CACHE_SLOT,
            "stream": _STREAM,
            "stream_options": _STREAM_OPTIONS,
        },
        orders={
            "flat": (
                _GROUP_SCORE,
                Hook("prompt"),
                _N,
                Hook("tools"),
                Hook("tool_choice"),
                _STOP,
                _FREQUENCY_PENALTY,
                _PRESENCE_PENALTY,
                _LOGIT_BIAS,
                _BEST_OF,
                _SUFFIX,
                Hook("response_format"),
                _MAX_TOKENS,
                _TEMPERATURE,
                _TOP_P,
                Hook("grammar_capability"),
                _ECHO,
                _LOGPROBS,
                _X_COLIBRI_IGNORE_LEADING_STOP,
                _CACHE_SLOT,
                _STREAM,
                Hook("scores_with_stream"),
                _STREAM_OPTIONS,
                Hook("admission"),
            ),
            "batch": (
                _GROUP_SCORE,
                Hook("prompts"),
                _N,
                Hook("tools"),
                Hook("tool_choice"),
                _STOP,
                _FREQUENCY_PENALTY,
                _PRESENCE_PENALTY,
                _LOGIT_BIAS,
                _BEST_OF,
                _SUFFIX,
                Hook("response_format"),
                _MAX_TOKENS,
                _TEMPERATURE,
                _TOP_P,
                Hook("grammar_capability"),
                Hook("members"),
                Hook("completion_budget"),
                _ECHO,
                _LOGPROBS,
                _X_COLIBRI_IGNORE_LEADING_STOP,
                _CACHE_SLOT,
                _STREAM,
                Hook("batch_with_stream"),
                Hook("admission"),
            ),
        },
    ),
    "POST /v1/chat/completions": Endpoint(
        method="POST",
        path="/v1/chat/completions",
        dialect="openai",
        names=(
            "model",
            "reasoning_effort",
            "enable_thinking",
            "messages",
            "echo",
            "logprobs",
            "top_logprobs",
            "n",
            "tools",
            "functions",
            "tool_choice",
            "stop",
            "frequency_penalty",
            "presence_penalty",
            "logit_bias",
            "best_of",
            "suffix",
            "response_format",
            "max_completion_tokens",
            "max_tokens",
            "temperature",
            "top_p",
            "x_colibri_ignore_leading_stop",
            "cache_slot",
            "stream",
            "stream_options",
            "seed",
            "user",
            "metadata",
            "store",
            "service_tier",
        ),
        fields={
            "reasoning_effort": _REASONING_EFFORT,
            "enable_thinking": _ENABLE_THINKING,
            "n": _N,
            "stop": _STOP,
            "frequency_penalty": _FREQUENCY_PENALTY,
            "presence_penalty": _PRESENCE_PENALTY,
            "logit_bias": _LOGIT_BIAS,
            "best_of": _BEST_OF,
            "suffix": _SUFFIX,
            "max_tokens": _CHAT_COMPLETIONS_MAX_TOKENS,
            "temperature": _TEMPERATURE,
            "top_p": _TOP_P,
            "echo": _CHAT_COMPLETIONS_ECHO,
            "logprobs": _CHAT_COMPLETIONS_LOGPROBS,
            "top_logprobs": _TOP_LOGPROBS,
            "x_colibri_ignore_leading_stop": _X_COLIBRI_IGNORE_LEADING_STOP,
            "cache_slot": _CACHE_SLOT,
            "stream": _STREAM,
            "stream_options": _STREAM_OPTIONS,
        },
        orders={
            "default": (
                _REASONING_EFFORT,
                _ENABLE_THINKING,
                Hook("messages"),
                _N,
                Hook("tools"),
                Hook("tool_choice"),
                _STOP,
                _FREQUENCY_PENALTY,
                _PRESENCE_PENALTY,
                _LOGIT_BIAS,
                _BEST_OF,
                _SUFFIX,
                Hook("response_format"),
                _CHAT_COMPLETIONS_MAX_TOKENS,
                _TEMPERATURE,
                _TOP_P,
                Hook("grammar_capability"),
                _CHAT_COMPLETIONS_ECHO,
                _CHAT_COMPLETIONS_LOGPROBS,
                _TOP_LOGPROBS,
                Hook("logprobs_capability"),
                _X_COLIBRI_IGNORE_LEADING_STOP,
                _CACHE_SLOT,
                _STREAM,
                Hook("scores_with_stream"),
                _STREAM_OPTIONS,
                Hook("admission"),
            ),
        },
    ),
    "POST /v1/messages": Endpoint(
        method="POST",
        path="/v1/messages",
        dialect="anthropic",
        names=(
            "model",
            "top_k",
            "stop_sequences",
            "system",
            "messages",
            "tools",
            "tool_choice",
            "thinking",
            "max_tokens",
            "temperature",
            "top_p",
            "x_colibri_ignore_leading_stop",
            "cache_slot",
            "stream",
            "seed",
            "user",
            "metadata",
            "store",
            "service_tier",
        ),
        fields={
            "top_k": _TOP_K,
            "max_tokens": _MESSAGES_MAX_TOKENS,
            "temperature": _TEMPERATURE,
            "top_p": _TOP_P,
            "x_colibri_ignore_leading_stop": _X_COLIBRI_IGNORE_LEADING_STOP,
            "cache_slot": _CACHE_SLOT,
            "stream": _STREAM,
        },
        orders={
            "default": (
                _TOP_K,
                Hook("stop_sequences"),
                Hook("system"),
                Hook("messages"),
                Hook("anthropic_tools"),
                Hook("anthropic_tool_choice"),
                Hook("thinking"),
                _MESSAGES_MAX_TOKENS,
                Hook("translate"),
                _TEMPERATURE,
                _TOP_P,
                Hook("grammar_capability"),
                _X_COLIBRI_IGNORE_LEADING_STOP,
                _CACHE_SLOT,
                _STREAM,
                Hook("admission"),
            ),
        },
    ),
    "POST /v1/messages/count_tokens": Endpoint(
        method="POST",
        path="/v1/messages/count_tokens",
        dialect="anthropic",
        names=("model", "system", "messages", "tools", "tool_choice", "thinking"),
        fields={},
        orders={
            "default": (
                Hook("system"),
                Hook("messages"),
                Hook("anthropic_tools"),
                Hook("anthropic_tool_choice"),
                Hook("thinking"),
            ),
        },
    ),
    "GET /v1/models": Endpoint(
        method="GET",
        path="/v1/models",
        dialect="openai",
        names=(),
        fields={},
        orders={},
    ),
    "GET /v1/models/{id}": Endpoint(
        method="GET",
        path="/v1/models/{id}",
        dialect="openai",
        names=(),
        fields={},
        orders={},
    ),
    "GET /health": Endpoint(
        method="GET",
        path="/health",
        dialect="openai",
        names=(),
        fields={},
        orders={},
    ),
    "GET /profile": Endpoint(
        method="GET",
        path="/profile",
        dialect="openai",
        names=(),
        fields={},
        orders={},
    ),
    "GET /experts": Endpoint(
        method="GET",
        path="/experts",
        dialect="openai",
        names=(),
        fields={},
        orders={},
    ),
    "GET /metrics": Endpoint(
        method="GET",
        path="/metrics",
        dialect="openai",
        names=(),
        fields={},
        orders={},
    ),
    "GET /openapi.json": Endpoint(
        method="GET",
        path="/openapi.json",
        dialect="openai",
        names=(),
        fields={},
        orders={},
    ),
    "GET /docs": Endpoint(
        method="GET",
        path="/docs",
        dialect="openai",
        names=(),
        fields={},
        orders={},
    ),
}
"""Every endpoint by method and path, in the order of the spec; those without a body have no fields."""
