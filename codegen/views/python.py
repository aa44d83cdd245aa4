"""The Python target: what each module of ``generated`` holds, as plain values for its template.

Guarantees: nothing is decided in a template; every name a template prints is a valid Python name; the order
is that of the spec.
"""

from __future__ import annotations

from typing import Any, Final

from codegen import names
from codegen.model import Item, Model, Setting, StateTable
from codegen.render import python_literal
from codegen.resolve_states import CONNECTION_EVENTS
from codegen.views import python_text as text
from codegen.views.python_errors import errors_view
from codegen.views.python_fields import fields_view
from codegen.views.python_frames import commands_view, frames_view
from codegen.views.python_wire import wire_view
from codegen.views.python_words import words_view

View = dict[str, Any]

RECEIVED: Final = dict(
    zip(CONNECTION_EVENTS, ("The handshake is complete.", "A well-formed frame came."), strict=True)
)
"""What the events of a connection mean that stand for something received."""

PASSED_THROUGH: Final = "The engine sees the gateway's own value unchanged."
"""Said of a launch variable the gateway does not set."""


def build(model: Model) -> dict[str, View | str]:
    """Views of all Python modules by output path."""
    return {
        "generated/__init__.py": {"version": model.protocol.version},
        "generated/py.typed": "",
        "generated/fingerprint.py": _fingerprint(model),
        "generated/limits.py": _limits(model),
        "generated/states.py": _states(model),
        "generated/families.py": _families(model),
        "generated/markup.py": _markup(model),
        "generated/settings.py": _settings(model),
        "generated/launch.py": _launch(model),
        "generated/http.py": _http(model),
        "generated/words.py": words_view(model),
        "generated/errors.py": errors_view(model),
        "generated/fields.py": fields_view(model),
        "generated/wire.py": wire_view(model),
        "generated/frames.py": frames_view(model),
        "generated/commands.py": commands_view(model),
    }


def item_doc(item: Item, *, lead: str = "", tail: str = "") -> str:
    """The docstring of an item: its prose, what the view adds, its stability, and where the spec has it."""
    doc = item.doc if item.doc.endswith((".", "!", "?")) else f"{item.doc}."
    parts = [lead, doc, tail]
    if item.stability != "stable":
        parts.append(f"{item.stability.capitalize()}.")
    if item.deprecated:
        parts.append(f"Deprecated since {item.deprecated.since}: use {item.deprecated.replaced_by}.")
    return " ".join(part for part in (*parts, f"(spec: {item.path})") if part)


def _fingerprint(model: Model) -> View:
    return {
        "version": model.protocol.version,
        "base": model.fingerprint_base,
        "full": model.fingerprint_full,
    }


def _limits(model: Model) -> View:
    return {
        "limits": [
            {
                "constant": names.macro(limit.name),
                "value": limit.value,
                "doc": item_doc(
                    limit,
                    lead=f"{limit.unit.capitalize()}.",
                    tail=f"Enforced by: {', '.join(limit.enforced)}.",
                ),
            }
            for limit in model.limits
        ]
    }


def _states(model: Model) -> View:
    return {"tables": [_state_table(model.request, "request"), _state_table(model.connection, "connection")]}


def _state_table(table: StateTable, name: str) -> View:
    class_name = f"{names.pascal(name)}State"

    event_class = f"{names.pascal(name)}Event"

    def target(state: str) -> str:
        return f"{class_name}.{names.macro(state)}"

    def cause(event: str) -> str:
        return f"{event_class}.{names.macro(event)}"

    return {
        "class_name": class_name,
        "event_class": event_class,
        "events": _state_events(table),
        "constant": names.macro(name),
        "doc": item_doc(table),
        "initial": names.macro(table.initial),
        "terminal": [target(state) for state in table.terminal],
        "states": [
            {
                "constant": names.macro(state.name),
                "member": target(state.name),
                "name": state.name,
                "doc": item_doc(state),
                "transitions": text.exploded(
                    "{",
                    [f"{cause(event)}: {target(to)}" for event, to in state.transitions.items()],
                    "}",
                    indent=4,
                ),
            }
            for state in table.states
        ],
    }


