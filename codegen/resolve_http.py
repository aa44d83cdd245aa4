"""Resolves the HTTP half of the spec: api errors, endpoints, objects, settings, general facts.

Guarantees: every error, setting, hook, object and field that is named exists; orders are spliced; an
endpoint holds the fields it checks, own ones first, and of the shared ones only those its orders reach.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from . import values
from .findings import Location, Rule, alternatives
from .json_type import PLAIN_TYPES, parse_type, references_of
from .model import (
    ApiError,
    BodyExample,
    Endpoint,
    FinishReason,
    Header,
    HealthStatus,
    Hook,
    Http,
    IdForm,
    JsonObject,
    JsonProperty,
    JsonType,
    JsonValue,
    RequestField,
    Setting,
    Step,
)
from .notation import FIELD_KINDS
from .scope import (
    Frozen,
    ItemKeys,
    Range,
    Scope,
    as_items,
    as_scalar,
    as_tree,
    flag_of,
    freeze,
    integer_of,
    item_keys,
    optional_text,
    text_of,
    texts_of,
)
from .source import Entry, Scalar, Sequence
from .source import Mapping as Tree

RULES: Final = (
    *(
        Rule(f"resolve.{name}", purpose, advice)
        for name, purpose, advice in (
            (
                "unknown-step",
                "An order names fields and hooks that exist.",
                "Name a field, an @hook or an $orders.run.",
            ),
            (
                "type-expression",
                "A JSON type is written in the notation of objects.",
                "See the head of that section.",
            ),
            ("default", "A default is a value of the setting's own type.", "Correct the default."),
        )
    ),
    Rule(
        "error.no-retry-flag",
        "Every api error says whether to try again.",
        "Add retry: never, safe or after.",
    ),
)

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


def resolve_api_errors(scope: Scope) -> tuple[ApiError, ...]:
    """Every error of the HTTP API."""
    return tuple(_api_error(scope, entry) for entry in scope.section("api_errors"))


def _api_error(scope: Scope, entry: Entry) -> ApiError:
    tree, name = as_tree(entry.value), entry.key.text
    param, message = optional_text(tree, "param"), optional_text(tree, "message")
    anthropic_message = optional_text(tree, "anthropic_message")
    told = "" if message in (None, "given") else str(message)
    placeholders = dict.fromkeys(_PLACEHOLDER.findall(told + (anthropic_message or "")))
    retry: Any = text_of(tree, "retry", "never")
    if tree.get("retry") is None:
        scope.error(
            "error.no-retry-flag",
            entry.key.location,
            "nothing says whether a client should try again",
            item=f"api error {name}",
            hint="add retry: never, safe or after",
        )
    return ApiError(
        **item_keys(entry, f"api_errors.{name}"),
        status=integer_of(tree, "status") or 0,
        code=name if tree.get("code") is None else optional_text(tree, "code"),
        type=text_of(tree, "type"),
        anthropic_type=text_of(tree, "anthropic"),
        param=None if param == "given" else param,
        param_given=param == "given",
        message=None if message == "given" else message,
        message_given=message == "given",
        anthropic_message=anthropic_message,
        placeholders=tuple(placeholders),
        retry=retry,
        retry_after=integer_of(tree, "retry_after"),
        close=flag_of(tree, "close"),
    )


def resolve_settings(scope: Scope) -> tuple[Setting, ...]:
    """Flags and environment variables, each with a default of its own type."""
    return tuple(_setting(scope, entry) for entry in scope.section("settings"))


def _setting(scope: Scope, entry: Entry) -> Setting:
    tree, name = as_tree(entry.value), entry.key.text
    item, kind = f"setting {name}", text_of(tree, "type")
    ends = scope.range(as_scalar(tree.get("range")), item)
    choices = texts_of(tree, "choices")
    default = _default(scope, tree.get("default"), kind, choices, item)
    if isinstance(default, int | float) and not isinstance(default, bool):
        too_low = ends.low is not None and default < ends.low
        if too_low or (ends.high is not None and default > ends.high):
            place = tree.get("default")
            message = f"the default {default} is outside {text_of(tree, 'range')}"
            scope.error("resolve.default", place.location if place else tree.location, message, item=item)
    return Setting(
        **item_keys(entry, f"settings.{name}"),
        flag=optional_text(tree, "flag"),
        env=optional_text(tree, "env"),
        type=kind,
        default=default,
        low=ends.low,
        high=ends.high,
        choices=choices,
        unit=text_of(tree, "unit"),
        multiple=flag_of(tree, "multiple"),
    )


def _default(scope: Scope, node: Any, kind: str, choices: tuple[str, ...], item: str) -> JsonValue:
    if isinstance(node, Sequence):
        return tuple(leaf.text for leaf in node if isinstance(leaf, Scalar))
    if not isinstance(node, Scalar) or (node.plain and node.text in ("null", "")):
        return None
    reference = values.parse_reference(node.text) if node.plain else None
    if reference is not None:
        return scope.bound(reference, node.location, item)
    value: JsonValue
    if kind == "integer":
        value = values.parse_integer(node.text)
    elif kind == "number":
        value = values.parse_number(node.text)
    elif kind == "boolean":
        value = values.parse_boolean(node.text)
    elif kind == "choice":
        value = node.text if node.text in choices else None
    else:
        value = node.text
    if value is None:
        hint = alternatives(node.text, choices, "choices") if choices else ""
        scope.error("resolve.default", node.location, f"{node.text!r} is no {kind}", item=item, hint=hint)
    return value


def resolve_hooks(scope: Scope) -> tuple[Hook, ...]:
    """Named steps of the gateway's own flow."""
    return tuple(Hook(**item_keys(entry, f"hooks.{entry.key.text}")) for entry in scope.section("hooks"))


