"""Lint rules for the HTTP half: errors and their mapping, statuses, fields and orders, objects, families,
settings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from .findings import alternatives
from .json_type import parse_type, references_of
from .lint import Problem, request_fields, rule
from .model import Endpoint, Item, JsonType, JsonValue, Model, RequestField

OPENAI_TYPES: Final = {401: {"authentication_error"}, 429: {"rate_limit_error"}}
"""Error type of the OpenAI envelope by status; other 4xx are invalid_request_error, 5xx server_error."""

ANTHROPIC_TYPES: Final = {
    401: {"authentication_error"},
    403: {"permission_error"},
    404: {"not_found_error"},
    413: {"request_too_large"},
    429: {"rate_limit_error"},
}
"""Error type of the Anthropic envelope by status; other 4xx are invalid_request_error, 5xx api or
overloaded.
"""


@rule("error.unused", "Every api error can happen.", "Name it where it is answered, or remove it.")
def _unused(model: Model) -> Iterator[Problem]:
    used = {limit.error for limit in model.limits} | set(model.http.errors)
    for wire_error in model.wire_errors:
        used |= {join.error for join in wire_error.http} | {wire_error.without_numbers}
    for endpoint in model.endpoints:
        used |= set(endpoint.errors)
    for error in model.api_errors:
        if error.name not in used:
            yield Problem(error, "no limit, wire error, endpoint or http.errors names it")


@rule(
    "error.no-http-mapping",
    "Every wire error has its HTTP face.",
    "Add http: ERROR, or http: {…, otherwise: ERROR}.",
)
def _no_mapping(model: Model) -> Iterator[Problem]:
    for error in model.wire_errors:
        conditions = {join.condition for join in error.http}
        if not conditions & {"always", "otherwise"}:
            yield Problem(error, "nothing says what becomes of it in every case")


@rule(
    "error.no-fallback",
    "Exactly one wire error stands for all other words.",
    "Give one of them fallback: true.",
)
def _no_fallback(model: Model) -> Iterator[Problem]:
    fallbacks = [error for error in model.wire_errors if error.fallback]
    if model.wire_errors and not fallbacks:
        yield Problem(model.wire_errors[-1], "no wire error is the fallback")
    for error in fallbacks[1:]:
        yield Problem(error, "there is a second fallback", other=fallbacks[0])


@rule("error.retry-after", "retry: after and retry_after come together.", "Add the one that is missing.")
def _retry_after(model: Model) -> Iterator[Problem]:
    for error in model.api_errors:
        if (error.retry == "after") != (error.retry_after is not None):
            told = "without a retry_after" if error.retry == "after" else "with a retry_after"
            yield Problem(error, f"retry is {error.retry} {told}")


@rule(
    "http.status-shape-mismatch",
    "The error types of both envelopes fit the status.",
    "Correct the status or the types.",
)
def _status_shape(model: Model) -> Iterator[Problem]:
    for error in model.api_errors:
        server = error.status >= 500
        openai = OPENAI_TYPES.get(error.status, {"server_error" if server else "invalid_request_error"})
        default = {"api_error", "overloaded_error"} if server else {"invalid_request_error"}
        anthropic = ANTHROPIC_TYPES.get(error.status, default)
        if error.status < 400:
            yield Problem(error, f"{error.status} is no error status")
        elif error.type not in openai:
            yield Problem(
                error, f"status {error.status} with type {error.type}", f"valid: {', '.join(sorted(openai))}"
            )
        elif error.anthropic_type not in anthropic:
            valid = ", ".join(sorted(anthropic))
            yield Problem(
                error,
                f"status {error.status} with the Anthropic type {error.anthropic_type}",
                f"valid: {valid}",
            )


@rule("error.param-unknown", "The param of an error is a field of a request.", "Name a field, or null.")
def _param(model: Model) -> Iterator[Problem]:
    known = {field.name for field in request_fields(model)}
    for error in model.api_errors:
        if error.param is not None and error.param not in known:
            yield Problem(error, f"no endpoint has a field {error.param!r}")


@rule(
    "endpoint.error-unlisted",
    "An endpoint lists the errors its fields answer with.",
    "Add the error to the endpoint's errors.",
)
def _unlisted(model: Model) -> Iterator[Problem]:
    for endpoint in model.endpoints:
        for field in endpoint.fields:
            for name in (field.error, field.otherwise, *field.refuse.values()):
                if name is not None and name not in endpoint.errors:
                    yield Problem(
                        endpoint, f"field {field.name} answers {name}, which is not listed", other=field
                    )


@rule(
    "field.unchecked",
    "Every field of a request is checked somewhere.",
    "Put it, or its hook, into the order.",
)
def _unchecked(model: Model) -> Iterator[Problem]:
    for endpoint in model.endpoints:
        reached = {step.name for steps in endpoint.orders.values() for step in steps}
        reached |= _other_spellings(endpoint, reached) | set(model.http.order)
        for field in endpoint.fields:
            if field.name not in reached and not field.no_effect:
                yield Problem(field, f"no order of {endpoint.name} checks it")


def _other_spellings(endpoint: Endpoint, reached: set[str]) -> set[str]:
    """Fields that the check of another one reads (the two spellings of one wish), and fields a hook of
    theirs reads.
    """
    by_hook = {
        field.name for field in endpoint.fields if field.shape is not None and _hook_name(field) in reached
    }
    others = set()
    for field in endpoint.fields:
        if field.name in reached:
            others |= {name for name in (field.alternative, field.loses_to) if name}
    return others | by_hook


def _hook_name(field: RequestField) -> str:
    return (
        "prompts" if field.shape == "prompt" else str(field.shape).replace("anthropic_messages", "messages")
    )


@rule("field.no-error", "A field that can be refused says with which error.", "Add else: ERROR.")
def _no_error(model: Model) -> Iterator[Problem]:
    for field in request_fields(model):
        if field.error is None and field.kind != "any":
            yield Problem(field, "there is no else")


@rule("hook.unused", "Every hook is a step of some order.", "Use it or remove it.")
def _hook_unused(model: Model) -> Iterator[Problem]:
    used = {
        step.name for e in model.endpoints for steps in e.orders.values() for step in steps if step.is_hook
    }
    for hook in model.hooks:
        if hook.name not in used:
            yield Problem(hook, "no order has this step")


@rule("object.unused", "Every JSON shape is part of some answer or request.", "Use it or remove it.")
def _object_unused(model: Model) -> Iterator[Problem]:
    objects = {entry.name: entry for entry in model.objects}
    frontier = ["Error", "AnthropicError"]
    for endpoint in model.endpoints:
        frontier += [endpoint.answer, *endpoint.stream]
        for field in endpoint.fields:
            parsed = parse_type(field.schema) if field.schema else None
            frontier += references_of(parsed) if parsed else []
    reached: set[str] = set()
    while frontier:
        name = frontier.pop()
        if name in objects and name not in reached:
            reached.add(name)
            entry = objects[name]
            types: list[JsonType] = [prop.type for prop in entry.properties] + list(entry.any_of)
            frontier += [reference for parsed in types for reference in references_of(parsed)]
    for entry in model.objects:
        if entry.name not in reached:
            yield Problem(entry, "no endpoint leads to it")


@rule("capability.unused", "Every capability is had by some family.", "Give it to a family or remove it.")
def _capability(model: Model) -> Iterator[Problem]:
    had = {name for family in model.families for name in family.can}
    for capability in model.capabilities:
        if capability.name not in had:
            yield Problem(capability, "no family can do it")


@rule(
    "family.model-type-clash",
    "A model type belongs to one family.",
    "Remove the pattern from one of the two.",
)
def _model_type(model: Model) -> Iterator[Problem]:
    seen: dict[str, Item] = {}
    for family in model.families:
        for pattern in family.model_types:
            if pattern in seen:
                yield Problem(
                    family, f"{pattern!r} already belongs to {seen[pattern].name}", other=seen[pattern]
                )
            seen.setdefault(pattern, family)


@rule(
    "family.template-unknown",
    "A family's template has a markup.",
    "Add the template under markup, or name one that is there.",
)
def _template(model: Model) -> Iterator[Problem]:
    known = {kind.name for kind in model.markup}
    for family in model.families:
        if family.template and family.template not in known:
            hint = alternatives(family.template, known, "templates")
            yield Problem(family, f"there is no markup for the template {family.template!r}", hint)


@rule("markup.unused", "Every markup is that of some family's template.", "Name it in a family or remove it.")
def _markup_unused(model: Model) -> Iterator[Problem]:
    used = {family.template for family in model.families}
    for kind in model.markup:
        if kind.name not in used:
            yield Problem(kind, "no family has this template")


@rule("markup.empty", "A marker is a text that can be seen.", "Give it a text, or remove it.")
def _markup_empty(model: Model) -> Iterator[Problem]:
    for kind in model.markup:
        for marker in kind.markers:
            if not marker.text.strip():
                yield Problem(marker, "the text is empty")


@rule("markup.clash", "The markers of a template have different texts.", "Use one marker for both.")
def _markup_clash(model: Model) -> Iterator[Problem]:
    for kind in model.markup:
        seen: dict[str, Item] = {}
        for marker in kind.markers:
            if marker.text in seen:
                first = seen[marker.text]
                yield Problem(marker, f"{marker.text!r} is already the text of {first.name}", other=first)
            seen.setdefault(marker.text, marker)


@rule("setting.no-unit", "A number an operator sets has a unit.", "Add unit.")
def _setting_unit(model: Model) -> Iterator[Problem]:
    for setting in model.settings:
        if setting.type in ("integer", "number") and not setting.unit:
            yield Problem(setting, "there is no unit")


@rule("setting.no-range", "A number an operator sets has a range.", "Add range.")
def _setting_range(model: Model) -> Iterator[Problem]:
    for setting in model.settings:
        if setting.type in ("integer", "number") and setting.low is None:
            yield Problem(setting, "there is no range")


@rule(
    "example.body-missing",
    "Every endpoint that takes a body shows one.",
    "Add an example with title and body.",
)
def _body_missing(model: Model) -> Iterator[Problem]:
    for endpoint in model.endpoints:
        if endpoint.method == "POST" and endpoint.fields and not endpoint.examples:
            yield Problem(endpoint, "there is no example body")


@rule("example.body-fails", "Every example body passes the endpoint's own checks.", "Correct the body.")
def _body_fails(model: Model) -> Iterator[Problem]:
    for endpoint in model.endpoints:
        fields = {field.name: field for field in endpoint.fields}
        for example in endpoint.examples:
            for name in (field.name for field in endpoint.fields if field.required):
                if name not in example.body:
                    yield Problem(endpoint, f"example {example.title!r} lacks the required field {name!r}")
            for name, value in example.body.items():
                if name not in fields:
                    yield Problem(endpoint, f"example {example.title!r} has the unknown field {name!r}")
                elif not _passes(fields[name], value):
                    yield Problem(endpoint, f"example {example.title!r}: {name} does not take {value!r}")


def _passes(field: RequestField, value: JsonValue) -> bool:
    """Whether a value passes the part of a field's check that needs nothing but the value."""
    if value is None or value in field.off:
        return not field.null_refused
    match field.kind:
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool) and _inside(field, value)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool) and _inside(field, value)
        case "boolean":
            return isinstance(value, bool)
        case "string":
            return isinstance(value, str)
        case "accept" | "one_of":
            return value in field.accepted
        case _:
            return True


