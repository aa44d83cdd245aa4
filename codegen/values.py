"""The small notations inside scalars: integers, numbers, ranges, references, plain JSON values.

Guarantees: a text is either read completely or refused (None); nothing is evaluated. ``2^64-1`` is the only
arithmetic, a power of two with an optional one less, because the bounds of integer types are written so.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final

from .source import Mapping, Node, Scalar

_POWER = re.compile(r"2\^([0-9]{1,3})(-1)?\Z")
_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)\Z")
_DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?\Z")
_REFERENCE = re.compile(r"\$([a-z_]+)\.([A-Za-z0-9_]+)\Z")

NON_FINITE: Final = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


@dataclass(frozen=True, slots=True)
class Reference:
    """``$section.name``."""

    section: str
    name: str

    def __str__(self) -> str:
        return f"${self.section}.{self.name}"


Bound = int | float | str | Reference
"""One end of a range: a number, the word ``max``, or a reference."""


@dataclass(frozen=True, slots=True)
class RangeText:
    """``low..high``, both inclusive, as written. ``high_offset`` is the column of the upper end inside the
    text.
    """

    low: Bound
    high: Bound
    high_offset: int


def parse_integer(text: str) -> int | None:
    """``-12``, ``65536``, ``2^63`` or ``2^64-1``; at most 2^999, no leading zeros."""
    if match := _POWER.match(text):
        return int(2 ** int(match[1])) - (1 if match[2] else 0)
    return int(text) if _INTEGER.match(text) and len(text) < 320 else None


def parse_number(text: str) -> int | float | None:
    """An integer as int, a decimal as float; None for anything else, non-finite words included."""
    integer = parse_integer(text)
    if integer is not None:
        return integer
    if not _DECIMAL.match(text):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def parse_reference(text: str) -> Reference | None:
    """``$limits.top_k`` → Reference("limits", "top_k")."""
    match = _REFERENCE.match(text)
    return Reference(match[1], match[2]) if match else None


def parse_bound(text: str) -> Bound | None:
    """A number, ``max`` or a reference."""
    if text == "max":
        return text
    number = parse_number(text)
    return number if number is not None else parse_reference(text)


def parse_range(text: str) -> RangeText | None:
    """``1..$limits.top_k`` → its two ends."""
    low_text, dots, high_text = text.partition("..")
    low, high = parse_bound(low_text), parse_bound(high_text)
    if not dots or low is None or high is None:
        return None
    return RangeText(low, high, len(low_text) + 2)


def parse_boolean(text: str) -> bool | None:
    """Exactly ``true`` or ``false``."""
    return {"true": True, "false": False}.get(text)


def scalar_value(node: Scalar) -> Json:
    """The JSON value of a leaf: quoted text is text; plain null, true, false and numbers are themselves.

    ``nan``, ``inf`` and ``-inf`` are floats, so that examples can speak of them.
    """
    if not node.plain:
        return node.text
    if node.text in ("null", ""):
        return None
    boolean = parse_boolean(node.text)
    if boolean is not None:
        return boolean
    if node.text in NON_FINITE:
        return NON_FINITE[node.text]
    number = parse_number(node.text)
    return node.text if number is None else number


def json_value(node: Node) -> Json:
    """The JSON value of a whole subtree."""
    if isinstance(node, Scalar):
        return scalar_value(node)
    if isinstance(node, Mapping):
        return {entry.key.text: json_value(entry.value) for entry in node}
    return [json_value(item) for item in node]
