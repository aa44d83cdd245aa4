"""Third floor: rules of good practice over the resolved model.

One small function per rule, registered with its id, purpose and advice (:mod:`codegen.lint_wire` and
:mod:`codegen.lint_http` register theirs here too); a rule sees the whole model and yields what it finds. An
item may be excused from a rule by ``allow: {RULE: REASON}`` in the spec; an excuse that excuses nothing is
itself an error. Guarantees: every finding points at the item it is about; the outcome depends on the model
alone.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Iterator
from typing import Any, Final

from . import names
from .findings import Findings, Related, Rule, did_you_mean
from .model import (
    Http,
    Item,
    JsonObject,
    Message,
    Model,
    RequestField,
)
from .scope import FIRST_RELEASE


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """What a rule found: the item, the message, what to do, and possibly another item involved."""

    item: Item
    message: str
    hint: str = ""
    other: Item | None = None


Check = Callable[[Model], Iterator[Problem]]

CHECKS: Final[dict[str, tuple[Rule, Check]]] = {}
"""Every lint rule by id, with its function."""


def rule(rule_id: str, purpose: str, advice: str) -> Callable[[Check], Check]:
    """Register the decorated function as the check of ``rule_id``."""

    def register(check: Check) -> Check:
        if rule_id in CHECKS:
            raise ValueError(f"the rule {rule_id} is registered twice")
        CHECKS[rule_id] = (Rule(rule_id, purpose, advice), check)
        return check

    return register


def lint_model(model: Model, findings: Findings) -> None:
    """Run every rule over ``model``; excused problems are dropped, unused excuses reported."""
    _load_rules()
    used: set[tuple[str, str]] = set()
    for rule_id, (_, check) in CHECKS.items():
        for problem in check(model):
            if rule_id in problem.item.allow:
                used.add((problem.item.path, rule_id))
                continue
            related = (Related("the other one", problem.other.location),) if problem.other else ()
            findings.error(
                rule_id,
                problem.item.location,
                problem.message,
                item=label(problem.item),
                hint=problem.hint,
                related=related,
            )
    for item in walk(model):
        for rule_id, reason in item.allow.items():
            if rule_id not in CHECKS:
                hint = did_you_mean(rule_id, CHECKS) or "`python -m codegen rules` lists them"
                message = f"an excuse from the unknown rule {rule_id!r}"
                findings.error("allow.unknown-rule", item.location, message, item=label(item), hint=hint)
            elif (item.path, rule_id) not in used:
                message = f"the excuse from {rule_id} ({reason}) excuses nothing"
                findings.error("allow.unused", item.location, message, item=label(item), hint="remove it")


ALLOW_RULES: Final = (
    Rule("allow.unused", "An excuse excuses something.", "Remove the excuse; the reason for it is gone."),
    Rule("allow.unknown-rule", "An excuse names a rule that exists.", "Correct the id."),
)


def _load_rules() -> None:
    """Import the modules that register rules; they import this one, hence not at the top."""
    for module in ("lint_wire", "lint_http"):
        importlib.import_module(f"codegen.{module}")


def lint_rules() -> tuple[Rule, ...]:
    """Every rule of this floor."""
    _load_rules()
    return (*(entry for entry, _ in CHECKS.values()), *ALLOW_RULES)


_LABELS: Final = {
    "frames": "frame",
    "commands": "command",
    "fields": "field",
    "keys": "key",
    "payloads": "payload",
    "limits": "limit",
    "types": "type",
    "states": "state",
    "events": "event",
    "wire_errors": "wire error",
    "api_errors": "api error",
    "settings": "setting",
    "endpoints": "endpoint",
    "hooks": "hook",
    "faults": "fault",
    "objects": "object",
    "members": "family",
    "capabilities": "capability",
    "markup": "markup",
    "markers": "marker",
    "field_sets": "field set",
    "environment": "variable",
    "argv": "argument",
    "rules": "rule",
    "headers": "header",
    "ids": "id",
    "finish_reasons": "finish reason",
    "health_statuses": "health status",
}


def label(item: Item) -> str:
    """How a reader calls ``item``."""
    return spoken(item.path)


def spoken(path: str) -> str:
    """A path as a reader says it: ``frames.ECHO.fields.k`` → frame ECHO, field k."""
    parts = path.split(".")
    if parts[0] == "endpoints":
        route, _, inner = path.removeprefix("endpoints.").partition(".fields.")
        return f"endpoint {route}, field {inner}" if inner else f"endpoint {route}"
    if parts[0] == "field_sets":
        return f"field set {parts[1]}, field {'.'.join(parts[2:])}"
    told: list[str] = []
    index = 0
    while index < len(parts):
        word = _LABELS.get(parts[index])
        if word is not None and index + 1 < len(parts):
            told.append(f"{word} {parts[index + 1]}")
            index += 2
        else:
            told.append(parts[index])
            index += 1
    return ", ".join(told)


_FIELD_NAMES: Final[dict[type, tuple[str, ...]]] = {}


def _field_names(kind: type) -> tuple[str, ...]:
    if kind not in _FIELD_NAMES:
        _FIELD_NAMES[kind] = tuple(field.name for field in dataclasses.fields(kind))
    return _FIELD_NAMES[kind]


_LAST: Final[list[tuple[Model, tuple[Item, ...]]]] = []
"""The items of the model asked for last: several rules walk the same model."""


def walk(model: Model) -> tuple[Item, ...]:
    """Every item of the model once, outer before inner."""
    if not _LAST or _LAST[0][0] is not model:
        seen: set[tuple[str, type]] = set()
        found = [item for name in _field_names(Model) for item in _walk(getattr(model, name), seen)]
        _LAST[:] = [(model, tuple(found))]
    return _LAST[0][1]


def _walk(value: Any, seen: set[tuple[str, type]]) -> Iterator[Item]:
    if isinstance(value, tuple):
        for part in value:
            yield from _walk(part, seen)
    elif isinstance(value, Item):
        key = (value.path, type(value))
        if key in seen:
            return
        seen.add(key)
        yield value
        for name in _field_names(type(value)):
            part = getattr(value, name)
            if isinstance(part, tuple | Item):
                yield from _walk(part, seen)


def version_of(text: str) -> tuple[int, ...]:
    """``1.2.0`` → (1, 2, 0), for comparing."""
    return tuple(int(part) for part in text.split("."))


# ---------------------------------------------------------------- names


@rule(
    "name.clash", "No two names of one namespace become the same name in a target.", "Rename one of the two."
)
def _name_clash(model: Model) -> Iterator[Problem]:
    for namespace in _namespaces(model):
        seen: dict[str, Item] = {}
        for item, form in namespace:
            if form in seen and seen[form].path != item.path:
                message = f"{item.name!r} and {seen[form].name!r} both become {form!r}"
                yield Problem(item, message, other=seen[form])
            seen.setdefault(form, item)


def _namespaces(model: Model) -> Iterator[list[tuple[Item, str]]]:
    """Lists of items whose emitted names share a scope: a module, a class, a C prefix, a command line."""
    messages = [*model.commands, *model.frames, model.handshake.message]
    groups: tuple[tuple[Item, ...], ...] = (
        model.limits,
        model.types,
        model.wire_errors,
        model.api_errors,
        model.settings,
        model.families,
        model.objects,
        model.hooks,
        model.faults,
        model.capabilities,
        model.request.states,
        model.connection.states,
        (*model.frames, *model.request.events),
        model.connection.events,
        tuple(messages),
    )
    for group in groups:
        yield [(item, names.snake(item.name)) for item in group]
    yield [(marker, f"{kind.name}_{marker.name}") for kind in model.markup for marker in kind.markers]
    for message in messages:
        yield [(item, names.snake(name)) for item, name in members(message)]
    yield [(setting, setting.flag) for setting in model.settings if setting.flag]
    yield [(setting, setting.env) for setting in model.settings if setting.env]


def members(message: Message) -> list[tuple[Item, str]]:
    """Everything that becomes a member of the message's class, with its member name."""
    return [
        *((field, field.attribute) for field in message.fields),
        *((payload, payload.attribute) for payload in message.payloads),
        *((key, key.name) for key in message.keys),
    ]


