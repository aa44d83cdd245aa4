"""What a message looks like in Python: its attributes, and the numbers of words its layout allows.

Guarantees: attributes come in header order, a payload at the place of its byte count, extension keys last; a
repeat's count is no attribute (it is the length of the tuples); names are valid and unique.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from codegen import names
from codegen.facts import counts_of, least_real, payload_of, spans
from codegen.layout import Counted, Extensions, Optional, Part, Rest, Word
from codegen.model import HexType, Message, RealType, UintType, WireField, WireType

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
