"""View of ``generated/fields.py``: a constant per distinct field, and the orders of checks made of them.

Guarantees: a field two endpoints share is one constant; only fields that an order names, and those they refer
to, are made (what a hook reads is the hook's affair); bounds are literals, or names of what the server knows.
"""

from __future__ import annotations

import json
from typing import Any, Final

from codegen import names
from codegen.facts import least_real
from codegen.model import Endpoint, Model, RealType, RequestField
from codegen.render import python_literal
from codegen.views import python_text as text

View = dict[str, Any]

SERVER: Final = "server."
"""Prefix of a bound that is a fact of the running server."""

SCORE: Final = ("echo", "logprobs")
"""The condition ``zero_with: score`` of a field: these fields of the same endpoint are in force."""

INCAPABLE: Final = "unsupported_parameter"
"""Error of a field that needs what the engine's family cannot."""

_NEUTRAL: Final = {"zero": "Zero", "one": "One", "empty": "Empty"}
_CLASSES: Final = {
    "accept": "Accept",
    "integer": "Integer",
    "number": "Number",
    "boolean": "Boolean",
    "string": "Text",
    "one_of": "OneOf",
    "object": "Object",
    "strings": "Strings",
    "any": "AnyValue",
}


def fields_view(model: Model) -> View:
    """Everything ``fields.py.j2`` prints."""
    constants = _Constants(model)
    endpoints = [_endpoint(endpoint, constants) for endpoint in model.endpoints]
    every = [field for endpoint in model.endpoints for field in endpoint.fields]
    facts = {field.high_limit: None for field in every if (field.high_limit or "").startswith(SERVER)}
    settings = {
        name: None for field in every for name in (field.default_setting, field.clamp_setting) if name
    }
    return {
        "facts": [str(fact).removeprefix(SERVER) for fact in facts],
        "settings": ", ".join(f"``{name}``" for name in settings),
        "incapable": INCAPABLE,
        "fields": constants.fields(),
        "endpoints": endpoints,
    }


def _endpoint(endpoint: Endpoint, constants: _Constants) -> View:
    by_name = {field.name: field for field in endpoint.fields}
    used: dict[str, str] = {}
    orders = []
    for order, steps in endpoint.orders.items():
        items = []
        for step in steps:
            if step.is_hook:
                items.append(f"Hook({python_literal(step.name)})")
            else:
                used[step.name] = constants.constant(endpoint, by_name[step.name])
                items.append(used[step.name])
        orders.append(f"{python_literal(order)}: {text.exploded('(', items, ')', indent=12)}")
    fields = [f"{python_literal(name)}: {constant}" for name, constant in used.items()]
    return {
        "name": f"{endpoint.method} {endpoint.route}",
        "method": endpoint.method,
        "path": endpoint.route,
        "dialect": endpoint.dialect,
        "names": text.tuple_text([field.name for field in endpoint.fields], indent=8, used=14),
        "fields": text.exploded("{", fields, "}", indent=8),
        "orders": text.exploded("{", orders, "}", indent=8),
    }


class _Constants:
    """The distinct fields, in the order they are first needed."""

    def __init__(self, model: Model) -> None:
        self._types = {kind.name: kind for kind in model.types if isinstance(kind, RealType)}
        self._by_text: dict[str, str] = {}
        self._given = {error.name for error in model.api_errors if error.param_given and error.message_given}

    def fields(self) -> list[View]:
        """Constants with their expressions."""
        return [{"constant": constant, "text": body} for body, constant in self._by_text.items()]

    def constant(self, endpoint: Endpoint, field: RequestField) -> str:
        """Name of the constant of ``endpoint``'s ``field``; fields it refers to are made before it."""
        body = text.exploded(f"{_class(field)}(", self._arguments(endpoint, field), ")", indent=0)
        if body not in self._by_text:
            plain = f"_{names.macro(field.name)}"
            own = f"_{names.macro(endpoint.route.removeprefix('/v1/'))}_{names.macro(field.name)}"
            self._by_text[body] = plain if plain not in self._by_text.values() else own
        return self._by_text[body]

    def _arguments(self, endpoint: Endpoint, field: RequestField) -> list[str]:
        error = field.error or INCAPABLE
        if error not in self._given:
            raise ValueError(f"{field.path}: the error {error} has no place for a param and a message")
        found = [python_literal(field.name), python_literal(error)]
        found += self._own(endpoint, field)
        found += [
            f"{name}={python_literal(value)}"
            for name, value, absent in (
                ("default", field.default, None),
                ("default_setting", field.default_setting, None),
                ("required", field.required, False),
                ("null_refused", field.null_refused, False),
                ("off", tuple(value for value in field.off if value is not None), ()),
                ("refuse", tuple((json.loads(key), name) for key, name in field.refuse.items()), ()),
                ("needs", field.needs, None),
                ("only_with", field.only_with, None),
            )
            if value != absent and not (name == "default" and field.kind == "strings")
        ]
        if field.loses_to:
            found.append(f"loses_to={self.constant(endpoint, _field(endpoint, field.loses_to))}")
        return found

    def _own(self, endpoint: Endpoint, field: RequestField) -> list[str]:
        """Arguments of the field's class."""
        match field.kind:
            case "accept" | "one_of":
                return [text.tuple_text(field.accepted, indent=4, used=4)]
            case "integer":
                return self._integer(endpoint, field)
            case "number":
                return self._number(field)
            case "strings":
                return [python_literal(field.high)]
            case _:
                return []

    def _integer(self, endpoint: Endpoint, field: RequestField) -> list[str]:
        found = [python_literal(field.low or 0)]
        if (field.high_limit or "").startswith(SERVER):
            found.append(f"high_fact={python_literal(str(field.high_limit).removeprefix(SERVER))}")
        elif field.high is not None:
            found.append(python_literal(field.high))
        if field.clamp_setting:
            found.append(f"clamp_setting={python_literal(field.clamp_setting)}")
        conditions = zero_conditions(endpoint, field)
        if conditions:
            constants = [self.constant(endpoint, other) for other in conditions]
            found.append(f"zero_with={text.tuple_of(constants, indent=4, used=14)}")
        return found

    def _number(self, field: RequestField) -> list[str]:
        """Bounds of a number. One kept in single precision is judged as the wire will carry it."""
        kind = self._types.get(field.name)
        low = float(field.low or 0)
        if field.above is not None and kind is not None and field.single_precision:
            low = least_real(kind, printed=True) or low
        high = float(field.high) if field.high is not None else float("inf")
        words = f"from {field.low or 0:g} to {high:g}"
        if field.above is not None:
            words = f"above {field.above:g} and at most {high:g}"
        return [repr(low), repr(high), python_literal(words)]


def zero_conditions(endpoint: Endpoint, field: RequestField) -> list[RequestField]:
    """The fields that must all be in force for ``field`` to take 0; none when it never does here."""
    found = [other for other in endpoint.fields if other.name in SCORE and not other.refuse]
    return found if field.zero_with == "score" and len(found) == len(SCORE) else []


def _class(field: RequestField) -> str:
    if field.kind == "neutral":
        return _NEUTRAL[str(field.neutral)]
    return _CLASSES[field.kind]


def _field(endpoint: Endpoint, name: str) -> RequestField:
    return next(field for field in endpoint.fields if field.name == name)
