"""A slow, plain reading of messages straight from the model: the oracle for examples.

Written for clarity and independently of every template, so that an example in the spec is judged by the
layout itself. The order of checks is that of the contract: the header's word count, then its words from
left to right, then (for commands: first, because framing comes before meaning) the payload and its
terminator.
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass, field

from . import layout as notation
from .model import (
    Example,
    HexType,
    JsonValue,
    Message,
    Model,
    Payload,
    RealType,
    UintType,
    WireField,
    WireType,
)

Value = int | float | str | bytes | list["Value"]


@dataclass(slots=True)
class Refused(Exception):
    """The fault the bytes raise."""

    field: str
    rule: str


@dataclass(slots=True)
class _Reading:
    """Words still to read, and what has been read."""

    message: Message
    words: list[str]
    values: dict[str, Value] = field(default_factory=dict)


def check_example(model: Model, message: Message, example: Example) -> str:
    """What is wrong with an example, or an empty text."""
    try:
        values = interpret(model, message, example.data)
    except Refused as refused:
        return _judge_fault(message, example, refused)
    if example.gives is None:
        return "the bytes parse, but the example says they must fail"
    for name, expected in example.gives.items():
        if name not in values:
            return f"the bytes give no {name!r}"
        if not _same(values[name], expected):
            return f"the bytes give {name} = {values[name]!r}, the example says {expected!r}"
    return ""


def _judge_fault(message: Message, example: Example, refused: Refused) -> str:
    got = f"{refused.rule} in {refused.field!r}" if refused.field else refused.rule
    if example.fault is None:
        return f"the bytes raise the fault {got}"
    expected = example.fault
    if (refused.rule, refused.field) != (expected.rule, expected.field):
        told = f"{expected.rule} in {expected.field!r}" if expected.field else expected.rule
        return f"the bytes raise the fault {got}, the example says {told}"
    code = "BAD_FRAME" if refused.rule == "terminator" else "BAD_REQUEST"
    if message.direction == "command" and expected.code != code:
        return f"the engine answers {code}, the example says {expected.code or 'nothing'}"
    return ""


def interpret(model: Model, message: Message, data: bytes) -> dict[str, Value]:
    """Values by attribute of the single message in ``data``. Raises :class:`Refused`."""
    if message is model.handshake.message:
        _, sentinel, data = data.partition(model.handshake.sentinel)
        if not sentinel:
            raise Refused("", "truncated")
    header, terminator, rest = data.partition(model.framing.terminator.encode("ascii"))
    if not terminator:
        raise Refused("", "truncated")
    separators = "".join(model.framing.separators)
    words = [word for word in re.split(f"[{re.escape(separators)}]+", header.decode("latin-1")) if word]
    if not words or words[0] != message.layout.kind:
        raise Refused("", "unknown_kind")
    reading = _Reading(message, words[1:])
    refused: Refused | None = None
    try:
        if len(reading.words) < _fewest(message.layout.parts):
            raise Refused("", "word_count")
        _read_parts(reading, message.layout.parts)
        if reading.words:
            raise Refused("", "word_count")
        _check_rules(reading)
    except Refused as caught:
        refused = caught
    sizes_known = all(isinstance(reading.values.get(payload.size, 0), int) for payload in message.payloads)
    if refused is not None and not (message.direction == "command" and sizes_known):
        raise refused
    _read_payloads(model, reading, rest, refused)
    if refused is not None:
        raise refused
    return reading.values


def _fewest(parts: tuple[notation.Part, ...]) -> int:
    """Words a header has at least, before any repeat is counted."""
    fewest = 0
    for part in parts:
        if isinstance(part, notation.Word | notation.Literal):
            fewest += 1
        elif isinstance(part, notation.Rest):
            fewest += part.at_least
    return fewest


def _read_parts(reading: _Reading, parts: tuple[notation.Part, ...]) -> None:
    for part in parts:
        match part:
            case notation.Literal(text=text):
                if _next(reading) != text:
                    raise Refused("", "constant")
            case notation.Word(name=name):
                described = reading.message.field(name)
                reading.values[described.attribute] = _convert(described.type, _next(reading), name)
            case notation.Optional(parts=inner):
                if reading.words:
                    _read_parts(reading, inner)
            case notation.Counted():
                _read_counted(reading, part)
            case notation.Rest(name=name, at_least=at_least):
                if len(reading.words) < at_least:
                    raise Refused("", "word_count")
                described = reading.message.field(name)
                reading.values[described.attribute] = [
                    _convert(described.type, word, name) for word in reading.words
                ]
                reading.words = []
            case notation.Ignored():
                reading.words = []
            case notation.Extensions():
                _read_keys(reading)


def _next(reading: _Reading) -> str:
    if not reading.words:
        raise Refused("", "word_count")
    return reading.words.pop(0)


def _read_counted(reading: _Reading, part: notation.Counted) -> None:
    count = reading.values[part.count]
    described: list[WireField] = [reading.message.field(word.name) for word in part.words]
    if not isinstance(count, int) or len(reading.words) < count * len(described):
        raise Refused("", "word_count")
    columns: list[list[Value]] = [[] for _ in described]
    for _ in range(count):
        for entry, column in zip(described, columns, strict=True):
            column.append(_convert(entry.type, _next(reading), entry.name))
    for entry, column in zip(described, columns, strict=True):
        reading.values[entry.attribute] = column


def _read_keys(reading: _Reading) -> None:
    known = {key.name: key for key in reading.message.keys}
    while reading.words:
        name, equals, text = reading.words.pop(0).partition("=")
        if not equals or name not in known:
            raise Refused(name, "unknown_key")
        if name in reading.values:
            raise Refused(name, "duplicate_key")
        if not text.isascii() or not text.isdigit():
            raise Refused(name, "word")
        reading.values[name] = _convert(known[name].type, text, name)


def _convert(wire_type: WireType, text: str, name: str) -> Value:
    match wire_type:
        case UintType():
            if not re.fullmatch(r"[+-]?[0-9]+", text):
                raise Refused(name, "word")
            number = int(text)
            if not wire_type.low <= number <= wire_type.high:
                raise Refused(name, "range")
            return number
        case RealType():
            return _real(wire_type, text, name)
        case HexType():
            if not re.fullmatch(r"([0-9a-fA-F]{2})*", text):
                raise Refused(name, "word")
            return text
        case _:
            return text


def _real(wire_type: RealType, text: str, name: str) -> float:
    special = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
    if text in special and not wire_type.finite:
        return special[text]
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
        raise Refused(name, "word")
    number = float(text)
    judged = struct.unpack("<f", struct.pack("<f", number))[0] if wire_type.single_precision else number
    too_low = wire_type.low is not None and judged < wire_type.low
    too_high = wire_type.high is not None and judged > wire_type.high
    if too_low or too_high or (wire_type.above is not None and judged <= wire_type.above):
        raise Refused(name, "range")
    return number


def _check_rules(reading: _Reading) -> None:
    for entry in reading.message.rules:
        condition = reading.values.get(entry.only_with, 0)
        met = isinstance(condition, int) and condition > 0
        if reading.values.get(entry.field) == entry.value and not met:
            raise Refused(entry.field, "range")


def _read_payloads(model: Model, reading: _Reading, rest: bytes, refused: Refused | None) -> None:
    payloads: tuple[Payload, ...] = reading.message.payloads
    if not payloads:
        return
    for payload in payloads:
        size = reading.values.get(payload.size, 0)
        if not isinstance(size, int):
            return
        if len(rest) < size:
            raise refused or Refused("", "truncated")
        reading.values[payload.attribute], rest = rest[:size], rest[size:]
    terminator = model.framing.payload_terminator.encode("ascii")
    if rest[: len(terminator)] != terminator:
        if refused is not None and not rest:
            raise refused
        raise Refused("", "terminator")


def _same(value: Value, expected: JsonValue) -> bool:
    if isinstance(value, bytes):
        return isinstance(expected, str) and value == expected.encode("utf-8")
    if isinstance(value, list):
        return (
            isinstance(expected, tuple)
            and len(value) == len(expected)
            and all(_same(left, right) for left, right in zip(value, expected, strict=True))
        )
    if isinstance(value, float) and isinstance(expected, float) and math.isnan(value):
        return math.isnan(expected)
    return value == expected and isinstance(value, str) == isinstance(expected, str)
