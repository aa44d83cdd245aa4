"""Arguments of a tool call: from the text the model wrote to one JSON object (http.md §10).

Guarantees: an argument declared `string` is kept character for character; any other is the JSON the model
wrote when it parses, fits the declared type and is not nested deeper than the request that replays it
could be, and the text as a JSON string when not. The JSON text itself is kept, so numbers of any size and
escapes survive unchanged. The result is always valid JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
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


_WORDS: Mapping[type, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    dict: "object",
    list: "array",
    type(None): "null",
}
_COMBINED = ("anyOf", "oneOf", "allOf")
_DEEPEST = 4
"""References and combinations followed one in another: more than generators write, and an end to circles."""
_MOST_PARTS = 10_000
"""The same for all parameters of a tool together, since a reference costs little to write."""


@dataclass(frozen=True, slots=True)
class ToolSignature:
    """What the parser knows of a declared tool.

    `types` maps a parameter to the words of its JSON schema `type`, or of what stands for one: the values of
    `enum` or `const`, the members of `anyOf`, `oneOf` or `allOf`, what `$ref` names within the same schema. A
    parameter without any is left out;
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
        declared = _DeclaredTypes(parameters)
        types = {
            key: words
            for key, words in ((key, declared.of(value)) for key, value in properties.items())
            if words
        }
        return cls(name, types, first_required or next(iter(properties), None))


class _DeclaredTypes:
    """The types that the parts of one schema declare, each in its order and once."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._parts_left = _MOST_PARTS

    def of(self, schema: object, depth: int = 0) -> tuple[str, ...]:
        """The types of one part; none for what is not understood."""
        if not isinstance(schema, Mapping):
            return ()
        declared = schema.get("type")
        if declared is not None:
            words = declared if isinstance(declared, list) else [declared]
            return _distinct(word for word in words if isinstance(word, str))
        if "const" in schema or isinstance(schema.get("enum"), list):
            values = [schema["const"]] if "const" in schema else schema["enum"]
            return _distinct(_WORDS[type(value)] for value in values if type(value) in _WORDS)
        self._parts_left -= 1
        if depth == _DEEPEST or self._parts_left < 0:
            return ()
        if isinstance(schema.get("$ref"), str):
            return self.of(_named(schema["$ref"], self._root), depth + 1)
        members: list[object] = next(
            (schema[key] for key in _COMBINED if isinstance(schema.get(key), list)), []
        )
        return _distinct(word for member in members for word in self.of(member, depth + 1))


def _distinct(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))


def _named(reference: str, root: Mapping[str, Any]) -> object:
    """What a JSON pointer such as `#/$defs/City` names in `root`; None outside it."""
    start, *steps = reference.split("/")
    part: object = root if start == "#" else None
    for step in steps:
        if not isinstance(part, Mapping):
            return None
        part = part.get(step.replace("~1", "/").replace("~0", "~"))
    return part


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
