"""View of the reference pages: tables of docs/protocol.md and docs/api.md, and the diagrams beside them."""

from __future__ import annotations

from collections.abc import Mapping

from ..model import HexType, Message, Model, RealType, StateTable, UintType, WireField, WireType
from . import diagrams, docs_api, docs_rules
from .markdown import anchor, code, meaning, table

DIAGRAMS = "docs/diagrams/"


def build(model: Model) -> Mapping[str, object]:
    """Outputs of the docs target: the folder of diagrams, and the tables by name."""
    drawings = {
        f"{message.name.lower()}.svg": diagrams.railroad(message)
        for message in (*model.commands, *model.frames)
    }
    drawings["request.svg"] = diagrams.states(model.request)
    drawings["connection.svg"] = diagrams.states(model.connection)
    return {
        DIAGRAMS: drawings,
        "tables": {**protocol_tables(model), **docs_api.tables(model), **docs_rules.tables()},
    }


def protocol_tables(model: Model) -> dict[str, str]:
    """Everything generated on docs/protocol.md."""
    return {
        "protocol": _promise(model),
        "limits": _limits(model),
        "launch": _launch(model),
        "handshake": _message(model.handshake.message, drawing=False),
        "commands": "\n".join(_message(message) for message in model.commands),
        "frames": "\n".join(_message(message) for message in model.frames),
        "faults": table(("fault", "meaning"), [(code(fault.name), fault.doc) for fault in model.faults]),
        "wire-errors": _wire_errors(model),
        "request-states": _states(model.request),
        "connection-states": _states(model.connection),
    }


def type_range(kind: WireType) -> str:
    """What values a wire type takes, in words."""
    if isinstance(kind, UintType):
        odd = "" if kind.unreadable is None else f"; any other word is read as {kind.unreadable}"
        return f"{kind.low} … {_power(kind.high)}{odd}"
    if isinstance(kind, HexType):
        return "hexadecimal digit pairs"
    if not isinstance(kind, RealType):
        return "any word"
    if kind.low is None and kind.above is None:
        return "decimal" if kind.finite else "decimal, nan, inf, -inf"
    low = f"> {kind.above:g}" if kind.above is not None else f"{kind.low:g} …"
    return f"{low} … {kind.high:g}".replace("… …", "…") if kind.above is None else f"{low}, ≤ {kind.high:g}"


def _power(value: int) -> str:
    for exponent in (31, 32, 63, 64):
        if value == 2**exponent - 1:
            return f"2^{exponent}−1"
    return f"{value:,}" if value > 9999 else str(value)


def _promise(model: Model) -> str:
    protocol = model.protocol
    rows = [
        ("version", protocol.version),
        ("promise", protocol.promise),
        ("a frame of unknown kind", protocol.unknown_frames),
        ("an unknown extension key", protocol.unknown_keys),
        ("an unknown error word", protocol.unknown_errors),
        ("words after the last one", protocol.trailing_words),
        ("fingerprint of the mandatory layout", code(model.fingerprint_base[:16] + "…")),
        ("fingerprint of everything", code(model.fingerprint_full[:16] + "…")),
    ]
    return table(("fact", "value"), rows)


def _limits(model: Model) -> str:
    rows = [
        (
            anchor(limit.path) + code(limit.name),
            f"{limit.value:,}",
            limit.unit,
            ", ".join(limit.enforced),
            code(limit.error),
            meaning(limit),
        )
        for limit in model.limits
    ]
    return table(("limit", "value", "unit", "enforced by", "error", "meaning"), rows)


def _launch(model: Model) -> str:
    rows = []
    for variable in model.launch.environment:
        value = "passed through" if variable.passed_through else variable.value or "set by the gateway"
        bounds = f"{variable.low} … {variable.high}" if variable.low is not None else ""
        rows.append((anchor(variable.path) + code(variable.name), variable.type, value, bounds, variable.doc))
    return table(("variable", "type", "value", "range", "meaning"), rows)


def _message(message: Message, drawing: bool = True) -> str:
    lines = [f"### {message.name}", "", f"{anchor(message.path)}{meaning(message)}", ""]
    if message.stability == "experimental":
        lines += ["*Experimental: may change in a minor version.*", ""]
    if drawing:
        lines += [f"![layout of {message.name}](diagrams/{message.name.lower()}.svg)", ""]
    lines += ["```text", message.layout.text, "```", ""]
    rows = [_field_row(field) for field in message.fields]
    rows += [
        (
            anchor(payload.path) + code(payload.attribute),
            "bytes",
            "",
            f"as `{payload.size}` says",
            payload.holds,
        )
        for payload in message.payloads
    ]
    lines.append(table(("field", "type", "unit", "range", "meaning"), rows))
    if message.keys:
        keys = [
            (anchor(key.path) + code(f"{key.name}="), type_range(key.type), code(key.needs), meaning(key))
            for key in message.keys
        ]
        lines.append(table(("key, in this order", "range", "capability", "meaning"), keys))
    lines.append(_examples(message))
    return "\n".join(lines)


def _field_row(field: WireField) -> tuple[str, str, str, str, str]:
    place = "repeated" if field.repeated else "optional" if field.optional else ""
    name = anchor(field.path) + code(field.name) + (f" ({place})" if place else "")
    return name, field.type.name, field.unit, type_range(field.type), meaning(field)


def escaped(data: bytes) -> str:
    """Bytes as a reader can type them: UTF-8 where it is, escapes elsewhere."""
    text = data.decode("utf-8", "backslashreplace")
    return text.replace("\n", "\\n").replace("\x01", "\\x01")


def _examples(message: Message) -> str:
    rows = []
    for example in message.examples:
        if example.fault is not None:
            place = f" in `{example.fault.field}`" if example.fault.field else ""
            answer = f", answered {code(example.fault.code)}" if example.fault.code else ""
            meaning = f"fault {code(example.fault.rule)}{place}{answer}"
        else:
            gives = example.gives or {}
            meaning = ", ".join(f"{name} = {_value(value)}" for name, value in gives.items())
        rows.append((code(escaped(example.data)), meaning))
    return table(("example bytes", "gives"), rows)


def _value(value: object) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(_value(part) for part in value) + "]"
    return str(value)


def _wire_errors(model: Model) -> str:
    rows = []
    for error in model.wire_errors:
        name = anchor(error.path) + (code(error.name) if error.on_wire else "—")
        spelling = ", ".join(code(text) for text in (*error.details, *error.spelled) if text)
        joins = [
            (code(join.error) if join.error else "nobody is told")
            + ("" if join.condition in ("always", "otherwise") else f" ({join.condition})")
            for join in error.http
        ]
        rows.append((name, error.doc, spelling, ", else ".join(joins), error.cause, error.remedy))
    return table(("code", "meaning", "details and spellings", "HTTP", "cause", "what to do"), rows)


def _states(states: StateTable) -> str:
    about = table(
        ("state", "meaning"), [(anchor(state.path) + code(state.name), state.doc) for state in states.states]
    )
    rows = [
        (code(state.name), code(event), code(target))
        for state in states.states
        for event, target in state.transitions.items()
    ]
    events = table(
        ("event of the gateway", "meaning"), [(code(event.name), event.doc) for event in states.events]
    )
    return "\n".join([about, events, table(("in state", "on", "goes to"), rows)])