def _state_events(table: StateTable) -> list[View]:
    """The events of a table: what is received, in the order the table first names it, then our own doings."""
    own = {event.name for event in table.events}
    named = dict.fromkeys(event for state in table.states for event in state.transitions)
    received = [
        {
            "constant": names.macro(name),
            "name": name,
            "doc": RECEIVED.get(name, f"{name} came for the request."),
        }
        for name in named
        if name not in own
    ]
    return received + [_member(event) for event in table.events]


def _families(model: Model) -> View:
    return {
        "capabilities": [
            {"constant": names.macro(item.name), "name": item.name, "doc": item_doc(item)}
            for item in model.capabilities
        ],
        "families": [
            {
                "name": family.name,
                "model_types": family.model_types,
                "can": text.frozenset_text(family.can, indent=8, used=12),
                "stops": family.stops,
                "template": family.template,
                "doc": family.doc,
            }
            for family in model.families
        ],
    }


def _markup(model: Model) -> View:
    return {
        "templates": [
            {
                "constant": names.macro(kind.name),
                "name": kind.name,
                "doc": item_doc(kind, lead=f"Every marker of the template {kind.name}, by name."),
                "markers": [
                    {
                        "constant": names.macro(f"{kind.name}_{marker.name}"),
                        "name": marker.name,
                        "text": marker.text,
                        "doc": item_doc(marker),
                    }
                    for marker in kind.markers
                ],
            }
            for kind in model.markup
        ]
    }


def _settings(model: Model) -> View:
    families = tuple(family.name for family in model.families)
    kinds = list(dict.fromkeys(setting.type for setting in model.settings))
    return {
        "kinds": f"One of {', '.join(kinds)}",
        "settings": [_setting(setting, families) for setting in model.settings],
    }


def _setting(setting: Setting, families: tuple[str, ...]) -> View:
    choices = setting.choices
    if setting.type == "family":
        choices = tuple(dict.fromkeys((str(setting.default), *families)))
    default = (
        text.tuple_text(setting.default, indent=8, used=16)
        if isinstance(setting.default, tuple)
        else python_literal(setting.default)
    )
    return {
        "name": setting.name,
        "flag": setting.flag,
        "env": setting.env,
        "kind": setting.type,
        "default": default,
        "low": setting.low,
        "high": setting.high,
        "choices": text.tuple_text(choices, indent=8, used=16),
        "unit": setting.unit,
        "multiple": setting.multiple,
        "doc": setting.doc,
    }


def _launch(model: Model) -> View:
    variables = [
        {
            "constant": names.macro(variable.name),
            "name": variable.name,
            "value": variable.value,
            "doc": item_doc(variable, tail=PASSED_THROUGH if variable.passed_through else ""),
        }
        for variable in model.launch.environment
    ]
    return {
        "variables": variables,
        "fixed": [variable for variable in variables if variable["value"] is not None],
        "arguments": tuple(argument.name for argument in model.launch.argv),
    }


def _member(item: Item) -> View:
    """A member of an enum of words."""
    return {"constant": names.macro(item.name), "name": item.name, "doc": item_doc(item)}


def _http(model: Model) -> View:
    http = model.http
    return {
        "order": http.order,
        "routes": [
            {"method": endpoint.method, "path": endpoint.route, "dialect": endpoint.dialect}
            for endpoint in model.endpoints
        ],
        "open_paths": http.open_paths,
        "anthropic_paths": http.anthropic_paths,
        "loopback_hosts": text.frozenset_text(http.loopback_hosts, indent=0, used=40),
        "headers": [
            {
                "constant": f"{names.macro(header.name)}_HEADER",
                "name": header.name,
                "doc": item_doc(header, tail=f"Sent: {header.sent}."),
            }
            for header in http.headers
        ],
        "ids": [
            {
                "constant": f"{names.macro(form.name)}_ID",
                "prefix": form.prefix,
                "digits": form.digits,
                "doc": item_doc(form),
            }
            for form in http.ids
        ],
        "cors_methods": http.cors_methods,
        "cors_headers": http.cors_headers,
        "cors_header_prefixes": http.cors_header_prefixes,
        "cors_expose": http.cors_expose,
        "cors_max_age": http.cors_max_age,
        "finish_reasons": [
            {**_member(reason), "openai": reason.openai, "anthropic": reason.anthropic}
            for reason in http.finish_reasons
        ],
        "health_statuses": [{**_member(status), "status": status.status} for status in http.health_statuses],
    }
