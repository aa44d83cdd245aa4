"""The resolved model: what the spec promises, after every reference, default and derived fact is settled.

Guarantees: immutable; complete (no view needs to look at the YAML again); ordered as written, because order is
part of the promise (fields are checked in it, keys travel in it); every item knows its path in the spec
(``frames.ECHO.fields.k``), its place in the file, since when it exists, how stable it is, and whether it is
deprecated. Views read it, nothing writes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from .findings import Location
from .layout import Layout

JsonValue = None | bool | int | float | str | tuple["JsonValue", ...] | Mapping[str, "JsonValue"]


@dataclass(frozen=True, slots=True)
class Deprecation:
    """What replaces an item, since when it is deprecated, and in which version it goes."""

    replaced_by: str | None
    since: str
    remove_in: str | None
    note: str


@dataclass(frozen=True, slots=True)
class Item:
    """What every item of the spec has in common."""

    path: str
    name: str
    doc: str
    location: Location
    since: str
    stability: Literal["stable", "experimental"]
    deprecated: Deprecation | None
    allow: Mapping[str, str]
    """Lint rules this one item is excused from, each with the reason."""


# ---------------------------------------------------------------- wire values


@dataclass(frozen=True, slots=True)
class UintType(Item):
    """Decimal unsigned integer, ``low`` … ``high`` inclusive."""

    low: int
    high: int
    unit: str
    high_limit: str | None
    """Name of the limit that the upper bound refers to, if any."""


@dataclass(frozen=True, slots=True)
class RealType(Item):
    """Decimal number. ``finite`` False also takes nan, inf and -inf. ``low``/``high`` inclusive, ``above`` exclusive."""

    finite: bool
    low: float | None
    high: float | None
    above: float | None
    single_precision: bool
    """The reader of the other side keeps it in single precision: bounds are judged on that value too."""
    print: str
    """printf format a writer uses, for example ``%.6f``."""
    unit: str


@dataclass(frozen=True, slots=True)
class WordType(Item):
    """One word of any visible bytes."""


@dataclass(frozen=True, slots=True)
class HexType(Item):
    """Pairs of hexadecimal digits."""


WireType = UintType | RealType | WordType | HexType


@dataclass(frozen=True, slots=True)
class Limit(Item):
    """A number nobody may go over; ``error`` names the api error a client gets, where one can."""

    value: int
    unit: str
    enforced: tuple[str, ...]
    error: str | None


@dataclass(frozen=True, slots=True)
class WireField(Item):
    """A field of a header. ``optional`` fields are in an optional tail; ``repeated`` ones in a counted or open repeat.

    ``attribute`` is the name it has on the generated class: the plural of the name for repeated fields.
    """

    type: WireType
    optional: bool
    repeated: bool
    attribute: str
    unit: str


@dataclass(frozen=True, slots=True)
class Payload(Item):
    """Bytes after the header. ``attribute`` names them on the class (``payload`` for frames); ``size`` is the header field."""

    attribute: str
    size: str
    holds: str
    drained: bool
    """The bytes are consumed and not kept."""
    needs: str | None


@dataclass(frozen=True, slots=True)
class Key(Item):
    """An extension key of a command, in wire order."""

    type: UintType
    needs: str | None


@dataclass(frozen=True, slots=True)
class ValueRule(Item):
    """``field`` may have ``value`` only when the key ``only_with`` is present and above zero."""

    field: str
    value: int
    only_with: str


@dataclass(frozen=True, slots=True)
class Fault:
    """The fault some bytes must raise: the field ("" if none), the rule, and for commands the wire code answered."""

    field: str
    rule: str
    code: str | None


@dataclass(frozen=True, slots=True)
class Example:
    """Exact bytes with what they must parse to (``gives``) or the ``fault`` they must raise. Values are text, int, float or tuples."""

    data: bytes
    gives: Mapping[str, JsonValue] | None
    fault: Fault | None
    location: Location


@dataclass(frozen=True, slots=True)
class Message(Item):
    """A frame (engine → gateway) or a command (gateway → engine)."""

    direction: Literal["frame", "command"]
    layout: Layout
    fields: tuple[WireField, ...]
    """Fields in header order, the repeated ones included."""
    payloads: tuple[Payload, ...]
    keys: tuple[Key, ...]
    rules: tuple[ValueRule, ...]
    advisory: bool
    no_effect: bool
    examples: tuple[Example, ...]

    def field(self, name: str) -> WireField:
        """The field called ``name``. Raises KeyError."""
        for candidate in self.fields:
            if candidate.name == name:
                return candidate
        raise KeyError(name)


@dataclass(frozen=True, slots=True)
class Handshake(Item):
    """The sentinel that ends the banner and the STAT line after it."""

    sentinel: bytes
    message: Message


@dataclass(frozen=True, slots=True)
class Framing(Item):
    """How messages are cut out of the byte stream."""

    encoding: str
    separators: tuple[str, ...]
    terminator: str
    write_separator: str
    payload_terminator: str
    length_unit: str
    skip_empty_lines: bool


@dataclass(frozen=True, slots=True)
class EnvironmentVariable(Item):
    """A variable the gateway sets for, or passes through to, the engine."""

    type: str
    value: str | None
    passed_through: bool
    low: int | None
    high: int | None


@dataclass(frozen=True, slots=True)
class Launch(Item):
    """How the engine process is started and ended."""

    argv: tuple[WireField, ...]
    environment: tuple[EnvironmentVariable, ...]
    sigpipe: str
    orderly_end: str


# ---------------------------------------------------------------- states


@dataclass(frozen=True, slots=True)
class StateEvent(Item):
    """An event of a state table that is not a frame: a doing or a deadline of the gateway."""


@dataclass(frozen=True, slots=True)
class State(Item):
    """One state and where each event leads. No transitions = terminal."""

    transitions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StateTable(Item):
    """A state machine as data."""

    initial: str
    events: tuple[StateEvent, ...]
    states: tuple[State, ...]

    @property
    def terminal(self) -> tuple[str, ...]:
        """Names of the states nothing leads out of."""
        return tuple(state.name for state in self.states if not state.transitions)


# ---------------------------------------------------------------- errors


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
    """What a wire error becomes: ``condition`` is ``always``, ``ids``, ``to_cancel`` or ``otherwise``; ``error`` None = nobody is told."""

    condition: str
    error: str | None


@dataclass(frozen=True, slots=True)
class WireError(Item):
    """A code (or free spelling) of an ERROR frame.

    ``details``: patterns of the words after the code, ``<name>`` for a number; ``spelled``: patterns of whole free
    texts, ``...`` at the end for anything. ``without_numbers`` is the api error when no pattern gave numbers.
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