@rule(
    "name.reserved-word", "No emitted name is a reserved word of a target language.", "Choose another name."
)
def _reserved_word(model: Model) -> Iterator[Problem]:
    for message in (*model.commands, *model.frames, model.handshake.message):
        for item, name in members(message):
            yield from _reserved_in(item, name)
    for group in (model.api_errors, model.settings, model.families):
        for entry in group:
            yield from _reserved_in(entry, entry.name)


def _reserved_in(item: Item, name: str) -> Iterator[Problem]:
    languages = names.reserved_in(name)
    if languages:
        yield Problem(item, f"{names.snake(name)!r} is a reserved word of {' and '.join(languages)}")


# ---------------------------------------------------------------- every item


@rule("doc.missing", "Every item says what it is for.", "Add a doc of one line.")
def _doc_missing(model: Model) -> Iterator[Problem]:
    for item in walk(model):
        if not item.doc and not isinstance(item, JsonObject | Http):
            yield Problem(item, "there is no doc")


@rule("since.missing", "A deprecation says since when.", "Add since: VERSION to the deprecation.")
def _since_missing(model: Model) -> Iterator[Problem]:
    for item in walk(model):
        if item.deprecated is not None and not item.deprecated.since:
            yield Problem(item, "the deprecation has no since")


@rule(
    "since.future", "No item is newer than the protocol.", "Raise the protocol's version, or correct since."
)
def _since_future(model: Model) -> Iterator[Problem]:
    present = version_of(model.protocol.version)
    for item in walk(model):
        if item.since != FIRST_RELEASE and version_of(item.since) > present:
            yield Problem(
                item, f"since {item.since} is after the protocol's version {model.protocol.version}"
            )


