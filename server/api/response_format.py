"""``response_format``: the grammar text that goes to the engine with the prompt (http.md §11).

``json_object`` becomes a GBNF grammar of any JSON object, ``json_schema`` the schema itself as JSON text, ``gbnf`` the
client's own grammar. What the engine makes of it is the engine's.
"""

from __future__ import annotations

import json
from typing import Any, Final

from generated import errors, limits

PARAM: Final = "response_format"

JSON_OBJECT_GRAMMAR: Final = r"""
root   ::= object
value  ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws ( string ":" ws value ws ( "," ws string ":" ws value ws )* )? "}"
array  ::= "[" ws ( value ws ( "," ws value ws )* )? "]"
string ::= "\"" ( [^"\\\x00-\x1f] | "\\" ( ["\\/bfnrt] | "u" [0-9a-fA-F] [0-9a-fA-F] [0-9a-fA-F] [0-9a-fA-F] ) )* "\""
number ::= "-"? ( "0" | [1-9] [0-9]* ) ( "." [0-9]+ )? ( [eE] [-+]? [0-9]+ )?
ws     ::= [ \t\n]*
""".lstrip()
"""Any JSON object, in GBNF."""


def grammar_of(value: Any) -> bytes:
    """The grammar text of a ``response_format`` value; empty for plain text. Raises the ApiErrors of §11."""
    if value is None:
        return b""
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(kind, str):
        raise _invalid("must be an object with a type")
    if kind == "text":
        return b""
    if kind == "json_object":
        text = JSON_OBJECT_GRAMMAR
    elif kind == "json_schema":
        text = _schema(value.get("json_schema"))
    elif kind == "gbnf":
        text = _gbnf(value.get("grammar"))
    else:
        raise errors.unsupported_value(
            param=PARAM, message=f"{PARAM}.type is only served as text, json_object, json_schema or gbnf."
        )
    if "\0" in text:
        raise errors.invalid_request(param=PARAM, message=f"{PARAM} holds a NUL character.")
    grammar = text.encode("utf-8")
    if len(grammar) > limits.EXTRA_BYTES:
        raise _invalid(f"is longer than {limits.EXTRA_BYTES} bytes")
    return grammar


def _schema(wrapper: Any) -> str:
    schema = wrapper.get("schema") if isinstance(wrapper, dict) else None
    if not isinstance(schema, dict):
        raise _invalid("of the type json_schema needs json_schema.schema, an object")
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


def _gbnf(grammar: Any) -> str:
    if not isinstance(grammar, str) or not grammar.strip():
        raise _invalid("of the type gbnf needs grammar, a string that is not blank")
    return grammar


def _invalid(says: str) -> errors.ApiError:
    return errors.invalid_value(param=PARAM, message=f"{PARAM} {says}.")
