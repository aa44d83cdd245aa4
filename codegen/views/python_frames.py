"""Views of ``generated/frames.py`` and ``commands.py``: the plans of all messages and what joins them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from codegen.layout import Counted, Literal, Optional, Part, Rest, Word
from codegen.model import Message, Model, RealType, UintType, WireField
from codegen.names import macro
from codegen.render import python_literal
from codegen.views import python_text as text
from codegen.views.python_messages import attributes, class_name, local
from codegen.views.python_wire import READY, Step, View, message_view

LINE = {"frame": "frame_line_bytes", "command": "command_line_bytes"}
"""Limit of a header line by direction."""

REFUSED, BROKEN = "BAD_REQUEST", "BAD_FRAME"
"""Wire errors an engine answers a command with that it does not take, and one it cannot find the end of."""


def frames_view(model: Model) -> View:
    """Everything ``frames.py.j2`` prints."""
    frames = [_frame(message) for message in model.frames]
    ready = _ready(model)
    every = [*frames, ready]
    return {
        "messages": every,
        "frames": frames,
        "ready": ready,
        "quick": [quick for message in model.frames if (quick := _quick(message)) is not None],
        "sentinel": model.handshake.sentinel,
        "sentinel_doc": "one line with the engine's first numbers follows it.",
        "line_limit": macro(LINE["frame"]),
        "imports": _imports(
            every, ["EXCERPT_BYTES", "BadWord", "FieldError", "Message", "ProtocolFault", "split_words"]
        ),
        "union": _union(every),
        "no_effect": _classes(message for message in model.frames if message.no_effect),
        "advisory": _classes(message for message in model.frames if message.advisory),
        "telemetry": _classes(
            message
            for message in model.frames
            if not message.no_effect and all(field.name != "id" for field in message.fields)
        ),
    }


def _classes(messages: Any) -> str:
    return text.tuple_of([class_name(message) for message in messages], indent=0, used=60)


def _union(messages: list[View]) -> str:
    members = [message["class_name"] for message in messages]
    flat = " | ".join(members)
    return flat if len(flat) < 80 else "(\n    " + "\n    | ".join(members) + "\n)"


_RUNTIME = (
    "finite_real",
    "hexadecimal",
    "is_hexadecimal",
    "is_visible",
    "ranged_real",
    "real",
    "uint",
    "uint_or",
    "visible",
)
_TABLE_RUNTIME = ("plain_numbers",)


def _imports(messages: list[View], always: list[str]) -> list[str]:
    """Names the module needs from the runtime, in import order."""
    steps = [step for message in messages for step in (*message["read_steps"], *message["write_steps"])]
    forms = {step["form"] for step in steps}
    expressions = " ".join(
        str(value)
        for step in steps
        for value in (step.get("expression"), step.get("condition"), step.get("columns"))
    )
    found = [name for name in _RUNTIME if re.search(rf"(?<![A-Za-z0-9_]){name}[(,]", expressions)]
    found += [name for form, name in (("literal", "literal"), ("keys", "read_keys")) if form in forms]
    if any(message.get("is_quick") for message in messages):
        found += _TABLE_RUNTIME
    return sorted({*always, *found}, key=_import_key)


def _import_key(name: str) -> tuple[int, str]:
    """Constants, then classes, then functions, as the linter sorts them."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def _frame(message: Message) -> View:
    view = message_view(message)
    payload = message.payloads[0] if message.payloads else None
    if len(message.payloads) > 1:
        raise ValueError(f"{message.path}: a frame has at most one payload")
    quick = _quick(message)
    view.update(
        text_of=[field.attribute for field in message.fields if field.repeated] if message.advisory else [],
        is_quick=quick is not None,
    )
    if payload is None:
        values = [f"{attribute.name}={local(attribute.name)}" for attribute in attributes(message)]
        view["reader_type"] = view["class_name"]
        view["result"] = text.listing(f"{view['class_name']}(", values, ")", indent=4, used=11)
    else:
        view["reader_type"] = "_Awaited"
        view["result"] = _awaited(message)
    return view


def _awaited(message: Message) -> str:
    """What a header with a payload means, made of the local variables of a reader."""
    payload = message.payloads[0]
    found = attributes(message)
    names = [attribute.name for attribute in found]
    place = len(names) if payload.drained else names.index(payload.attribute)
    expressions = [local(name) for name in names]
    before = text.tuple_of(expressions[:place], indent=4, used=200 if place > 5 else 0)
    after = "None" if payload.drained else text.tuple_of(expressions[place + 1 :], indent=4, used=0)
    return f"{local(payload.size)}, {class_name(message)}, {before}, {after}"


def _ready(model: Model) -> View:
    """The handshake as a message: its sentinel goes before the line; the reader searches it by itself."""
    handshake = model.handshake
    message = replace(handshake.message, name=READY)
    view = _frame(message)
    view["written"] = f"SENTINEL + {view['written']}"
    view["writer_doc"] = (
        "The sentinel and the line after it. Raises FieldError for a value the wire does not carry."
    )
    first: Step = {
        "form": "literal",
        "pad": "    ",
        "place": 0,
        "text": handshake.message.layout.kind.encode(),
    }
    view["read_steps"] = [first, *view["read_steps"]]
    return view


