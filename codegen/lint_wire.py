"""Lint rules for the wire half: keys, payloads, repeats, limits, examples, states, reserved names."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from . import layout as notation
from .interpret import check_example
from .lint import Problem, rule
from .model import Item, Message, Model, RealType, StateTable, UintType, WireType


def messages(model: Model) -> tuple[Message, ...]:
    """Commands, frames and the STAT line of the handshake."""
    return (*model.commands, *model.frames, model.handshake.message)


@rule("key.unbounded", "A key's value fits the digits that readers take.", "Lower the type's upper bound.")
def _key_unbounded(model: Model) -> Iterator[Problem]:
    digits = {limit.name: limit.value for limit in model.limits}.get("key_value_digits")
    for command in model.commands:
        for key in command.keys:
            if digits is None:
                yield Problem(key, "there is no limit key_value_digits to bound values by")
            elif len(str(key.type.high)) > digits:
                yield Problem(key, f"values up to {key.type.high} need more than {digits} digits")


@rule("key.name-too-long", "A key's name fits the length that readers take.", "Shorten the name.")
def _key_name(model: Model) -> Iterator[Problem]:
    length = {limit.name: limit.value for limit in model.limits}.get("key_name_length")
    for command in model.commands:
        for key in command.keys:
            if length is not None and len(key.name) > length:
                yield Problem(key, f"the name has {len(key.name)} characters; readers take {length}")


@rule(
    "key.charset-has-delimiter",
    "No character of a key or its value cuts words or keys apart.",
    "Use separators that are neither letters, digits, '_' nor '='.",
)
def _delimiter(model: Model) -> Iterator[Problem]:
    used = {*model.framing.separators, model.framing.terminator}
    clash = sorted(
        character
        for separator in used
        for character in separator
        if character.isalnum() or character in "_=-."
    )
    if clash:
        yield Problem(model.framing, f"{clash[0]!r} separates words and may occur inside them")


@rule(
    "payload.no-limit",
    "The size of a payload is bounded by a named limit.",
    "Write the size's range with $limits.NAME.",
)
def _payload_limit(model: Model) -> Iterator[Problem]:
    for message in messages(model):
        for payload in message.payloads:
            size = message.field(payload.size).type
            if isinstance(size, UintType) and size.high_limit is None:
                yield Problem(payload, f"its size {payload.size!r} is bounded by a number, not by a limit")


@rule(
    "frame.length-not-fixed-position",
    "The byte count of a payload is at a fixed place of the header.",
    "Move the count before anything repeated.",
)
def _length_position(model: Model) -> Iterator[Problem]:
    for message in messages(model):
        for payload in message.payloads:
            if message.field(payload.size).repeated:
                yield Problem(payload, f"its size {payload.size!r} is inside a repeat")


@rule(
    "repeat.unbounded",
    "A repeat count is bounded by a named limit.",
    "Write the count's range with $limits.NAME.",
)
def _repeat(model: Model) -> Iterator[Problem]:
    for message in messages(model):
        for part in message.layout.walk():
            if isinstance(part, notation.Counted):
                count = message.field(part.count)
                if isinstance(count.type, UintType) and count.type.high_limit is None:
                    yield Problem(count, "the repeat count is bounded by a number, not by a limit")


@rule("repeat.not-a-count", "A repeat count is an unsigned integer.", "Give the count a uint type.")
def _repeat_type(model: Model) -> Iterator[Problem]:
    for message in messages(model):
        for part in message.layout.walk():
            if isinstance(part, notation.Counted) and not isinstance(
                message.field(part.count).type, UintType
            ):
                yield Problem(message.field(part.count), "the repeat count is no unsigned integer")


@rule(
    "limit.inconsistent",
    "The longest header a message may have fits the line limit.",
    "Raise the line limit or lower a bound.",
)
def _inconsistent(model: Model) -> Iterator[Problem]:
    limits = {limit.name: limit for limit in model.limits}
    for group, name in ((model.commands, "command_line_bytes"), (model.frames, "frame_line_bytes")):
        limit = limits.get(name)
        for message in group:
            length = longest_header(message)
            if limit is not None and length is not None and length > limit.value:
                yield Problem(
                    message, f"its header may have {length} bytes, {name} is {limit.value}", other=limit
                )


def longest_header(message: Message) -> int | None:
    """Bytes of the longest header a writer can make, the terminator included; None when free words are in
    it.
    """
    key_bytes = sum(len(key.name) + 2 + len(str(key.type.high)) for key in message.keys)
    words = _longest(message.layout.parts, message)
    return None if words is None else len(message.layout.kind) + words + key_bytes + 1


def _longest(parts: tuple[notation.Part, ...], message: Message) -> int | None:
    total = 0
    for part in parts:
        match part:
            case notation.Literal(text=text):
                total += 1 + len(text)
            case notation.Word(name=name):
                width = _width(message.field(name).type)
                if width is None:
                    return None
                total += 1 + width
            case notation.Optional(parts=inner):
                tail = _longest(inner, message)
                if tail is None:
                    return None
                total += tail
            case notation.Counted(words=words, count=count):
                entry = _longest(words, message)
                bound = message.field(count).type
                if entry is None or not isinstance(bound, UintType):
                    return None
                total += bound.high * entry
            case notation.Rest():
                return None
            case _:
                pass
    return total


def _width(wire_type: WireType) -> int | None:
    if isinstance(wire_type, UintType):
        return len(str(wire_type.high))
    if isinstance(wire_type, RealType):
        if wire_type.print.endswith("g"):
            return 24
        whole = 309 if wire_type.high is None else len(str(int(wire_type.high)))
        return 2 + whole + int(wire_type.print[2:-1])
    return None


@rule(
    "example.missing",
    "Every message shows bytes that parse and bytes that must fail.",
    "Add an example with gives and one with fault.",
)
def _example_missing(model: Model) -> Iterator[Problem]:
    for message in (*model.commands, *model.frames, model.handshake.message):
        holder: Item = model.handshake if message is model.handshake.message else message
        if not any(example.gives is not None for example in message.examples):
            yield Problem(holder, "there is no example that parses")
        if not any(example.fault is not None for example in message.examples):
            yield Problem(holder, "there is no example that must fail")


@rule("example.fails", "Every example does what it says.", "Correct the bytes, the values or the fault.")
def _example_fails(model: Model) -> Iterator[Problem]:
    for message in messages(model):
        for number, example in enumerate(message.examples, start=1):
            fault = check_example(model, message, example)
            if fault:
                yield Problem(_at_example(message, number), fault)


def _at_example(message: Message, number: int) -> Item:
    """The message, placed at its example, so that the finding points there."""
    return dataclasses.replace(
        message, location=message.examples[number - 1].location, path=f"{message.path}.example {number}"
    )


@rule("type.unused", "Every type is used.", "Remove the type.")
def _type_unused(model: Model) -> Iterator[Problem]:
    used = {field.type.path for message in messages(model) for field in message.fields}
    used |= {key.type.path for command in model.commands for key in command.keys}
    used |= {argument.type.path for argument in model.launch.argv}
    for wire_type in model.types:
        if wire_type.path not in used:
            yield Problem(wire_type, "no field has this type")


# ---------------------------------------------------------------- states


def tables(model: Model) -> tuple[StateTable, StateTable]:
    """Both state tables."""
    return (model.request, model.connection)


@rule("state.unreachable", "Every state can be reached.", "Add a transition to it or remove it.")
def _unreachable(model: Model) -> Iterator[Problem]:
    for table in tables(model):
        reached = _reached(table, {table.initial})
        for state in table.states:
            if state.name not in reached:
                yield Problem(state, f"nothing leads to this state from {table.initial!r}")


def _reached(table: StateTable, start: set[str]) -> set[str]:
    leads = {state.name: set(state.transitions.values()) for state in table.states}
    reached, frontier = set(start), list(start)
    while frontier:
        for target in leads.get(frontier.pop(), set()) - reached:
            reached.add(target)
            frontier.append(target)
    return reached


@rule("state.dead-end", "From every state a terminal one can be reached.", "Add a way out.")
def _dead_end(model: Model) -> Iterator[Problem]:
    for table in tables(model):
        for state in table.states:
            if state.transitions and not _reached(table, {state.name}) & set(table.terminal):
                yield Problem(state, "no terminal state can be reached from here")


@rule("state.event-unused", "Every declared event leads somewhere.", "Use the event in a state or remove it.")
def _event_unused(model: Model) -> Iterator[Problem]:
    for table in tables(model):
        used = {event for state in table.states for event in state.transitions}
        for event in table.events:
            if event.name not in used:
                yield Problem(event, "no state has a transition for this event")


@rule(
    "state.frame-unhandled",
    "Every live state knows what to do with every frame of a request.",
    "Add the transition.",
)
def _unhandled(model: Model) -> Iterator[Problem]:
    handled = {event for state in model.request.states for event in state.transitions}
    frames = [frame.name for frame in model.frames if _concerns_request(frame)]
    for state in model.request.states:
        missing = [name for name in frames if name not in state.transitions] if state.transitions else []
        if missing and handled:
            yield Problem(state, f"no transition for {', '.join(missing)}")


def _concerns_request(frame: Message) -> bool:
    return not frame.no_effect and any(field.name == "id" for field in frame.fields)


# ---------------------------------------------------------------- reserved


@rule("reserved.reused", "A reserved name never comes back.", "Choose a name that was never promised.")
def _reused(model: Model) -> Iterator[Problem]:
    for message in (*model.frames, *model.commands):
        if message.name in model.reserved.frames:
            yield Problem(message, f"the name {message.name!r} is reserved")
        for key in message.keys:
            if key.name in model.reserved.keys:
                yield Problem(key, f"the name {key.name!r} is reserved")
    for error in (*model.wire_errors, *model.api_errors):
        if (
            error.name in model.reserved.error_codes
            or getattr(error, "code", None) in model.reserved.error_codes
        ):
            yield Problem(error, f"the code {error.name!r} is reserved")


@rule(
    "example.unshown",
    "Every optional part of a message is in some example.",
    "Add an example whose gives names it.",
)
def _unshown(model: Model) -> Iterator[Problem]:
    for message in messages(model):
        shown = {name for example in message.examples for name in example.gives or ()}
        if not shown:
            continue  # example.missing says so
        parts: list[tuple[Item, str]] = [
            (field, field.attribute)
            for field in message.fields
            if field.optional and field.attribute not in sizes(message)
        ]
        parts += [(key, key.name) for key in message.keys]
        parts += [(payload, payload.attribute) for payload in message.payloads if not payload.drained]
        for item, name in parts:
            if name not in shown:
                yield Problem(item, f"no example gives {name!r}")


def sizes(message: Message) -> set[str]:
    """Attributes that only count something else: payload sizes and repeat counts."""
    counts = {part.count for part in message.layout.walk() if isinstance(part, notation.Counted)}
    return {payload.size for payload in message.payloads} | counts


@rule("limit.not-enforced", "Somebody enforces every limit.", "Say who: reader, writer, api, http or launch.")
def _not_enforced(model: Model) -> Iterator[Problem]:
    for limit in model.limits:
        if not limit.enforced:
            yield Problem(limit, "nobody enforces it")
