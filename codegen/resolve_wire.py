"""Resolves the wire half of the spec: types, messages, handshake, launch, states, wire errors.

Guarantees: every field of a layout has a type; every entry under ``fields``, ``payloads`` and ``keys``
belongs to something in the layout; every state a table names exists, and every event is declared or is a
frame.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from . import layout as notation
from . import values
from .findings import Rule, alternatives
from .layout import Layout, parse_layout
from .model import (
    EnvironmentVariable,
    Example,
    Fault,
    FaultRule,
    Framing,
    Handshake,
    HexType,
    HttpJoin,
    Key,
    Launch,
    Message,
    Payload,
    RealType,
    UintType,
    ValueRule,
    WireError,
    WireField,
    WireType,
    WordType,
)
from .scope import (
    Frozen,
    ItemKeys,
    Scope,
    absent,
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
from .source import Entry, Scalar
from .source import Mapping as Tree

RULES: Final = (
    *(
        Rule(f"resolve.{name}", purpose, advice)
        for name, purpose, advice in (
            ("unknown-type", "Every field of a layout has a type.", "Name it under fields, or add the type."),
            (
                "layout-kind",
                "A layout starts with the message's own name.",
                "Write the name of the message first.",
            ),
            (
                "not-in-layout",
                "What is described of a message is in its layout.",
                "Add it to the layout or remove it.",
            ),
            (
                "payload-size",
                "Every payload has its byte count in the header.",
                "Name the uint field that holds it.",
            ),
            ("key-type", "Values of extension keys are unsigned integers.", "Give the key a uint type."),
            (
                "keys-without-place",
                "Keys have their place in the layout.",
                "End the layout with [<key>=<value>]*.",
            ),
        )
    ),
    Rule(
        "key.extension-implies-payload",
        "No extension key announces bytes after the header.",
        "Use a field of the header.",
    ),
)

Types = dict[str, WireType]


def resolve_types(scope: Scope) -> Types:
    """All wire types by name."""
    types: Types = {}
    for entry in scope.section("types"):
        types[entry.key.text] = _type(scope, entry)
    return types


def _type(scope: Scope, entry: Entry) -> WireType:
    tree, name = as_tree(entry.value), entry.key.text
    keys, item = item_keys(entry, f"types.{name}"), f"type {name}"
    if tree.get("uint") is not None:
        ends = scope.range(as_scalar(tree.get("uint")), item)
        return UintType(
            **keys,
            low=int(ends.low or 0),
            high=int(ends.high or 0),
            unit=text_of(tree, "unit"),
            high_limit=ends.high_from,
            unreadable=values.parse_integer(text_of(tree, "unreadable")),
        )
    if tree.get("real") is not None:
        word = text_of(tree, "real")
        ends = scope.range(as_scalar(tree.get("real")), item)
        above = values.parse_number(text_of(tree, "above"))
        return RealType(
            **keys,
            finite=word != "any",
            low=None if ends.low is None else float(ends.low),
            high=None if ends.high is None else float(ends.high),
            above=None if above is None else float(above),
            single_precision=text_of(tree, "precision") == "single",
            print=text_of(tree, "print", "%.6f"),
            unit=text_of(tree, "unit"),
        )
    kinds: dict[str, type[WordType | HexType]] = {"word": WordType, "hex": HexType}
    return next(kind(**keys) for key, kind in kinds.items() if tree.get(key) is not None)


def resolve_framing(scope: Scope) -> Framing:
    """How messages are cut out of the stream."""
    entry = scope.tree.entry("framing") or absent("framing")
    tree = as_tree(entry.value)
    return Framing(
        **item_keys(entry, "framing"),
        encoding=text_of(tree, "encoding", "ascii"),
        separators=texts_of(tree, "separators") or (" ",),
        terminator=text_of(tree, "terminator", "\n"),
        write_separator=text_of(tree, "write_separator", " "),
        payload_terminator=text_of(tree, "payload_terminator", "\n"),
        length_unit=text_of(tree, "length_unit", "bytes"),
        skip_empty_lines=flag_of(tree, "skip_empty_lines"),
    )


def resolve_messages(
    scope: Scope, section: str, direction: Literal["frame", "command"], types: Types
) -> tuple[Message, ...]:
    """The messages of one direction."""
    found = []
    for entry in scope.section(section):
        message = _message(scope, entry, section, direction, types)
        if message is not None:
            found.append(message)
    return tuple(found)


def _message(
    scope: Scope, entry: Entry, section: str, direction: Literal["frame", "command"], types: Types
) -> Message | None:
    tree, name = as_tree(entry.value), entry.key.text
    item, path = f"{direction} {name}", f"{section}.{name}"
    keys = item_keys(entry, path)
    written = as_scalar(tree.get("layout"))
    layout = parse_layout(written, scope.findings, item) if written is not None else None
    if layout is None or written is None:
        return None
    if layout.kind != name:
        message = f"the layout starts with {layout.kind!r}, not with {name!r}"
        scope.error("resolve.layout-kind", written.location, message, item=item)
    fields = _fields(scope, tree, layout, written, path, item, types, keys)
    payloads = tuple(_payloads(scope, tree, layout, fields, keys, item))
    extension_keys = tuple(_keys(scope, tree, layout, keys, item, types))
    return Message(
        **keys,
        direction=direction,
        layout=layout,
        fields=fields,
        payloads=payloads,
        keys=extension_keys,
        rules=tuple(_value_rules(scope, tree, fields, extension_keys, path, item)),
        advisory=flag_of(tree, "advisory"),
        no_effect=flag_of(tree, "no_effect"),
        asked_by=_asked_by(scope, tree, item),
        examples=tuple(_examples(tree)),
    )


def _asked_by(scope: Scope, tree: Tree, item: str) -> str | None:
    """The key a request must have used to get this frame."""
    node = as_scalar(tree.get("asked_by"))
    commands = (as_tree(command.value) for command in scope.section("commands"))
    known = [key for command in commands for key in as_tree(command.get("keys")).names()]
    if node is None or not scope.expect(node, known, "keys", item):
        return None
    return node.text


def _fields(
    scope: Scope,
    tree: Tree,
    layout: Layout,
    written: Scalar,
    path: str,
    item: str,
    types: Types,
    parent: ItemKeys,
) -> tuple[WireField, ...]:
    described = as_tree(tree.get("fields"))
    fields = []
    for part, optional, repeated in _places(layout.parts, False):
        here = Scalar(written.at(part.offset + 1), part.name, True)
        entry = described.entry(part.name) or Entry(here, Tree(here.location, ()))
        type_node = _type_name(entry, part.name)
        if type_node.text not in types:
            if type_node.text not in scope.dropped.get("types", frozenset()):
                scope.error(
                    "resolve.unknown-type",
                    type_node.location,
                    f"there is no type {type_node.text!r}",
                    item=f"{item}, field {part.name}",
                    hint=alternatives(type_node.text, types, "types"),
                )
            continue
        wire_type = types[type_node.text]
        plural = part.name if part.name.endswith("s") else f"{part.name}s"
        fields.append(
            WireField(
                **item_keys(entry, f"{path}.fields.{part.name}", wire_type.doc, parent),
                type=wire_type,
                optional=optional,
                repeated=repeated,
                attribute=plural if repeated else part.name,
                unit=getattr(wire_type, "unit", ""),
            )
        )
    known = layout.field_names()
    for entry in described:
        if entry.key.text not in known:
            scope.error(
                "resolve.not-in-layout",
                entry.key.location,
                f"the layout has no field <{entry.key.text}>",
                item=item,
                hint=alternatives(entry.key.text, known, "fields"),
            )
    return tuple(fields)


def _type_name(entry: Entry, name: str) -> Scalar:
    """Where the type of a field is named: its entry under ``fields``, or the layout word itself."""
    if isinstance(entry.value, Tree):
        return as_scalar(entry.value.get("type")) or Scalar(entry.key.location, name, True)
    return as_scalar(entry.value) or entry.key


def _places(
    parts: tuple[notation.Part, ...], optional: bool
) -> Iterator[tuple[notation.Word | notation.Rest, bool, bool]]:
    """Each field of a layout with whether it is in an optional tail and whether it is repeated."""
    for part in parts:
        match part:
            case notation.Word():
                yield part, optional, False
            case notation.Rest():
                yield part, optional, True
            case notation.Counted(words=words):
                for word in words:
                    yield word, optional, True
            case notation.Optional(parts=inner):
                yield from _places(inner, True)
            case _:
                pass


def _payloads(
    scope: Scope, tree: Tree, layout: Layout, fields: tuple[WireField, ...], parent: ItemKeys, item: str
) -> Iterator[Payload]:
    single = tree.entry("payload")
    entries = [single] if single is not None else list(as_tree(tree.get("payloads")))
    by_name = {field.name: field for field in fields}
    for entry in entries:
        inner, name = as_tree(entry.value), entry.key.text
        size = as_scalar(inner.get("size"))
        counted = by_name.get(size.text) if size is not None else None
        if size is not None and size.text in as_tree(tree.get("keys")).names():
            message = f"the size of the payload is the extension key {size.text!r}"
            hint = "a reader that ignores the key would lose step; use a field of the header"
            label = f"{item}, {name}"
            scope.error("key.extension-implies-payload", size.location, message, item=label, hint=hint)
            continue
        if counted is None and size is not None and size.text in layout.field_names():
            continue  # its type is faulty and reported already
        if size is not None and (counted is None or not isinstance(counted.type, UintType)):
            known = [field.name for field in fields if isinstance(field.type, UintType)]
            scope.error(
                "resolve.payload-size",
                size.location,
                f"{size.text!r} is no uint field of the layout",
                item=f"{item}, {name}",
                hint=alternatives(size.text, known, "fields"),
            )
            continue
        path = parent["path"]
        where = f"{path}.payload" if single is not None else f"{path}.payloads.{name}"
        needs = as_scalar(inner.get("needs"))
        if needs is not None:
            scope.expect(needs, capability_names(scope), "capabilities", f"{item}, {name}")
        yield Payload(
            **item_keys(entry, where, text_of(inner, "holds"), parent),
            attribute=name,
            size=text_of(inner, "size"),
            holds=text_of(inner, "holds"),
            drained=flag_of(inner, "drained"),
            needs=optional_text(inner, "needs"),
        )


def capability_names(scope: Scope) -> set[str]:
    """Names under ``families.capabilities``."""
    return set(as_tree(scope.section("families").get("capabilities")).names())


def _keys(
    scope: Scope, tree: Tree, layout: Layout, parent: ItemKeys, item: str, types: Types
) -> Iterator[Key]:
    described = tree.entry("keys")
    if described is None:
        return
    if not any(isinstance(part, notation.Extensions) for part in layout.walk()):
        message = "there are keys, but the layout has no place for them"
        scope.error("resolve.keys-without-place", described.key.location, message, item=item)
    for entry in as_tree(described.value):
        inner, name = as_tree(entry.value), entry.key.text
        label = f"{item}, key {name}"
        type_node = as_scalar(inner.get("type"))
        if type_node is None or not scope.expect(type_node, scope.names("types"), "types", label):
            continue
        wire_type = types.get(type_node.text)
        if not isinstance(wire_type, UintType):
            if wire_type is not None:
                message = f"the type {type_node.text!r} is not an unsigned integer"
                scope.error("resolve.key-type", type_node.location, message, item=label)
            continue
        needs = as_scalar(inner.get("needs"))
        if needs is not None:
            scope.expect(needs, capability_names(scope), "capabilities", label)
        yield Key(
            **item_keys(entry, f"{parent['path']}.keys.{name}", wire_type.doc, parent),
            type=wire_type,
            needs=optional_text(inner, "needs"),
        )


def _value_rules(
    scope: Scope, tree: Tree, fields: tuple[WireField, ...], keys: tuple[Key, ...], path: str, item: str
) -> Iterator[ValueRule]:
    for number, node in enumerate(as_items(tree.get("rules")), start=1):
        inner, label = as_tree(node), f"{item}, rule {number}"
        target, condition = as_scalar(inner.get("field")), as_scalar(inner.get("only_with"))
        if target is None or condition is None:
            continue
        good = scope.expect(target, [field.name for field in fields], "fields", label)
        if scope.expect(condition, [key.name for key in keys], "keys", label) and good:
            entry = Entry(Scalar(node.location, target.text, True), node)
            yield ValueRule(
                **item_keys(entry, f"{path}.rules.{number}"),
                field=target.text,
                value=integer_of(inner, "value") or 0,
                only_with=condition.text,
            )


def _examples(tree: Tree) -> Iterator[Example]:
    for node in as_items(tree.get("examples")):
        inner = as_tree(node)
        gives, fault = inner.get("gives"), inner.get("fault")
        told = as_tree(fault)
        yield Example(
            data=text_of(inner, "bytes").encode("utf-8"),
            gives=None if gives is None else Frozen(freeze(values.json_value(gives)) or {}),  # type: ignore[arg-type]
            fault=None
            if fault is None
            else Fault(text_of(told, "field"), text_of(told, "rule"), optional_text(told, "code")),
            location=node.location,
        )


def resolve_faults(scope: Scope) -> tuple[FaultRule, ...]:
    """The names of everything that can be wrong with a message."""
    return tuple(
        FaultRule(**item_keys(entry, f"faults.{entry.key.text}")) for entry in scope.section("faults")
    )


def resolve_handshake(scope: Scope, types: Types) -> Handshake | None:
    """Sentinel and STAT line; None when the section is absent or faulty."""
    entry = scope.tree.entry("handshake")
    if entry is None:
        return None
    tree = as_tree(entry.value)
    written = as_scalar(tree.get("layout"))
    kind = written.text.split(" ")[0] if written is not None else ""
    as_frame = Entry(Scalar(entry.key.location, kind, True), entry.value)
    message = _message(scope, as_frame, "handshake", "frame", types)
    if message is None:
        return None
    return Handshake(
        **item_keys(entry, "handshake"), sentinel=text_of(tree, "sentinel").encode("utf-8"), message=message
    )


def resolve_launch(scope: Scope, types: Types) -> Launch:
    """How the engine is started."""
    entry = scope.tree.entry("launch") or absent("launch")
    tree = as_tree(entry.value)
    arguments = []
    for argument in as_tree(tree.get("argv")):
        label, type_node = f"launch, argument {argument.key.text}", _type_name(argument, argument.key.text)
        if scope.expect(type_node, scope.names("types"), "types", label) and type_node.text in types:
            wire_type = types[type_node.text]
            arguments.append(
                WireField(
                    **item_keys(argument, f"launch.argv.{argument.key.text}", wire_type.doc),
                    type=wire_type,
                    optional=False,
                    repeated=False,
                    attribute=argument.key.text,
                    unit=getattr(wire_type, "unit", ""),
                )
            )
    return Launch(
        **item_keys(entry, "launch"),
        argv=tuple(arguments),
        environment=tuple(_variable(scope, variable) for variable in as_tree(tree.get("environment"))),
        sigpipe=text_of(tree, "sigpipe"),
        orderly_end=text_of(tree, "orderly_end"),
    )


def _variable(scope: Scope, entry: Entry) -> EnvironmentVariable:
    tree, name = as_tree(entry.value), entry.key.text
    ends = scope.range(as_scalar(tree.get("range")), f"launch, variable {name}")
    return EnvironmentVariable(
        **item_keys(entry, f"launch.environment.{name}"),
        type=text_of(tree, "type"),
        value=optional_text(tree, "value"),
        passed_through=flag_of(tree, "passed_through"),
        low=None if ends.low is None else int(ends.low),
        high=None if ends.high is None else int(ends.high),
    )


def resolve_wire_errors(scope: Scope) -> tuple[WireError, ...]:
    """The words of ERROR frames and what becomes of them."""
    return tuple(_wire_error(scope, entry) for entry in scope.section("wire_errors"))


def _wire_error(scope: Scope, entry: Entry) -> WireError:
    tree, name = as_tree(entry.value), entry.key.text
    item = f"wire error {name}"
    known = scope.names("api_errors")
    written = tree.entry("http")
    joins = []
    if written is not None and isinstance(written.value, Scalar):
        pairs = [("always", written.value)]
    else:
        mapping = as_tree(written.value if written is not None else None)
        pairs = [(pair.key.text, pair.value) for pair in mapping if isinstance(pair.value, Scalar)]
    for condition, target in pairs:
        if target.text == "none":
            joins.append(HttpJoin(condition, None))
        elif scope.expect(target, known, "api errors", item):
            joins.append(HttpJoin(condition, target.text))
    without_numbers = as_scalar(tree.get("without_numbers"))
    if without_numbers is not None:
        scope.expect(without_numbers, known, "api errors", item)
    return WireError(
        **item_keys(entry, f"wire_errors.{name}"),
        on_wire=flag_of(tree, "on_wire", True),
        fallback=flag_of(tree, "fallback"),
        details=texts_of(tree, "details"),
        spelled=texts_of(tree, "spelled"),
        http=tuple(joins),
        without_numbers=optional_text(tree, "without_numbers"),
        message=optional_text(tree, "message"),
        cause=text_of(tree, "cause"),
        remedy=text_of(tree, "remedy"),
    )