def resolve_endpoints(scope: Scope) -> tuple[Endpoint, ...]:
    """Every endpoint with its fields, orders, answers and errors."""
    return tuple(_endpoint(scope, entry) for entry in scope.section("endpoints"))


def _endpoint(scope: Scope, entry: Entry) -> Endpoint:
    tree, name = as_tree(entry.value), entry.key.text
    item = f"endpoint {name}"
    keys = item_keys(entry, f"endpoints.{name}")
    method, _, route = name.partition(" ")
    own = {part.key.text: part for part in as_tree(tree.get("fields"))}
    shared: dict[str, tuple[Entry, str]] = {}
    for node in as_items(tree.get("uses")):
        if isinstance(node, Scalar) and scope.expect(node, scope.names("field_sets"), "field sets", item):
            for part in as_tree(scope.section("field_sets").get(node.text)):
                shared.setdefault(part.key.text, (part, node.text))
    orders = {}
    for order in as_tree(tree.get("order")):
        label = f"{item}, order {order.key.text}"
        steps = _steps(scope, order.value, {*own, *shared}, label, ())
        orders[order.key.text] = tuple(steps)
    reached = {step.name for steps in orders.values() for step in steps}
    fields = [_field(scope, part, f"endpoints.{name}.fields", item, keys) for part in own.values()]
    inherited = {key: part for key, part in shared.items() if key not in own}
    for field_name in _reachable(inherited, reached):
        written, use = inherited[field_name]
        fields.append(_field(scope, written, f"field_sets.{use}", f"field set {use}"))
    dialect: Any = text_of(tree, "dialect", "openai")
    objects = scope.names("objects") | set(PLAIN_ANSWERS)
    return Endpoint(
        **keys,
        method=method,
        route=route,
        dialect=dialect,
        fields=tuple(fields),
        orders=Frozen(orders),
        answer="".join(scope.expect_all(tree.get("answer"), objects, "objects", item)),
        stream=scope.expect_all(tree.get("stream"), objects, "objects", item),
        errors=scope.expect_all(tree.get("errors"), scope.names("api_errors"), "api errors", item),
        examples=tuple(_body_examples(tree)),
    )


PLAIN_ANSWERS: Final = ("text", "html", "object")
"""Answers that are no object of the spec."""


def _reachable(shared: dict[str, tuple[Entry, str]], reached: set[str]) -> list[str]:
    """Shared fields that an order reaches, directly, as another's other spelling, or that have no effect at
    all.
    """
    wanted = set(reached)
    for name, (field, _) in shared.items():
        tree = as_tree(field.value)
        if name in reached:
            wanted.update(text_of(tree, key) for key in ("alternative", "loses_to"))
        if text_of(tree, "effect") == "none":
            wanted.add(name)
    return [name for name in shared if name in wanted]


