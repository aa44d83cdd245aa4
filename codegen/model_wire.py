"""The wire half of the resolved model: types, limits, messages, launch, state tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from .findings import Location
from .layout import Layout
from .model_base import Item, JsonValue


@dataclass(frozen=True, slots=True)
class UintType(Item):
    """Decimal unsigned integer, ``low`` … ``high`` inclusive."""

    low: int
    high: int
    unit: str
    high_limit: str | None
    """Name of the limit that the upper bound refers to, if any."""
    unreadable: int | None
    """What a reader takes any other word for; None: any other word is a fault."""


@dataclass(frozen=True, slots=True)
class RealType(Item):
    """Decimal number; without ``finite`` also nan, inf, -inf. ``low``, ``high`` inclusive, ``above`` not."""

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
    """A field of a header: ``optional`` in an optional tail, ``repeated`` in a counted or open repeat.

    ``attribute`` is the name it has on the generated class: the plural of the name for repeated fields.
    """

    type: WireType
    optional: bool
    repeated: bool
    attribute: str
    unit: str


@dataclass(frozen=True, slots=True)
class Payload(Item):
    """Bytes after the header: ``attribute`` names them on the class, ``size`` is the header field."""

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
class FaultRule(Item):
    """A way a message can be wrong, by the name that readers of every language give it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """The fault some bytes must raise: the field ("" if none), the rule, for commands the code answered."""

    field: str
    rule: str
    code: str | None


@dataclass(frozen=True, slots=True)
class Example:
    """Exact bytes with what they must parse to (``gives``: texts, numbers, tuples) or their ``fault``."""

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
    asked_by: str | None
    """Extension key of a command that a request must have used to be sent this frame; None: sent to any
    request.
    """
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
