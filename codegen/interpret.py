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
        _read_parts(model, reading, message.layout.parts)
        if reading.words:
            raise Refused("", "word_count")
        _check_rules(reading)
    except Refused as caught:
        refused = caught
    sizes = _sizes(message, words[1:])
    if refused is not None and (message.direction == "frame" or sizes is None):
        raise refused
    if (
        sizes is not None
    ):  # None without a refusal: a size at no fixed place, which is a lint error of its own
        _read_payloads(model, reading, rest, sizes)
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


def _read_parts(model: Model, reading: _Reading, parts: tuple[notation.Part, ...]) -> None:
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
                    _read_parts(model, reading, inner)
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
                _read_keys(model, reading)


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


_PAIR = re.compile(r"([a-z_]+)=([0-9]*)")


def _read_keys(model: Model, reading: _Reading) -> None:
    limits = {limit.name: limit.value for limit in model.limits}
    names = [key.name for key in reading.message.keys]
    last = -1
    while reading.words:
        pair = _PAIR.fullmatch(reading.words[0])
        name = pair[1] if pair else reading.words[0].partition("=")[0]
        if name in names and "=" in reading.words[0] and not (pair and pair[2]):
            raise Refused(name, "word")
        if pair and name in names and len(pair[2]) > limits.get("key_value_digits", len(pair[2])):
            raise Refused(name, "range")
        if pair is None or len(name) > limits.get("key_name_length", len(name)):
            raise Refused("", "word")
        if name not in names:
            raise Refused(name, "unknown_key")
        if name in reading.values:
            raise Refused(name, "duplicate_key")
        if names.index(name) < last:
            raise Refused(name, "key_order")
        last = names.index(name)
        reading.words.pop(0)
        reading.values[name] = _convert(reading.message.keys[last].type, pair[2], name)


def _sizes(message: Message, words: list[str]) -> dict[str, int] | None:
    """Byte count of each payload, taken from its place in the header; None when one cannot be read."""
    places = {name: place for place, name in enumerate(_fixed_places(message.layout.parts))}
    sizes = {}
    for payload in message.payloads:
        place = places.get(payload.size)
        if place is None:
            return None
        if place >= len(words):
            if not message.field(payload.size).optional:
                return None
            sizes[payload.attribute] = 0
            continue
        try:
            size = _convert(message.field(payload.size).type, words[place], payload.size)
        except Refused:
            return None
        if isinstance(size, int):
            sizes[payload.attribute] = size
    return sizes


def _fixed_places(parts: tuple[notation.Part, ...]) -> list[str]:
    """Names of the words at fixed places of a header, optional ones included."""
    places: list[str] = []
    for part in parts:
        if isinstance(part, notation.Word):
            places.append(part.name)
        elif isinstance(part, notation.Literal):
            places.append("")
        elif isinstance(part, notation.Optional):
            places += _fixed_places(part.parts)
        else:
            break
    return places


def _convert(wire_type: WireType, text: str, name: str) -> Value:
    match wire_type:
        case UintType(unreadable=int(unreadable)):
            digits = text.isascii() and text.isdigit() and len(text) < 1000
            return int(text) if digits and wire_type.low <= int(text) <= wire_type.high else unreadable
        case UintType():
            if not re.fullmatch(r"-?[0-9]+", text):
                raise Refused(name, "word")
            number = (
                int(text) if len(text) < 400 else -1
            )  # longer than any bound, and than Python cares to read
            if text.startswith("-") or not wire_type.low <= number <= wire_type.high:
                raise Refused(name, "range")
            return number
        case RealType():
            return _real(wire_type, text, name)
        case HexType():
            if not re.fullmatch(r"([0-9a-fA-F]{2})*", text):
                raise Refused(name, "word")
            return text
        case _:
            if re.search(r"[\x00-\x20\x7f]", text):
                raise Refused(name, "word")
            return text.encode("latin-1").decode("utf-8", "replace")


def _real(wire_type: RealType, text: str, name: str) -> float:
    special = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
    if text in special:
        if wire_type.finite:
            raise Refused(name, "range")
        return special[text]
    exponent = r"([eE][+-]?[0-9]+)?" if wire_type.print.endswith("g") else ""
    if not re.fullmatch(r"[+-]?([0-9]+(?:\.[0-9]*)?|\.[0-9]+)" + exponent, text):
        raise Refused(name, "word")
    number = float(text)
    for judged in (number, _single(number) if wire_type.single_precision else number):
        too_low = wire_type.low is not None and judged < wire_type.low
        too_high = wire_type.high is not None and judged > wire_type.high
        endless = wire_type.finite and math.isinf(judged)
        if too_low or too_high or endless or (wire_type.above is not None and judged <= wire_type.above):
            raise Refused(name, "range")
    return number


def _single(number: float) -> float:
    """The value as single precision keeps it; infinite when it is too large for that."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)


def _check_rules(reading: _Reading) -> None:
    for entry in reading.message.rules:
        condition = reading.values.get(entry.only_with, 0)
        met = isinstance(condition, int) and condition > 0
        if reading.values.get(entry.field) == entry.value and not met:
            raise Refused(entry.field, "range")


def _read_payloads(model: Model, reading: _Reading, rest: bytes, sizes: dict[str, int]) -> None:
    for payload in reading.message.payloads:
        size = sizes[payload.attribute]
        if len(rest) < size:
            raise Refused("", "truncated")
        reading.values[payload.attribute], rest = rest[:size], rest[size:]
    terminator = model.framing.payload_terminator.encode("ascii")
    if reading.message.payloads and not rest:
        raise Refused("", "truncated")
    if reading.message.payloads and not rest.startswith(terminator):
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