def _steps(scope: Scope, node: Any, fields: set[str], item: str, inside: tuple[str, ...]) -> Iterator[Step]:
    for leaf in as_items(node):
        if not isinstance(leaf, Scalar):
            continue
        reference = values.parse_reference(leaf.text)
        if reference is not None and reference.section == "orders":
            run = scope.section("orders").get(reference.name)
            if run is None or reference.name in inside:
                what = f"the run {reference.name!r} contains itself" if run else f"there is no {reference}"
                hint = alternatives(reference.name, scope.section("orders").names(), "orders")
                scope.error("resolve.unknown-step", leaf.location, what, item=item, hint=hint)
            else:
                yield from _steps(scope, run, fields, item, (*inside, reference.name))
        elif leaf.text.startswith("@"):
            name = leaf.text[1:]
            if name not in scope.names("hooks"):
                hint = alternatives(name, scope.names("hooks"), "hooks")
                message = f"there is no hook {name!r}"
                scope.error("resolve.unknown-step", leaf.location, message, item=item, hint=hint)
            yield Step(name, True)
        else:
            if leaf.text not in fields:
                hint = alternatives(leaf.text, fields, "fields")
                message = f"there is no field {leaf.text!r}"
                scope.error("resolve.unknown-step", leaf.location, message, item=item, hint=hint)
            yield Step(leaf.text, False)


def _body_examples(tree: Tree) -> Iterator[BodyExample]:
    for node in as_items(tree.get("examples")):
        inner = as_tree(node)
        body = inner.get("body")
        value: Any = freeze(values.json_value(body)) if body is not None else Frozen()
        yield BodyExample(text_of(inner, "title"), value)


def _json_list(tree: Tree, key: str) -> tuple[JsonValue, ...]:
    return tuple(freeze(values.json_value(node)) for node in as_items(tree.get(key)))


def _field(scope: Scope, entry: Entry, path: str, owner: str, parent: ItemKeys | None = None) -> RequestField:
    tree, name = as_tree(entry.value), entry.key.text
    item = f"{owner}, field {name}"
    kind = next((key for key in FIELD_KINDS if tree.get(key) is not None), "any")
    errors = scope.names("api_errors")
    for key in ("else", "otherwise"):
        scope.expect_all(tree.get(key), errors, "api errors", item)
    refusals = as_tree(tree.get("refuse"))
    for refusal in refusals:
        scope.expect_all(refusal.value, errors, "api errors", item)
    capabilities = as_tree(scope.section("families").get("capabilities")).names()
    scope.expect_all(tree.get("needs"), capabilities, "capabilities", item)
    ends = Range(None, None, None)
    if kind in ("integer", "number", "strings"):
        ends = scope.range(as_scalar(tree.get(kind)), item)
    above = values.parse_number(text_of(tree, "above"))
    default, default_setting = _field_default(scope, tree, item)
    _, clamp_setting = _field_default(scope, tree, item, "clamp")
    accepted = _json_list(tree, kind) if kind == "accept" else ()
    return RequestField(
        **item_keys(entry, f"{path}.{name}", "", parent),
        kind=kind,
        schema=optional_text(tree, "schema"),
        accepted=texts_of(tree, "one_of") if kind == "one_of" else accepted,
        low=ends.low,
        high=ends.high,
        high_limit=ends.high_from,
        above=None if above is None else float(above),
        single_precision=text_of(tree, "precision") == "single",
        null_refused=text_of(tree, "null") == "refused",
        required=flag_of(tree, "required"),
        off=_json_list(tree, "off"),
        neutral=optional_text(tree, "neutral"),
        empty_is_absent=text_of(tree, "empty") == "absent",
        default=default,
        default_setting=default_setting,
        clamp_setting=clamp_setting,
        error=optional_text(tree, "else"),
        otherwise=optional_text(tree, "otherwise"),
        refuse=Frozen({pair.key.text: text_of(refusals, pair.key.text) for pair in refusals}),
        needs=optional_text(tree, "needs"),
        alternative=optional_text(tree, "alternative"),
        loses_to=optional_text(tree, "loses_to"),
        zero_with=optional_text(tree, "zero_with"),
        only_with=optional_text(tree, "only_with"),
        shape=optional_text(tree, "shape"),
        no_effect=text_of(tree, "effect") == "none",
    )


def _field_default(scope: Scope, tree: Tree, item: str, key: str = "default") -> tuple[JsonValue, str | None]:
    """A literal default, or the setting that holds it."""
    node = as_scalar(tree.get(key))
    if node is None:
        return None, None
    reference = values.parse_reference(node.text)
    if reference is None:
        return freeze(values.scalar_value(node)), None
    if reference.section != "settings" or reference.name not in scope.names("settings"):
        hint = alternatives(reference.name, scope.names("settings"), "settings")
        message = f"there is no setting {reference}"
        scope.error("resolve.unknown-reference", node.location, message, item=item, hint=hint)
        return None, None
    return None, reference.name


