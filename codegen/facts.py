"""What follows from a message whatever the language: payloads, counts, numbers of words, least reals.

Views of several languages need these facts; none of them may come from another language's view.
"""

from __future__ import annotations

import math
import struct

from codegen.layout import Counted, Extensions, Ignored, Optional, Part, Rest
from codegen.model import Message, Payload, RealType

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


def payload_of(message: Message, size_field: str) -> Payload | None:
    """The payload whose byte count ``size_field`` is."""
    return next((payload for payload in message.payloads if payload.size == size_field), None)


def counts_of(message: Message) -> frozenset[str]:
    """Names of the fields that are repeat counts."""
    return frozenset(part.count for part in message.layout.walk() if isinstance(part, Counted))


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
