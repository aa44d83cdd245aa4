"""What a message looks like in Python: its attributes, and the numbers of words its layout allows.

Guarantees: attributes come in header order, a payload at the place of its byte count, extension keys last; a
repeat's count is no attribute (it is the length of the tuples); names are valid and unique.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from codegen import names
from codegen.layout import Counted, Extensions, Ignored, Optional, Part, Rest, Word
from codegen.model import HexType, Message, Payload, RealType, UintType, WireField, WireType

LOCALS = frozenset(
    {"header", "found", "line", "place", "word", "values", "reals", "keys", "literal", "real", "pairs"}
)
"""Names the generated functions use themselves."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of a message class and argument of its writer. ``element``: type of a tuple's members."""

    name: str
    type: str
    default: str | None
    doc: str
    element: str | None = None
    keyword_only: bool = False
    """An extension key: its place among the others may change when keys are added."""


def local(name: str) -> str:
    """``name`` as a local variable of a generated function."""
    return f"{name}_" if name in LOCALS else name


def python_type(wire_type: WireType) -> str:
    """The Python type of a word."""
    if isinstance(wire_type, UintType):
        return "int"
    return "float" if isinstance(wire_type, RealType) else "str"


def payload_of(message: Message, size_field: str) -> Payload | None:
    """The payload whose byte count ``size_field`` is."""
    return next((payload for payload in message.payloads if payload.size == size_field), None)


def counts_of(message: Message) -> frozenset[str]:
    """Names of the fields that are repeat counts."""
    return frozenset(part.count for part in message.layout.walk() if isinstance(part, Counted))


def attributes(message: Message) -> list[Attribute]:
    """Attributes of the class of ``message``, in order."""
    return list(_attributes(message, message.layout.parts, optional=False))


def _attributes(message: Message, parts: tuple[Part, ...], *, optional: bool) -> Iterator[Attribute]:
    for part in parts:
        if isinstance(part, Word):
            yield from _word_attribute(message, message.field(part.name), optional=optional)
        elif isinstance(part, Rest):
            field = message.field(part.name)
            yield Attribute(field.attribute, "tuple[str, ...]", None, describe(field), "str")
        elif isinstance(part, Counted):
            for word in part.words:
                field = message.field(word.name)
                element = python_type(field.type)
                kind = f"tuple[{element}, ...]"
                yield Attribute(
                    field.attribute,
                    f"{kind} | None" if optional else kind,
                    "None" if optional else None,
                    describe(field),
                    element,
                )
        elif isinstance(part, Optional):
            yield from _attributes(message, part.parts, optional=True)
        elif isinstance(part, Extensions):
            for key in message.keys:
                tail = f" Needs: {key.needs}." if key.needs else ""
                doc = f"{sentence(key.doc)} {key.type.low} … {key.type.high}.{tail} None: absent."
                yield Attribute(key.name, "int | None", "None", doc, keyword_only=True)


def _word_attribute(message: Message, field: WireField, *, optional: bool) -> Iterator[Attribute]:
    payload = payload_of(message, field.name)
    if payload is not None:
        if not payload.drained:
            yield Attribute(payload.attribute, "bytes", 'b""' if optional else None, sentence(payload.holds))
    elif field.name not in counts_of(message):
        kind = python_type(field.type)
        yield Attribute(
            field.attribute,
            f"{kind} | None" if optional else kind,
            "None" if optional else None,
            describe(field),
        )


def describe(field: WireField) -> str:
    """Doc of a field with its unit and range."""
    parts = [sentence(field.doc)]
    if field.unit:
        parts.append(f"Unit: {field.unit}.")
    if isinstance(field.type, UintType):
        parts.append(f"{field.type.low} … {field.type.high}.")
    if field.optional:
        parts.append("None: absent.")
    return " ".join(parts)


def sentence(text: str) -> str:
    """``text`` with a capital first letter and a full stop."""
    capital = text[:1].upper() + text[1:]
    return capital if capital.endswith((".", "!", "?")) else f"{capital}."


# ---------------------------------------------------------------- numbers of words

Span = tuple[int, int | None]
"""Allowed numbers of words, both ends inclusive; None is no end."""


def spans(message: Message) -> list[Span]:
    """Numbers of words the layout allows, the kind counted, as ascending spans that do not touch."""
    merged: list[Span] = []
    for low, high in sorted(_spans(message.layout.parts, 1)):
        if merged and (merged[-1][1] is None or low <= merged[-1][1] + 1):
            last_low, last_high = merged[-1]
            merged[-1] = (last_low, None if high is None or last_high is None else max(last_high, high))
        else:
            merged.append((low, high))
    return merged


def _spans(parts: tuple[Part, ...], words: int) -> list[Span]:
    for part in parts:
        if isinstance(part, Optional):
            return [(words, words), *_spans(part.parts, words)]
        if isinstance(part, Rest):
            return [(words + part.at_least, None)]
        if isinstance(part, Ignored | Counted | Extensions):
            return [(words, None)]
        words += 1
    return [(words, words)]


def miscounted(message: Message, found: str = "found") -> str:
    """Python condition: the number of words is one that no form of the layout has."""
    allowed = spans(message)
    if len(allowed) == 1 and allowed[0][1] is None:
        return f"{found} < {allowed[0][0]}"
    tests = []
    for low, high in allowed:
        if high is None:
            tests.append(f"{found} < {low}")
        elif low == high:
            tests.append(f"{found} != {low}")
        else:
            tests.append(f"not {low} <= {found} <= {high}")
    return " and ".join(tests)


# ---------------------------------------------------------------- numbers in single precision


def least_real(kind: RealType, *, printed: bool) -> float | None:
    """The least double that the other side takes, inclusive; None without a lower bound.

    In single precision the bound is judged on the rounded value, so an exclusive 0 moves up to the least
    double that does not round to 0; with ``printed`` the value also has to survive the writer's own format.
    """
    if kind.above is None:
        return kind.low
    low, high = kind.above, max(kind.above + 1, 1.0) if kind.high is None else kind.high
    above = kind.above
    while True:  # bisection over doubles: both ends are of one sign, so their bit patterns are ordered
        middle = _from_bits((_bits(low) + _bits(high)) // 2)
        if middle in (low, high):
            return high
        value = float(kind.print % middle) if printed else middle
        if (single(value) if kind.single_precision else value) > above:
            high = middle
        else:
            low = middle


def single(value: float) -> float:
    """``value`` as single precision keeps it."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _bits(value: float) -> int:
    return int(struct.unpack("<q", struct.pack("<d", value))[0])


def _from_bits(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<q", bits))[0])


def value_check(kind: WireType, value: str) -> tuple[str, str] | None:
    """Python condition that ``value`` cannot be written, and the rule it breaks; None if every value can."""
    if isinstance(kind, UintType):
        return f"not {kind.low} <= {value} <= {kind.high}", "range"
    if isinstance(kind, RealType):
        low = least_real(kind, printed=True)
        if low is not None or kind.high is not None:
            low_text = "-inf" if low is None else repr(low)
            high_text = "inf" if kind.high is None else repr(kind.high)
            return f"not {low_text} <= {value} <= {high_text}", "range"
        return (f"not isfinite({value})", "range") if kind.finite else None
    if isinstance(kind, HexType):
        return f"not is_hexadecimal({value})", "word"
    return f"not is_visible({value})", "word"


def class_name(message: Message) -> str:
    """Name of the message's class."""
    return names.pascal(message.name)
