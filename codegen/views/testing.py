"""The testing target: layouts as data for the strategies, and vectors both sides' tests read.

Guarantees: what is expected is worked out from the spec alone, with code of its own; nothing of the readers
and writers under test is used.
"""

from __future__ import annotations

import json
from typing import Any

from codegen.facts import counts_of, payload_of, spans
from codegen.layout import Counted, Extensions, Ignored, Literal, Optional, Part, Rest, Word
from codegen.model import HexType, Message, Model, RealType, UintType, WireField
from codegen.render import python_literal
from codegen.views.python_messages import class_name
from codegen.views.python_text import Call
from codegen.views.testing_vectors import Vector, command_vectors, frame_vectors

READY_CLASS = "Ready"


def build(model: Model) -> dict[str, Any]:
    """Views of the testing modules and the texts of the vectors, by output path."""
    ready = model.handshake.message
    frames = [_shape(message, class_name(message), "frames") for message in model.frames]
    frames.append(_shape(ready, READY_CLASS, "frames", lead="SENTINEL"))
    return {
        "generated/testing/__init__.py": {},
        "generated/testing/strategies.py": {
            "frames": [shape.text(indent=4, used=4) for shape in frames],
            "commands": [
                _shape(message, class_name(message), "commands").text(indent=4, used=4)
                for message in model.commands
            ],
        },
        "generated/vectors/frames.json": _lines(frame_vectors(model)),
        "generated/vectors/commands.json": _lines(command_vectors(model)),
    }


def _lines(vectors: list[Vector]) -> str:
    """A JSON list with one vector a line."""
    encode = json.JSONEncoder(allow_nan=False).encode
    lines = [encode(vector) for vector in vectors]
    return "[\n" + ",\n".join(lines) + "\n]\n"


def _shape(message: Message, name: str, module: str, lead: str | None = None) -> Call:
    limits = tuple(Call("(", (str(low), python_literal(high))) for low, high in spans(message))
    rules = tuple(
        Call("(", (python_literal(rule.field), str(rule.value), python_literal(rule.only_with)))
        for rule in message.rules
    )
    payloads = tuple(python_literal(payload.attribute) for payload in message.payloads)
    drained = any(payload.drained for payload in message.payloads)
    parts = (
        f"kind={python_literal(message.layout.kind)}",
        f"message={module}.{name}",
        Call("parts=(", _parts(message, message.layout.parts)),
        Call("payloads=(", payloads),
        f"drained={drained}",
        Call("spans=(", limits),
        Call("only_with=(", rules),
    )
    return Call("Shape(", (*parts, f"lead={lead}") if lead else parts)


def _parts(message: Message, parts: tuple[Part, ...]) -> tuple[Call | str, ...]:
    return tuple(_part(message, part) for part in parts)


def _part(message: Message, part: Part) -> Call | str:
    match part:
        case Word(name):
            return _word(message, message.field(name))
        case Literal(text):
            return Call("Fixed(", (python_literal(text.encode()),))
        case Rest(name, at_least):
            field = message.field(name)
            names = (python_literal(field.name), python_literal(field.attribute))
            return Call("Rest(", (*names, str(at_least)))
        case Counted(words, count):
            return Call("Repeat(", (python_literal(count), Call("(", _parts(message, words))))
        case Optional(inner):
            return Call("Tail(", (Call("(", _parts(message, inner)),))
        case Extensions():
            known = tuple(
                Call("(", (python_literal(key.name), str(key.type.low), str(key.type.high)))
                for key in message.keys
            )
            return Call("Keys(", (Call("(", known),))
        case Ignored():
            return "Ignored()"


def _word(message: Message, field: WireField) -> Call:
    names = (python_literal(field.name), python_literal(field.attribute))
    kind = field.type
    if isinstance(kind, UintType):
        payload = payload_of(message, field.name)
        more = [str(kind.low), str(kind.high)]
        if payload is not None:
            more.append(f"payload={python_literal(payload.attribute)}")
        if field.name in counts_of(message):
            more.append("counts=True")
        if kind.unreadable is not None:
            more.append(f"unreadable={kind.unreadable}")
        return Call("Uint(", (*names, *more))
    if isinstance(kind, RealType):
        settings: dict[str, object] = {"low": kind.low, "high": kind.high, "above": kind.above}
        flags = {
            "finite": kind.finite,
            "general": kind.low is not None or kind.high is not None,
            "single": kind.single_precision,
        }
        more = [f"{name}={python_literal(value)}" for name, value in settings.items() if value is not None]
        more += [f"{name}=True" for name, value in flags.items() if value]
        return Call("Real(", (*names, *more))
    return Call("Hexadecimal(" if isinstance(kind, HexType) else "Visible(", names)