def _inside(field: RequestField, value: int | float) -> bool:
    if value == 0 and field.zero_with is not None:
        return True
    low_enough = field.high is None or value <= field.high
    high_enough = (field.low is None or value >= field.low) and (field.above is None or value > field.above)
    return low_enough and high_enough


@rule(
    "error.message-format",
    "A message template has nothing but {lower_case} placeholders.",
    "Correct the braces.",
)
def _message_format(model: Model) -> Iterator[Problem]:
    for error in model.api_errors:
        for template in (error.message, error.anthropic_message):
            if template is not None and re.search(r"[{}]", _PLACEHOLDER.sub("", template)):
                yield Problem(error, f"the template {template!r} has stray braces")


_PLACEHOLDER: Final = re.compile(r"\{[a-z_]+\}")


@rule(
    "error.pattern",
    "A pattern of words has only <names> for numbers, and ... only at its end.",
    "Correct the pattern.",
)
def _pattern(model: Model) -> Iterator[Problem]:
    for error in model.wire_errors:
        for pattern in (*error.details, *error.spelled):
            rest = re.sub(r"<[a-z_]+>", "", pattern.removesuffix("..."))
            if "..." in rest or re.search(r"[<>]", re.sub(r" > ", " ", rest)):
                yield Problem(error, f"the pattern {pattern!r} cannot be read")