# ---------------------------------------------------------------- objects


def resolve_objects(scope: Scope) -> tuple[JsonObject, ...]:
    """JSON shapes, their type expressions parsed."""
    known = scope.names("objects")
    found = []
    for entry in scope.section("objects"):
        tree, name = as_tree(entry.value), entry.key.text
        item = f"object {name}"
        choice = tree.get("any_of")
        if choice is not None:
            leaves = [leaf for leaf in as_items(choice) if isinstance(leaf, Scalar)]
            types = tuple(_type_at(scope, leaf, known, item) for leaf in leaves)
            found.append(JsonObject(**item_keys(entry, f"objects.{name}"), properties=(), any_of=types))
            continue
        properties = tuple(_property(scope, pair, known, item) for pair in tree)
        plain = Entry(entry.key, Tree(tree.location, ()))
        found.append(JsonObject(**item_keys(plain, f"objects.{name}"), properties=properties, any_of=()))
    return tuple(found)


def _property(scope: Scope, pair: Entry, known: set[str], item: str) -> JsonProperty:
    name = pair.key.text
    leaf = as_scalar(pair.value) or Scalar(pair.value.location, "", True)
    parsed = _type_at(scope, leaf, known, f"{item}, property {name.removesuffix('?')}")
    return JsonProperty(name.removesuffix("?"), parsed, name.endswith("?"))


def _type_at(scope: Scope, leaf: Scalar, known: set[str], item: str) -> JsonType:
    parsed = parse_type(leaf.text)
    if parsed is None:
        message = f"the type {leaf.text!r} cannot be read"
        hint = "write a plain type, an object's name, [type], 'literal' | 'literal', and ? for null"
        scope.error("resolve.type-expression", leaf.location, message, item=item, hint=hint)
        return JsonType("object")
    for name in references_of(parsed):
        if name not in known:
            _unknown_object(scope, leaf.location, name, known, item)
    return parsed


def _unknown_object(scope: Scope, location: Location, name: str, known: set[str], item: str) -> None:
    hint = alternatives(name, {*known, *PLAIN_TYPES}, "types")
    message = f"there is no object {name!r}"
    scope.error("resolve.unknown-reference", location, message, item=item, hint=hint)


def resolve_http(scope: Scope) -> Http:
    """Facts of the API that belong to no single endpoint."""
    entry = scope.tree.entry("http") or Entry(
        Scalar(Location("http"), "http", True), Tree(Location("http"), ())
    )
    tree = as_tree(entry.value)
    cors = as_tree(tree.get("cors"))

    def parts(section: str) -> Iterator[tuple[Any, Tree]]:
        for part in as_tree(tree.get(section)):
            yield item_keys(part, f"http.{section}.{part.key.text}"), as_tree(part.value)

    return Http(
        **item_keys(entry, "http"),
        order=texts_of(tree, "order"),
        errors=scope.expect_all(tree.get("errors"), scope.names("api_errors"), "api errors", "http"),
        open_paths=texts_of(tree, "open_paths"),
        anthropic_paths=texts_of(tree, "anthropic_paths"),
        headers=tuple(Header(**keys, sent=text_of(part, "sent")) for keys, part in parts("headers")),
        ids=tuple(
            IdForm(**keys, prefix=text_of(part, "prefix"), digits=integer_of(part, "digits") or 0)
            for keys, part in parts("ids")
        ),
        cors_methods=texts_of(cors, "methods"),
        cors_headers=texts_of(cors, "headers"),
        cors_header_prefixes=texts_of(cors, "header_prefixes"),
        cors_expose=texts_of(cors, "expose"),
        cors_max_age=integer_of(cors, "max_age") or 0,
        loopback_hosts=texts_of(tree, "loopback_hosts"),
        finish_reasons=tuple(
            FinishReason(**keys, openai=text_of(part, "openai"), anthropic=text_of(part, "anthropic"))
            for keys, part in parts("finish_reasons")
        ),
        health_statuses=tuple(
            HealthStatus(**keys, status=integer_of(part, "status") or 0)
            for keys, part in parts("health_statuses")
        ),
    )