# ---------------------------------------------------------------- tables read at once


def _quick(message: Message) -> View | None:
    """Plan for reading all numbers of a header at once; None for a message it is of no use to.

    It takes a repeat at the end, and before it only unsigned numbers and unbounded reals.
    """
    parts = _flat(message.layout.parts)
    if not parts or not isinstance(parts[-1], Counted) or not message.payloads or message.payloads[0].drained:
        return None
    scalars, table = parts[:-1], parts[-1]
    words = [part for part in scalars if isinstance(part, Word)]
    fields = [message.field(part.name) for part in words]
    columns = [message.field(word.name) for word in table.words]
    plain = all(
        isinstance(field.type, UintType) or (isinstance(field.type, RealType) and not field.type.finite)
        for field in (*fields, *columns)
    )
    if not plain or len(words) != len(scalars):
        return None
    fixed, width = len(words), len(columns)
    count = message.field(table.count).type
    assert isinstance(count, UintType)
    return {
        "kind": message.name,
        "kind_bytes": python_literal(message.layout.kind.encode()),
        "quick_reader": f"_read_plain_{message.name.lower()}",
        "kind_length": len(message.layout.kind) + 1,
        "fixed": fixed,
        "scalars": ", ".join(local(field.name) for field in fields),
        "columns": [
            {
                "target": local(field.attribute),
                "slice": f"{fixed + place}::{width}",
                "convert": "index" if isinstance(field.type, UintType) else "float",
            }
            for place, field in enumerate(columns)
        ],
        "reals": [local(field.name) for field in fields if isinstance(field.type, RealType)],
        "count": local(table.count),
        "count_low": max(count.low, 1),
        "count_high": count.high,
        "checks": _quick_checks(fields, columns, table.count),
        "result": _awaited(message),
    }


def _quick_checks(fields: list[WireField], columns: list[WireField], count: str) -> list[str]:
    """Conditions on the numbers. 0 is left to the careful reader: JSON knows -0, unsigned words do not."""
    checks = []
    for field in fields:
        if isinstance(field.type, UintType) and field.name != count:
            name = local(field.name)
            checks += [f"type({name}) is int", f"{max(field.type.low, 1)} <= {name} <= {field.type.high}"]
    for field in columns:
        if isinstance(field.type, UintType):
            name = local(field.attribute)
            checks += [f"min({name}) >= {max(field.type.low, 1)}", f"max({name}) <= {field.type.high}"]
    return checks


def _flat(parts: tuple[Part, ...]) -> list[Part]:
    """The parts of the longest form, without brackets; empty when it holds more than words and a repeat."""
    found: list[Part] = []
    for part in parts:
        if isinstance(part, Optional):
            inner = _flat(part.parts)
            if not inner:
                return []
            found += inner
        elif isinstance(part, Word | Literal | Counted):
            found.append(part)
        else:
            return []
    return found


# ---------------------------------------------------------------- commands


def commands_view(model: Model) -> View:
    """Everything ``commands.py.j2`` prints."""
    codes = {code.name for code in model.wire_errors}
    if not {REFUSED, BROKEN} <= codes:
        raise ValueError(f"the spec has no wire errors {REFUSED} and {BROKEN}")
    commands = [_command(message) for message in model.commands]
    return {
        "commands": commands,
        "line_limit": macro(LINE["command"]),
        "refused": REFUSED,
        "broken": BROKEN,
        "imports": _imports(
            commands,
            ["EXCERPT_BYTES", "BadWord", "FieldError", "Message", "ProtocolFault", "split_words", "uint"],
        ),
        "union": _union(commands),
    }


def _command(message: Message) -> View:
    view = message_view(message)
    payloads = [payload.attribute for payload in message.payloads]
    places = [_place(message, payload.size) for payload in message.payloads]
    sizes = [local(payload.size) for payload in message.payloads]
    keys = {key.name: f"keys.get({python_literal(key.name)})" for key in message.keys}
    values = [
        f"{attribute.name}={keys.get(attribute.name, local(attribute.name))}"
        for attribute in attributes(message)
    ]
    lead = f"lambda {', '.join(payloads)}: " if payloads else "lambda: "
    made = text.exploded(f"{view['class_name']}(", values, ")", indent=4)
    id_field = message.field("id").type
    assert isinstance(id_field, UintType)
    view.update(
        extension_keys=[
            {"name": key.name, "low": key.type.low, "high": key.type.high} for key in message.keys
        ],
        keys_table=f"_{message.name}_KEYS",
        size_places=text.tuple_text(places, indent=8, used=20),
        id_place=_place(message, "id"),
        id_low=id_field.low,
        id_high=id_field.high,
        result=f"{text.tuple_of(sizes, indent=4, used=11)}, {lead}{made}",
    )
    return view


def _place(message: Message, field: str) -> int:
    """Place of the word of ``field`` in a header, the kind being at 0."""
    parts = [part for part in message.layout.walk() if isinstance(part, Word | Literal | Rest)]
    return 1 + next(
        place for place, part in enumerate(parts) if isinstance(part, Word) and part.name == field
    )
