"""The numbers of a JSON Schema that llguidance would not keep, or not survive.

The library computes with floats, and reads some of them as a neighbour: such a constant would come out as
another number. Its ranges never end at the least integer of 64 bits, and an automaton for a multiple has a
state for every remainder.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from math import isinf, lcm
from typing import Any, Final, TypeGuard

_LARGEST: Final = 2**64 - 1
_LEAST: Final = -(2.0**63)
MOST_REMAINDERS: Final = 100_000
"""An automaton of these is made in about a second."""
MOST_CHARACTERS: Final = 300
"""Of one decimal. 17 digits tell every float from its neighbours; a coefficient of more than 308 is none."""
MOST_COMPUTED: Final = 70_000
"""Constants that are not short. All other requests wait while they are looked at, about 5 us each; of 16
digits and more a grammar text holds fewer, so that only exponents meet this.
"""


class SchemaError(ValueError):
    """The schema holds a number that is refused; the message says which and why."""


def _integer(digits: str) -> int:
    value = int(digits) if len(digits) <= len(str(-_LARGEST)) else _LARGEST + 1
    if value > _LARGEST or float(value) <= _LEAST:
        raise SchemaError(f"the number {digits[:40]} is too large")
    return value


def _decimal(text: str) -> Decimal:
    if len(text) > MOST_CHARACTERS:
        raise SchemaError(f"the number {text[:40]} has more than {MOST_CHARACTERS} characters")
    value = float(text)
    if isinf(value) or value <= _LEAST:
        raise SchemaError(f"the number {text[:40]} is too large")
    try:
        return Decimal(text)
    except ArithmeticError:  # an exponent of too many digits
        raise SchemaError(f"the number {text[:40]} is too small") from None


_DECODER: Final = json.JSONDecoder(parse_int=_integer, parse_float=_decimal)


def load(text: str, place: int | None = None) -> Any:
    """A JSON text with exact numbers, or the JSON value that begins at a place in a text; raises ValueError
    when it is none, SchemaError for a number too large, RecursionError.
    """
    return _DECODER.decode(text) if place is None else _DECODER.raw_decode(text, place)[0]


def _members(document: Any) -> Iterator[tuple[str, Any, bool]]:
    """Every value within a document with the key it has, if any, and whether it is part of a constant."""
    waiting: list[tuple[str, Any, bool]] = [("", document, False)]
    while waiting:
        key, value, constant = waiting.pop()
        constant = constant or key in ("const", "enum")
        yield key, value, constant
        if isinstance(value, dict):
            waiting += [(name, item, constant) for name, item in value.items()]
        elif isinstance(value, list):
            waiting += [("", item, constant) for item in value]


def _is_number(value: Any) -> TypeGuard[int | Decimal]:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def _read_by_the_library(value: Decimal) -> float:
    """One operation on two floats, which is exact only while both are."""
    _, digits, exponent = value.as_tuple()
    coefficient = float(int("".join(map(str, digits))))
    power = float(f"1e{abs(int(exponent))}")
    return coefficient * power if int(exponent) >= 0 else coefficient / power


def _is_plain(value: int | Decimal) -> bool:
    """Whether a constant is kept for certain, which is told faster than it is computed: with at most 15
    digits and 22 places the digits and the power are floats, in both spellings.
    """
    if isinstance(value, int):
        return -(10**15) < value < 10**15
    _, digits, exponent = value.as_tuple()
    return int(exponent) >= -22 and len(digits) + max(int(exponent), 0) <= 15


def _is_kept(value: int | Decimal) -> bool:
    """Whether a constant is the number it was, as it is written here and as the library writes it."""
    nearest = Decimal(repr(float(value)))
    if nearest != value:
        return False
    return isinstance(value, int) or all(
        _read_by_the_library(spelling) == abs(float(value)) for spelling in (value, nearest)
    )


def check(schema: dict[str, Any]) -> None:
    """Raises SchemaError for a constant that would be rounded, for too many constants to look at, and for
    multiples of too many remainders.
    """
    remainders = 1
    computed = 0
    for key, value, constant in _members(schema):
        if not _is_number(value):
            continue
        if constant and not _is_plain(value):
            computed += 1
            if computed > MOST_COMPUTED:
                raise SchemaError(f"more than {MOST_COMPUTED} constants of many digits or large exponents")
            if not _is_kept(value):
                raise SchemaError(f"the constant {str(value)[:40]} would be rounded")
        if key == "multipleOf" and value > 0:
            digits = "".join(map(str, Decimal(value).as_tuple().digits)).rstrip("0")
            remainders = lcm(remainders, int(digits[:20]))
        if remainders > MOST_REMAINDERS:
            raise SchemaError("the multiples have too many remainders")
