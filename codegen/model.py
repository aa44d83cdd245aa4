"""The resolved model: what the spec promises, after every reference, default and derived fact is settled.

Guarantees: immutable; complete (no view needs to look at the YAML again); ordered as written, because order
is part of the promise (fields are checked in it, keys travel in it); every item knows its path in the spec
(``frames.ECHO.fields.k``), its place in the file, since when it exists, how stable it is, and whether it is
deprecated. Views read it, nothing writes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .model_base import Deprecation, Item, JsonValue
from .model_http import (
    ApiError,
    BodyExample,
    Capability,
    Endpoint,
    Family,
    FinishReason,
    Header,
    HealthStatus,
    Hook,
    Http,
    HttpJoin,
    IdForm,
    JsonObject,
    JsonProperty,
    JsonType,
    Marker,
    Markup,
    RequestField,
    Setting,
    Step,
    WireError,
)
from .model_wire import (
    EnvironmentVariable,
    Example,
    Fault,
    FaultRule,
    Framing,
    Handshake,
    HexType,
    Key,
    Launch,
    Limit,
    Message,
    Payload,
    RealType,
    State,
    StateEvent,
    StateTable,
    UintType,
    ValueRule,
    WireField,
    WireType,
    WordType,
)

__all__ = [
    "ApiError",
    "BodyExample",
    "Capability",
    "Deprecation",
    "Endpoint",
    "EnvironmentVariable",
    "Example",
    "Family",
    "Fault",
    "FaultRule",
    "FinishReason",
    "Framing",
    "Handshake",
    "Header",
    "HealthStatus",
    "HexType",
    "Hook",
    "Http",
    "HttpJoin",
    "IdForm",
    "Item",
    "JsonObject",
    "JsonProperty",
    "JsonType",
    "JsonValue",
    "Key",
    "Launch",
    "Limit",
    "Marker",
    "Markup",
    "Message",
    "Model",
    "Payload",
    "Protocol",
    "RealType",
    "RequestField",
    "Reserved",
    "Setting",
    "State",
    "StateEvent",
    "StateTable",
    "Step",
    "UintType",
    "ValueRule",
    "WireError",
    "WireField",
    "WireType",
    "WordType",
]


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
    faults: tuple[FaultRule, ...]
    request: StateTable
    connection: StateTable
    wire_errors: tuple[WireError, ...]
    api_errors: tuple[ApiError, ...]
    capabilities: tuple[Capability, ...]
    families: tuple[Family, ...]
    markup: tuple[Markup, ...]
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
