"""C decisions shared by the writing and the reading half: member types, literals, names, structs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..layout import Counted, Optional, Part, Rest, Word
from ..model import HexType, Message, RealType, UintType, WireField, WordType

WIDTHS = (8, 16, 32, 64)


def width(high: int) -> int:
    """Bits of the smallest unsigned C type that holds ``high``."""
    return next(bits for bits in WIDTHS if high < 2**bits)


def uint(value: int) -> str:
    """A C literal that is at least as wide as the value needs and never signed."""
    return f"UINT64_C({value})" if value > 2**32 - 1 else f"{value}u"


def real(value: float) -> str:
    """A C double literal with the same value."""
    if math.isinf(value):
        return "HUGE_VAL" if value > 0 else "-HUGE_VAL"
    return repr(float(value))


def decimals(kind: RealType) -> int | None:
    """Digits after the point of a ``%.Nf`` format; None for ``%.Ng``."""
    text = kind.print.removeprefix("%.")
    return int(text[:-1]) if text.endswith("f") else None


def c_type(kind: UintType | RealType | WordType | HexType) -> str:
    """The C type of one value."""
    if isinstance(kind, UintType):
        return f"uint{width(kind.high)}_t"
    if isinstance(kind, RealType):
        return "double"
    return "colibri_bytes"


@dataclass(frozen=True, slots=True)
class Member:
    """A line of a struct: its declaration and what it means."""

    declaration: str
    doc: str


def struct_name(message: Message) -> str:
    """The struct of a message: ``colibri_data``."""
    return f"colibri_{message.name.lower()}"


def presence(part: Optional) -> str:
    """The member that says whether an optional tail is there: ``has_`` and the tail's first field."""
    first = part.parts[0]
    if isinstance(first, Word):
        return f"has_{first.name}"
    raise ValueError("an optional tail starts with a field")


def members(message: Message) -> list[Member]:
    """Members of the message's struct in header order, payloads and extension keys last."""
    found = _layout_members(message, message.layout.parts)
    for payload in message.payloads:
        found.append(Member(f"colibri_bytes {payload.attribute}", payload.holds))
    for key in message.keys:
        found.append(Member(f"bool has_{key.name}", f"the key {key.name} is given"))
        found.append(Member(f"{c_type(key.type)} {key.name}", key.doc))
    return found


def _layout_members(message: Message, parts: tuple[Part, ...]) -> list[Member]:
    sizes = {payload.size for payload in message.payloads}
    found: list[Member] = []
    for part in parts:
        if isinstance(part, Word) and part.name not in sizes:
            field = message.field(part.name)
            found.append(Member(f"{c_type(field.type)} {part.name}", about(field)))
        elif isinstance(part, Optional):
            first = part.parts[0]
            if isinstance(first, Word) and first.name not in sizes:
                found.append(Member(f"bool {presence(part)}", f"{first.name} and what follows it is there"))
            found += _layout_members(message, part.parts)
        elif isinstance(part, Counted):
            for word in part.words:
                field = message.field(word.name)
                found.append(
                    Member(f"const {c_type(field.type)} *{field.attribute}", f"{about(field)} [{part.count}]")
                )
        elif isinstance(part, Rest):
            found.append(Member(f"colibri_bytes {part.name}", about(message.field(part.name))))
    return found


def about(field: WireField) -> str:
    """One line on a field: its doc and its unit."""
    doc = field.doc.rstrip(".")
    return f"{doc} ({field.unit})" if field.unit else doc
