"""The HTTP half of the resolved model: errors, endpoints, fields, orders, shapes, families, settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from .model_base import Item, JsonValue


@dataclass(frozen=True, slots=True)
class ApiError(Item):
    """One error of the HTTP API. ``param``/``message`` None with ``*_given`` True = the raiser says them."""

    status: int
    code: str | None
    type: str
    anthropic_type: str
    param: str | None
    param_given: bool
    message: str | None
    """Template with ``{placeholders}``."""
    message_given: bool
    anthropic_message: str | None
    placeholders: tuple[str, ...]
    retry: Literal["never", "safe", "after"]
    retry_after: int | None
    close: bool


@dataclass(frozen=True, slots=True)
class HttpJoin:
    """What a wire error becomes.

    ``condition`` is ``always``, ``ids``, ``to_cancel`` or ``otherwise``; ``error`` None: nobody is told.
    """

    condition: str
    error: str | None


@dataclass(frozen=True, slots=True)
class WireError(Item):
    """A code (or free spelling) of an ERROR frame.

    ``details``: patterns of the words after the code, ``<name>`` for a number; ``spelled``: patterns of whole
    free texts, ``...`` at the end for anything. ``without_numbers``: the api error when no pattern gave any.
    """

    on_wire: bool
    fallback: bool
    details: tuple[str, ...]
    spelled: tuple[str, ...]
    http: tuple[HttpJoin, ...]
    without_numbers: str | None
    message: str | None
    cause: str
    remedy: str


@dataclass(frozen=True, slots=True)
class RequestField(Item):
    """A field of a request body and how it is checked.

    ``kind`` is one of accept, integer, number, boolean, string, one_of, object, strings, neutral, any, shape.
    Absent always passes unless ``required``; null is treated as absent unless ``null_refused``.
    """

    kind: str
    schema: str | None
    """Type expression for documents (the notation of ``objects``) where the kind does not say it."""
    accepted: tuple[JsonValue, ...]
    low: float | int | None
    high: float | int | None
    high_limit: str | None
    """Limit, ``server.FACT`` or None: where the upper bound comes from."""
    above: float | None
    single_precision: bool
    null_refused: bool
    required: bool
    off: tuple[JsonValue, ...]
    """Values that switch the feature off and pass."""
    neutral: str | None
    """zero, one or empty: the harmless value of a field that is not served."""
    empty_is_absent: bool
    default: JsonValue | None
    default_setting: str | None
    clamp_setting: str | None
    error: str | None
    """Name of the api error of a value out of range or of the wrong type."""
    otherwise: str | None
    """Second api error of a shape, for a value that is understood but not served."""
    refuse: Mapping[str, str]
    """Values (JSON text) that have the right type and are refused all the same, each with its api error."""
    needs: str | None
    alternative: str | None
    loses_to: str | None
    zero_with: str | None
    only_with: str | None
    shape: str | None
    no_effect: bool


@dataclass(frozen=True, slots=True)
class Hook(Item):
    """A named step of the gateway's own flow inside an order of checks."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of an order: a request field by name, or a hook."""

    name: str
    is_hook: bool


@dataclass(frozen=True, slots=True)
class BodyExample:
    """A request body that the endpoint takes."""

    title: str
    body: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Endpoint(Item):
    """One method on one path. ``orders`` maps an order's name to its steps, all splices done."""

    method: str
    route: str
    dialect: Literal["openai", "anthropic"]
    fields: tuple[RequestField, ...]
    orders: Mapping[str, tuple[Step, ...]]
    answer: str
    stream: tuple[str, ...]
    errors: tuple[str, ...]
    examples: tuple[BodyExample, ...]


@dataclass(frozen=True, slots=True)
class JsonType:
    """A parsed type expression.

    ``kind`` is string, integer, number, boolean, object, list, literal, reference, any_of, text or html.
    """

    kind: str
    of: tuple[JsonType, ...] = ()
    literals: tuple[str, ...] = ()
    reference: str | None = None
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class JsonProperty:
    """A property of an object; ``optional`` ones may be absent."""

    name: str
    type: JsonType
    optional: bool


@dataclass(frozen=True, slots=True)
class JsonObject(Item):
    """A JSON shape: properties, or a choice of types (``any_of``)."""

    properties: tuple[JsonProperty, ...]
    any_of: tuple[JsonType, ...]


@dataclass(frozen=True, slots=True)
class Header(Item):
    """A response header and when it is sent."""

    sent: str


@dataclass(frozen=True, slots=True)
class IdForm(Item):
    """Form of a random id: prefix and number of hexadecimal digits."""

    prefix: str
    digits: int


@dataclass(frozen=True, slots=True)
class FinishReason(Item):
    """An outcome and its word in each dialect."""

    openai: str
    anthropic: str


@dataclass(frozen=True, slots=True)
class HealthStatus(Item):
    """A word of GET /health and the status it is sent with."""

    status: int


@dataclass(frozen=True, slots=True)
class Http(Item):
    """Facts of the API that belong to no single endpoint."""

    order: tuple[str, ...]
    errors: tuple[str, ...]
    """Api errors any request may get before an endpoint sees it."""
    open_paths: tuple[str, ...]
    anthropic_paths: tuple[str, ...]
    headers: tuple[Header, ...]
    ids: tuple[IdForm, ...]
    cors_methods: tuple[str, ...]
    cors_headers: tuple[str, ...]
    cors_header_prefixes: tuple[str, ...]
    cors_expose: tuple[str, ...]
    cors_max_age: int
    loopback_hosts: tuple[str, ...]
    finish_reasons: tuple[FinishReason, ...]
    health_statuses: tuple[HealthStatus, ...]


@dataclass(frozen=True, slots=True)
class Capability(Item):
    """Something an engine family may be able to do."""


@dataclass(frozen=True, slots=True)
class Family(Item):
    """A model family: the ``model_type`` values it serves (shell patterns), what it can, stops, template."""

    model_types: tuple[str, ...]
    can: tuple[str, ...]
    stops: tuple[str, ...]
    template: str


@dataclass(frozen=True, slots=True)
class Marker(Item):
    """A text that marks a part of a chat."""

    text: str


@dataclass(frozen=True, slots=True)
class Markup(Item):
    """What the chats of one template are marked with; families name it as their ``template``."""

    markers: tuple[Marker, ...]


@dataclass(frozen=True, slots=True)
class Setting(Item):
    """A flag and/or an environment variable of ``coli serve``.

    ``type`` is directory, string, secret, integer, number, boolean, choice or family.
    """

    flag: str | None
    env: str | None
    type: str
    default: JsonValue
    low: float | int | None
    high: float | int | None
    choices: tuple[str, ...]
    unit: str
    multiple: bool
