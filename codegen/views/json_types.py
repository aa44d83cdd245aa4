"""JSON Schema of the spec's type expressions and request fields; shared by the OpenAPI and the docs views."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..json_type import parse_type
from ..model import JsonObject, JsonType, JsonValue, RequestField

SCALARS = {"string", "integer", "number", "boolean", "object"}


def plain(value: JsonValue) -> Any:
    """A model value as json.dumps takes it: tuples become lists, mappings dicts."""
    if isinstance(value, tuple):
        return [plain(part) for part in value]
    if isinstance(value, Mapping):
        return {key: plain(part) for key, part in value.items()}
    return value


def type_schema(kind: JsonType) -> dict[str, Any]:
    """JSON Schema (2020-12) of a type expression; references point into ``#/components/schemas``."""
    schema = _bare_schema(kind)
    if not kind.nullable:
        return schema
    if set(schema) == {"type"}:
        return {"type": [schema["type"], "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def _bare_schema(kind: JsonType) -> dict[str, Any]:
    match kind.kind:
        case "list":
            return {"type": "array", "items": type_schema(kind.of[0])}
        case "literal":
            if len(kind.literals) == 1:
                return {"const": kind.literals[0]}
            return {"type": "string", "enum": list(kind.literals)}
        case "reference":
            return {"$ref": f"#/components/schemas/{kind.reference}"}
        case "any_of":
            return {"anyOf": [type_schema(part) for part in kind.of]}
        case "text" | "html":
            return {"type": "string"}
        case _:
            return {"type": kind.kind}


def object_schema(item: JsonObject) -> dict[str, Any]:
    """JSON Schema of a named object. Clients must ignore properties they do not know, so none is refused."""
    if item.any_of:
        return {"anyOf": [type_schema(part) for part in item.any_of]}
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {entry.name: type_schema(entry.type) for entry in item.properties},
    }
    required = [entry.name for entry in item.properties if not entry.optional]
    return {**schema, "required": required} if required else schema


def written_type(text: str) -> JsonType:
    """A field's ``schema`` expression as a type. The resolver has refused what does not parse."""
    parsed = parse_type(text)
    if parsed is None:
        raise ValueError(f"not a type expression: {text!r}")
    return parsed


def field_schema(field: RequestField) -> dict[str, Any]:
    """JSON Schema of a request field: what passes its check."""
    schema = _field_core(field)
    alternatives = [value for value in field.off if value is not None]
    if alternatives:
        schema = {"anyOf": [schema, {"enum": [plain(value) for value in alternatives]}]}
    if not field.null_refused and not field.required and field.kind != "any":
        schema = _nullable(schema)
    schema["description"] = field.doc
    if field.default is not None:
        schema["default"] = plain(field.default)
    if field.deprecated is not None:
        schema["deprecated"] = True
    return schema


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    if schema == {"type": "null"}:
        return schema
    if isinstance(schema.get("type"), str) and "enum" not in schema:
        return {**schema, "type": [schema["type"], "null"]}
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    return {"anyOf": [schema, {"type": "null"}]}


def _field_core(field: RequestField) -> dict[str, Any]:
    match field.kind:
        case "accept":
            return (
                {"enum": [plain(value) for value in field.accepted]} if field.accepted else {"type": "null"}
            )
        case "integer" | "number":
            return _bounded(field)
        case "boolean":
            return {"const": False} if "true" in field.refuse else {"type": "boolean"}
        case "one_of":
            return {"type": "string", "enum": [plain(value) for value in field.accepted]}
        case "strings":
            least = 0 if field.empty_is_absent else field.low
            member = {"type": "string", "minLength": 1}
            return {
                "anyOf": [
                    member,
                    {"type": "array", "items": member, "minItems": least, "maxItems": field.high},
                ]
            }
        case "neutral":
            return _neutral(field)
        case "any":
            return {}
        case "string" | "object" if field.schema is None:
            return {"type": field.kind}
        case _:
            return type_schema(written_type(field.schema or "object"))


def _bounded(field: RequestField) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": field.kind}
    if field.above is not None:
        schema["exclusiveMinimum"] = field.above
    elif field.low is not None:
        schema["minimum"] = 0 if field.zero_with else field.low
    if field.high is not None:
        schema["maximum"] = field.high
    return schema


def _neutral(field: RequestField) -> dict[str, Any]:
    kind = type_schema(written_type(field.schema or "object"))
    if field.neutral == "zero":
        return {**kind, "minimum": 0, "maximum": 0}
    if field.neutral == "one":
        return {**kind, "minimum": 1, "maximum": 1}
    return {**kind, "maxLength": 0} if kind.get("type") == "string" else {**kind, "maxProperties": 0}