@rule(
    "deprecated.no-replacement",
    "A deprecation says what to use instead.",
    "Add replaced_by, or a note that says why there is none.",
)
def _no_replacement(model: Model) -> Iterator[Problem]:
    for item in walk(model):
        if item.deprecated is not None and not item.deprecated.replaced_by and not item.deprecated.note:
            yield Problem(item, "deprecated without replaced_by or note")


@rule(
    "deprecated.unknown-replacement",
    "A replacement exists beside what it replaces.",
    "Name a sibling of the item.",
)
def _unknown_replacement(model: Model) -> Iterator[Problem]:
    paths = {item.path for item in walk(model)}
    for item in walk(model):
        if item.deprecated is not None and item.deprecated.replaced_by:
            sibling = item.path.removesuffix(item.name) + item.deprecated.replaced_by
            if sibling not in paths:
                yield Problem(
                    item, f"its replacement {item.deprecated.replaced_by!r} does not exist beside it"
                )


@rule(
    "deprecated.overdue",
    "What was to be removed by now is gone.",
    "Remove it, or move remove_in to a later version.",
)
def _overdue(model: Model) -> Iterator[Problem]:
    present = version_of(model.protocol.version)
    for item in walk(model):
        gone = item.deprecated.remove_in if item.deprecated is not None else None
        if gone is not None and version_of(gone) <= present:
            yield Problem(item, f"to be removed in {gone}, and the protocol is at {model.protocol.version}")


@rule("version.form", "The first release is 1.0.0.", "Start at 1.0.0 and count up.")
def _version_form(model: Model) -> Iterator[Problem]:
    if version_of(model.protocol.version) < (1, 0, 0):
        yield Problem(model.protocol, f"the version {model.protocol.version} is before the first release")


def request_fields(model: Model) -> Iterator[RequestField]:
    """Every request field once, shared ones included."""
    seen: set[str] = set()
    for endpoint in model.endpoints:
        for field in endpoint.fields:
            if field.path not in seen:
                seen.add(field.path)
                yield field
