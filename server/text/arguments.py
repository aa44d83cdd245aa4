"""Arguments of a tool call: from the text the model wrote to one JSON object (http.md §10).

Guarantees: an argument declared `string` is kept character for character; any other is the JSON the model
wrote when it parses, fits the declared type and is not nested deeper than the request that replays it
could be, and the text as a JSON string when not. The JSON text itself is kept, so numbers of any size and
escapes survive unchanged. The result is always valid JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from server.strict_json import is_too_deep

_PYTHON_TYPES: Mapping[str, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "null": (type(None),),
}


@dataclass(frozen=True, slots=True)
class ToolSignature:
    """What the parser knows of a declared tool.

    `types` maps a parameter to the words of its JSON schema `type`, a parameter without one is left out;
    `primary` is the first required parameter, else the first declared one, else None.
    """

    name: str
    types: Mapping[str, tuple[str, ...]]
    primary: str | None

    @classmethod
    def from_schema(cls, name: str, schema: object) -> ToolSignature:
        """Read a JSON schema as a client sent it; whatever in it is not understood declares nothing."""
        parameters = schema if isinstance(schema, Mapping) else {}
        properties = parameters.get("properties")
        properties = properties if isinstance(properties, Mapping) else {}
        required = parameters.get("required")
        first_required = (
            next((key for key in required if isinstance(key, str)), None)
            if isinstance(required, list)
            else None
        )
        types = {
            key: words
            for key, words in ((key, _type_words(value)) for key, value in properties.items())
            if words
        }
        return cls(name, types, first_required or next(iter(properties), None))


def _type_words(schema: object) -> tuple[str, ...]:
    declared = schema.get("type") if isinstance(schema, Mapping) else None
    words = declared if isinstance(declared, list) else [declared]
    return tuple(word for word in words if isinstance(word, str))


def argument_json(text: str, types: tuple[str, ...]) -> str:
    """The JSON text of one argument the model wrote as `text`, declared with the schema type `types`.

    Of several types the first but `null` decides; `null` is accepted as well when it is among them. No type
    at all accepts any JSON.
    """
    deciding = next((word for word in types if word != "null"), "null" if types else "")
    if deciding == "string" or is_too_deep(text):
        return json.dumps(text, ensure_ascii=False)
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return json.dumps(text, ensure_ascii=False)
    fits = not deciding or _fits(value, deciding) or (value is None and "null" in types)
    return text.strip(" \t\r\n") if fits else json.dumps(text, ensure_ascii=False)


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def _fits(value: Any, word: str) -> bool:
    if isinstance(value, bool):
        return word == "boolean"
    if word == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _PYTHON_TYPES.get(word, ()))


def arguments_json(pairs: Mapping[str, str], signature: ToolSignature | None) -> str:
    """One JSON object of all arguments, in the order in which the model first named them."""
    if not pairs:
        return "{}"
    types = signature.types if signature is not None else {}
    members = (
        f"{json.dumps(key, ensure_ascii=False)}:{argument_json(text, types.get(key, ()))}"
        for key, text in pairs.items()
    )
    return "{" + ",".join(members) + "}"
