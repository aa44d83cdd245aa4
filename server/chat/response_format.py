"""The field `response_format`: the grammar text that goes to the engine behind the prompt (http.md §11).

A JSON schema travels as JSON text, a GBNF grammar as it is; `json_object` is the schema of any JSON object.
"""

from __future__ import annotations

import json
from typing import Any

from generated import errors, families, limits
from generated.words import ResponseFormatType

_PARAM = "response_format"
_ANY_OBJECT = {"type": "object"}
_NUL = "\0"


def read_response_format(value: object) -> bytes:
    """The grammar text as UTF-8, `b""` for free text. Raises invalid_value, unsupported_value or
    invalid_request."""
    if value is None:
        return b""
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(kind, str):
        raise errors.invalid_value(param=_PARAM, message="response_format must be an object with a type.")
    if kind == ResponseFormatType.TEXT:
        return b""
    if kind == ResponseFormatType.JSON_OBJECT:
        return _checked(_json(_ANY_OBJECT))
    if kind == ResponseFormatType.JSON_SCHEMA:
        wrapper = value.get("json_schema")
        schema = wrapper.get("schema") if isinstance(wrapper, dict) else None
        if not isinstance(schema, dict):
            raise errors.invalid_value(
                param=_PARAM, message="json_schema.schema must be a JSON schema object."
            )
        if _holds_nul(schema):
            raise _nul()
        return _checked(_json(schema))
    if kind == ResponseFormatType.GBNF:
        grammar = value.get("grammar")
        if not isinstance(grammar, str) or not grammar.strip():
            raise errors.invalid_value(param=_PARAM, message="grammar must be GBNF text.")
        if _NUL in grammar:
            raise _nul()
        return _checked(grammar)
    *kinds, last = ResponseFormatType
    raise errors.unsupported_value(
        param=_PARAM, message=f"The type of response_format must be {', '.join(kinds)} or {last}."
    )


def require_grammar(extra: bytes, family: families.Family) -> None:
    """Raises unsupported_parameter when there is a grammar and the family's engines take none."""
    if extra and families.GRAMMAR not in family.can:
        raise errors.unsupported_parameter(
            param=_PARAM, message=f"Models of the family {family.name} are not served with a response_format."
        )


def _json(schema: object) -> str:
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


def _holds_nul(schema: Any) -> bool:
    """Whether a string or a key anywhere in the schema does; as JSON text it would be an escape."""
    left = [schema]
    while left:
        part = left.pop()
        if isinstance(part, dict):
            left += part
            left += part.values()
        elif isinstance(part, list):
            left += part
        elif isinstance(part, str) and _NUL in part:
            return True
    return False


def _nul() -> errors.ApiError:
    return errors.invalid_request(param=_PARAM, message="A grammar must not contain the NUL character.")


def _checked(grammar: str) -> bytes:
    extra = grammar.encode()
    if len(extra) > limits.EXTRA_BYTES:
        raise errors.invalid_value(
            param=_PARAM, message=f"The grammar must not be longer than {limits.EXTRA_BYTES} bytes."
        )
    return extra