# ---------------------------------------------------------------- HTTP


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
    """A parsed type expression: kind is string, integer, number, boolean, object, list, literal, reference, any_of, text or html."""

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
    """A model family: which ``model_type`` values it serves (shell patterns), what it can, its default stops, its built-in template."""

    model_types: tuple[str, ...]
    can: tuple[str, ...]
    stops: tuple[str, ...]
    template: str


@dataclass(frozen=True, slots=True)
class Setting(Item):
    """A flag and/or an environment variable of ``coli serve``. ``type``: directory, string, secret, integer, number, boolean, choice, family."""

    flag: str | None
    env: str | None
    type: str
    default: JsonValue
    low: float | int | None
    high: float | int | None
    choices: tuple[str, ...]
    unit: str
    multiple: bool


@dataclass(frozen=True, slots=True)
class Reserved:
    """Names that were promised once and may never come back."""

    frames: tuple[str, ...]
    keys: tuple[str, ...]
    error_codes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Protocol(Item):
    """The promise as a whole; the tolerances are those of today's readers."""

    version: str
    promise: str
    unknown_frames: str
    unknown_keys: str
    unknown_errors: str
    trailing_words: str
    unknown_fields: str
    sections: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Model:
    """Everything. Tuples are in spec order."""

    protocol: Protocol
    framing: Framing
    limits: tuple[Limit, ...]
    types: tuple[WireType, ...]
    launch: Launch
    handshake: Handshake
    commands: tuple[Message, ...]
    frames: tuple[Message, ...]
    request: StateTable
    connection: StateTable
    wire_errors: tuple[WireError, ...]
    api_errors: tuple[ApiError, ...]
    capabilities: tuple[Capability, ...]
    families: tuple[Family, ...]
    settings: tuple[Setting, ...]
    http: Http
    hooks: tuple[Hook, ...]
    endpoints: tuple[Endpoint, ...]
    objects: tuple[JsonObject, ...]
    reserved: Reserved
    source: str
    """Path of the spec file, as given."""
    fingerprint_base: str
    """SHA-256 of the mandatory wire layout, hexadecimal."""
    fingerprint_full: str
    """SHA-256 of the whole model without prose, hexadecimal."""

    def limit(self, name: str) -> Limit:
        """The limit called ``name``. Raises KeyError."""
        for candidate in self.limits:
            if candidate.name == name:
                return candidate
        raise KeyError(name)
