"""View of ``generated/protocol.schema.json``: what the spec file may say, for completion in editors.

Made from the shapes the compiler itself checks, so an editor can never promise more than the compiler takes.
It is looser where JSON Schema cannot say it (references, ranges, layouts); the compiler has the last word.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..model import Model
from ..notation import SPEC
from ..shape import Anything, Either, Leaf, ListOf, Named, Record, Shape

SCHEMA = "generated/protocol.schema.json"

SCALAR = ["string", "number", "boolean", "null"]
"""What an editor may take a plain scalar for; the compiler reads them all as text first."""


def build(model: Model) -> Mapping[str, object]:
    """Outputs of the schema target."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"{model.protocol.name} protocol spec",
        "description": "Shape of spec/protocol.yaml.",
        **schema_of(SPEC),
    }
    return {SCHEMA: json.dumps(schema, indent=1, ensure_ascii=False) + "\n"}


def schema_of(shape: Shape) -> dict[str, Any]:
    """JSON Schema (2020-12) of one shape."""
    match shape:
        case Leaf(what=what, choices=choices):
            schema: dict[str, Any] = {"type": SCALAR, "description": what}
            return (
                {"enum": _spellings(choices), "description": what}
                if choices and _is_closed(shape)
                else schema
            )
        case ListOf(item=item):
            return {"type": "array", "items": schema_of(item)}
        case Named(item=item, label=label):
            return {
                "type": "object",
                "additionalProperties": schema_of(item),
                "description": f"one entry per {label}",
            }
        case Record():
            return _record(shape)
        case Either(scalar=scalar, sequence=sequence, mapping=mapping):
            return {"anyOf": [schema_of(part) for part in (scalar, sequence, mapping) if part is not None]}
        case Anything():
            return {}
    raise TypeError(f"no schema for {type(shape).__name__}")


def _is_closed(leaf: Leaf) -> bool:
    """Whether the choices are all there is, not only suggestions."""
    return not leaf.test("0..1") and not leaf.test("some other word")


def _spellings(choices: tuple[str, ...]) -> list[str | bool]:
    """The choices as an editor sees them: ``true`` and ``false`` are booleans to it."""
    return [{"true": True, "false": False}.get(word, word) for word in choices]


def _record(shape: Record) -> dict[str, Any]:
    keys = {**shape.required, **shape.optional}
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: schema_of(inner) for name, inner in keys.items()},
        "additionalProperties": False,
    }
    if shape.required:
        schema["required"] = list(shape.required)
    groups = [{"oneOf": [{"required": [key]} for key in group]} for group in shape.one_of]
    return {**schema, "allOf": groups} if groups else schema
