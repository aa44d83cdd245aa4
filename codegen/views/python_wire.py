"""The plan of a message for ``generated/frames.py`` and ``commands.py``: one step for each thing to do.

Guarantees: the steps of a reader go through the header from left to right and need nothing but the number of
words; the steps of a writer check every value before the first byte is made; what may be asked of a template
is the text of a step, never which steps there are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from codegen.facts import counts_of, least_real, payload_of
from codegen.layout import Counted, Extensions, Ignored, Literal, Optional, Part, Rest, Word
from codegen.model import HexType, Message, Model, RealType, UintType, ValueRule, WireField, WireType
from codegen.render import python_literal
from codegen.views import python_text as text
from codegen.views.python_messages import (
    Attribute,
    attributes,
    class_name,
    local,
    miscounted,
    sentence,
    value_check,
)

View = dict[str, Any]
Step = dict[str, Any]

READY = "READY"
"""Kind of the handshake: what the connection's state table calls it."""


def wire_view(model: Model) -> View:
    """The runtime both directions share."""
    separators = model.framing.separators
    spelled = {" ": "spaces", "\t": "tabs"}
    others = sorted(set(b"\t\r\x0b\x0c ") - {ord(separator) for separator in separators})
    careful = "line"
    for separator in separators[1:]:
        careful += f".replace({python_literal(separator.encode())}, {python_literal(separators[0].encode())})"
    return {
        "separators": " and ".join(spelled.get(separator, repr(separator)) for separator in separators),
        "other_space": " or ".join(f"{byte} in line" for byte in others),
        "careful_split": f"{careful}.split({python_literal(separators[0].encode())})",
        "faults": [{"name": fault.name, "doc": fault.doc} for fault in model.faults],
        "key_name_length": model.limit("key_name_length").value,
        "key_value_digits": model.limit("key_value_digits").value,
    }


# ---------------------------------------------------------------- reading


def read_expression(kind: WireType, word: str, field: str) -> str:
    """The call that reads one word."""
    name = python_literal(field)
    if isinstance(kind, UintType):
        if kind.unreadable is not None:
            return f"uint_or({word}, {kind.low}, {kind.high}, {kind.unreadable})"
        return f"uint({word}, {name}, {kind.low}, {kind.high})"
    if isinstance(kind, RealType):
        low = least_real(kind, printed=False)
        if low is not None or kind.high is not None:
            low_text = "-inf" if low is None else repr(low)
            high_text = "inf" if kind.high is None else repr(kind.high)
            return f"ranged_real({word}, {name}, {low_text}, {high_text})"
        return f"{'finite_real' if kind.finite else 'real'}({word}, {name})"
    return f"{'hexadecimal' if isinstance(kind, HexType) else 'visible'}({word}, {name})"


def read_steps(message: Message) -> list[Step]:
    """Everything a reader does with the header of ``message``."""
    steps: list[Step] = [{"form": "count", "pad": "    ", "condition": miscounted(message)}]
    for part in message.layout.parts:
        if isinstance(part, Optional):
            steps += _absent_steps(message, part.parts)
    steps += _read_parts(message, message.layout.parts, 1, "    ")
    steps += [_rule_step(rule) for rule in message.rules]
    return steps


def _read_parts(message: Message, parts: tuple[Part, ...], place: int, pad: str) -> list[Step]:
    steps: list[Step] = []
    for position, part in enumerate(parts):
        if isinstance(part, Literal):
            steps.append({"form": "literal", "pad": pad, "place": place, "text": part.text.encode()})
            place += 1
        elif isinstance(part, Word):
            field = message.field(part.name)
            expression = read_expression(field.type, f"header[{place}]", field.name)
            target = local(part.name)
            steps.append({"form": "value", "pad": pad, "target": target, "expression": expression})
            place += 1
        elif isinstance(part, Optional):
            steps.append({"form": "when", "pad": pad, "condition": f"found > {place}"})
            steps += _read_parts(message, part.parts, place, pad + "    ")
        elif isinstance(part, Counted):
            more = any(isinstance(later, Ignored) for later in parts[position + 1 :])
            steps += _table_steps(message, part, place, pad, open_ended=more)
        elif isinstance(part, Rest):
            field = message.field(part.name)
            expression = read_expression(field.type, "word", field.name)
            target = local(field.attribute)
            steps.append(
                {"form": "rest", "pad": pad, "target": target, "expression": expression, "place": place}
            )
        elif isinstance(part, Extensions):
            steps.append({"form": "keys", "pad": pad, "place": place, "table": keys_table(message)})
    return steps


def _absent_steps(message: Message, parts: tuple[Part, ...]) -> list[Step]:
    """Values of everything in an optional tail when the tail is absent."""
    found: list[Step] = []

    def absent(name: str, kind: str, default: str = "None") -> None:
        found.append(
            {"form": "absent", "pad": "    ", "target": local(name), "type": kind, "default": default}
        )

    for part in parts:
        if isinstance(part, Word):
            field = message.field(part.name)
            if payload_of(message, part.name) is not None:
                absent(part.name, "int", "0")
            elif part.name not in counts_of(message):
                absent(part.name, f"{_element(field)} | None")
        elif isinstance(part, Counted):
            for word in part.words:
                field = message.field(word.name)
                absent(field.attribute, f"tuple[{_element(field)}, ...] | None")
        elif isinstance(part, Extensions):
            absent("keys", "dict[str, int]", "{}")
            found[-1]["target"] = "keys"
        elif isinstance(part, Optional):
            found += _absent_steps(message, part.parts)
    return found


def _element(field: WireField) -> str:
    if isinstance(field.type, UintType):
        return "int"
    return "float" if isinstance(field.type, RealType) else "str"


def _table_steps(message: Message, part: Counted, place: int, pad: str, *, open_ended: bool) -> list[Step]:
    count, width = local(part.count), len(part.words)
    end = f"{place} + {width} * {count}" if width > 1 else f"{place} + {count}"
    fields = [message.field(word.name) for word in part.words]
    columns = [
        {
            "list": f"{field.name}_list",
            "type": _element(field),
            "target": local(field.attribute),
            "expression": read_expression(
                field.type, f"header[place + {offset}]" if offset else "header[place]", field.name
            ),
        }
        for offset, field in enumerate(fields)
    ]
    return [
        {"form": "count", "pad": pad, "condition": f"found {'<' if open_ended else '!='} {end}"},
        {"form": "table", "pad": pad, "place": place, "end": end, "columns": columns},
    ]


def _rule_step(rule: ValueRule) -> Step:
    condition = f"{local(rule.field)} == {rule.value} and not keys.get({python_literal(rule.only_with)})"
    return {"form": "rule", "pad": "    ", "condition": condition, "field": rule.field}


def keys_table(message: Message) -> str:
    """Name of the constant with the extension keys of ``message``."""
    return f"_{message.name}_KEYS"


# ---------------------------------------------------------------- writing


def write_steps(message: Message) -> list[Step]:
    """Everything a writer does before it joins the bytes."""
    steps = _check_parts(message, message.layout.parts, "    ")
    steps += _rule_checks(message)
    words, values = _fixed(message, message.layout.parts)
    template = b" ".join([message.layout.kind.encode(), *words])
    steps.append({"form": "start", "pad": "    ", "expression": _formatted(template, values, "    line = ")})
    return steps + _extend_parts(message, message.layout.parts, "    ")


def _refuse(message: Message, pad: str, condition: str, field: str, rule: str) -> Step:
    step = {"form": "refuse", "pad": pad, "condition": condition}
    return {**step, "kind": message.name, "field": field, "rule": rule}


def _check_parts(message: Message, parts: tuple[Part, ...], pad: str) -> list[Step]:
    steps: list[Step] = []
    for part in parts:
        if isinstance(part, Word):
            steps += _check_word(message, message.field(part.name), pad)
        elif isinstance(part, Rest):
            steps += _check_rest(message, part, pad)
        elif isinstance(part, Counted):
            steps += _check_table(message, part, pad)
        elif isinstance(part, Optional):
            steps += _check_optional(message, part, pad)
        elif isinstance(part, Extensions):
            for key in message.keys:
                bounds = f"{key.type.low} <= {key.name} <= {key.type.high}"
                condition = f"{key.name} is not None and not {bounds}"
                steps.append(_refuse(message, pad, condition, key.name, "range"))
    return steps


def _check_word(message: Message, field: WireField, pad: str) -> list[Step]:
    payload = payload_of(message, field.name)
    if payload is not None:
        value = f"len({payload.attribute})"
    elif field.name in counts_of(message):
        return []
    else:
        value = field.attribute
    check = value_check(field.type, value)
    if check is None:
        return []
    condition = check[0].replace("not 0 <= len(", "not len(") if payload is not None else check[0]
    if payload is not None and isinstance(field.type, UintType) and field.type.low == 0:
        condition = f"len({payload.attribute}) > {field.type.high}"
    return [_refuse(message, pad, condition, field.name, check[1])]


def _check_rest(message: Message, part: Rest, pad: str) -> list[Step]:
    field = message.field(part.name)
    steps = []
    if part.at_least:
        steps.append(_refuse(message, pad, f"not {field.attribute}", field.name, "word_count"))
    condition = f"not all(map(is_visible, {field.attribute}))"
    return [*steps, _refuse(message, pad, condition, field.name, "word")]


def _check_table(message: Message, part: Counted, pad: str) -> list[Step]:
    fields = [message.field(word.name) for word in part.words]
    first = fields[0].attribute
    steps = [
        _refuse(message, pad, f"len({other.attribute}) != len({first})", other.name, "count")
        for other in fields[1:]
    ]
    count = message.field(part.count).type
    if isinstance(count, UintType):
        steps.append(_refuse(message, pad, f"len({first}) > {count.high}", part.count, "range"))
    for field in fields:
        if isinstance(field.type, UintType):
            name, low, high = field.attribute, field.type.low, field.type.high
            condition = f"{name} and (min({name}) < {low} or max({name}) > {high})"
            steps.append(_refuse(message, pad, condition, field.name, "range"))
        elif isinstance(field.type, RealType) and field.type.finite:
            condition = f"not all(map(isfinite, {field.attribute}))"
            steps.append(_refuse(message, pad, condition, field.name, "range"))
    return steps


def presence(message: Message, part: Optional) -> str:
    """Python condition that an optional tail is to be written."""
    first = part.parts[0]
    if not isinstance(first, Word):
        raise ValueError(f"{message.path}: an optional tail starts with a field")
    payload = payload_of(message, first.name)
    if payload is None:
        return f"{first.name} is not None"
    keys = [f"{key.name} is not None" for key in message.keys]
    return " or ".join([payload.attribute, *keys])


def _check_optional(message: Message, part: Optional, pad: str) -> list[Step]:
    first = part.parts[0]
    if isinstance(first, Word) and payload_of(message, first.name) is not None:
        return _check_parts(message, part.parts, pad)
    steps: list[Step] = []
    present = presence(message, part)
    inner = _check_parts(message, part.parts, pad + "    ")
    if len(inner) == 1:
        steps = [{**inner[0], "pad": pad, "condition": f"{present} and {inner[0]['condition']}"}]
    elif inner:
        steps = [{"form": "when", "pad": pad, "condition": present}, *inner]
    lonely = _needs_first(message, part)
    if lonely and isinstance(first, Word):
        condition = f"{first.name} is None and ({' or '.join(lonely)})"
        if len(lonely) == 1:
            condition = f"{first.name} is None and {lonely[0]}"
        steps.append(_refuse(message, pad, condition, first.name, "missing"))
    return steps


def _needs_first(message: Message, part: Optional) -> list[str]:
    """Conditions under which something of the tail after its first word was given."""
    found = []
    for later in part.parts[1:]:
        if isinstance(later, Word) and later.name not in counts_of(message):
            found.append(f"{later.name} is not None")
        elif isinstance(later, Counted):
            found.append(message.field(later.words[0].name).attribute)
        elif isinstance(later, Optional):
            found.append(presence(message, later))
    return found


def _rule_checks(message: Message) -> list[Step]:
    return [
        _refuse(
            message, "    ", f"{rule.field} == {rule.value} and not {rule.only_with}", rule.field, "range"
        )
        for rule in message.rules
    ]


def _fixed(message: Message, parts: tuple[Part, ...]) -> tuple[list[bytes], list[str]]:
    """Format and values of the words of ``parts`` up to the first that may vary in number."""
    words: list[bytes] = []
    values: list[str] = []
    for part in parts:
        if isinstance(part, Literal):
            words.append(part.text.encode())
        elif isinstance(part, Word):
            form, value = _word_format(message, message.field(part.name))
            words.append(form)
            values.append(value)
        else:
            break
    return words, values


def _word_format(message: Message, field: WireField) -> tuple[bytes, str]:
    payload = payload_of(message, field.name)
    if payload is not None:
        return b"%d", f"len({payload.attribute})"
    for part in message.layout.walk():
        if isinstance(part, Counted) and part.count == field.name:
            return b"%d", f"len({message.field(part.words[0].name).attribute})"
    if isinstance(field.type, UintType):
        return b"%d", field.attribute
    if isinstance(field.type, RealType):
        return field.type.print.encode(), field.attribute
    return b"%b", f"{field.attribute}.encode()"


def _formatted(template: bytes, values: list[str], before: str) -> str:
    """``template % values`` as an expression."""
    if not values:
        return python_literal(template)
    indent = len(before) - len(before.lstrip())
    start = f"{python_literal(template)} % "
    if len(values) == 1:
        return f"{start}{values[0]}"
    return start + text.listing("(", values, ")", indent=indent, used=len(before) + len(start))


def _extend_parts(message: Message, parts: tuple[Part, ...], pad: str) -> list[Step]:
    """Steps for everything after the fixed words."""
    steps: list[Step] = []

    def extend(expression: str, deeper: str = "") -> None:
        steps.append({"form": "extend", "pad": pad + deeper, "expression": expression})

    for part in parts:
        if isinstance(part, Optional):
            steps.append({"form": "when", "pad": pad, "condition": presence(message, part)})
            words, values = _fixed(message, part.parts)
            before = f"{pad}    line += "
            template = b"".join(b" " + word for word in words)
            extend(_formatted(template, values, before), "    ")
            steps += _extend_parts(message, part.parts, pad + "    ")
        elif isinstance(part, Counted):
            columns = [message.field(word.name) for word in part.words]
            form = b"".join(b" " + _word_format(message, field)[0] for field in columns)
            attribute_names = ", ".join(field.attribute for field in columns)
            steps.append({"form": "pairs", "pad": pad, "columns": attribute_names})
            extend(
                f"{python_literal(form)} * len({columns[0].attribute}) % tuple(chain.from_iterable(pairs))"
            )
        elif isinstance(part, Rest):
            attribute = message.field(part.name).attribute
            extend(f'b"".join(b" " + word.encode() for word in {attribute})')
        elif isinstance(part, Extensions):
            for key in message.keys:
                steps.append({"form": "when", "pad": pad, "condition": f"{key.name} is not None"})
                extend(f"{python_literal(f' {key.name}=%d'.encode())} % {key.name}", "    ")
    return steps


def signature(message: Message) -> str:
    """Arguments of the writer in the order of the attributes; the rest of a line are further arguments."""
    given = _arguments(writer_attributes(message), _argument)
    lead = len(f"def {writer_name(message)}(")
    return text.listing("", given, "", indent=0, used=lead + len(") -> bytes"))


def writer_name(message: Message) -> str:
    """Name of the writer."""
    return f"write_{message.name.lower()}"


def writer_attributes(message: Message) -> list[Attribute]:
    """Attributes the writer takes; a drained payload is written too, last."""
    found = attributes(message)
    for payload in message.payloads:
        if payload.drained:
            found.append(Attribute(payload.attribute, "bytes", 'b""', sentence(payload.holds)))
    return found


def _arguments(found: list[Attribute], one: Callable[[Attribute], str]) -> list[str]:
    """All arguments, a bare star before the first that is given by keyword only."""
    given = [one(attribute) for attribute in found]
    places = [place for place, attribute in enumerate(found) if attribute.keyword_only]
    return [*given[: places[0]], "*", *given[places[0] :]] if places else given


def _argument(attribute: Attribute) -> str:
    if attribute.element == "str":
        return f"*{attribute.name}: str"
    if attribute.element is not None:
        return f"{attribute.name}: Sequence[{attribute.element}] = ()"
    return _plain_argument(attribute)


def _plain_argument(attribute: Attribute) -> str:
    default = f" = {attribute.default}" if attribute.default is not None else ""
    return f"{attribute.name}: {attribute.type}{default}"


def _init_signature(found: list[Attribute]) -> str:
    """Arguments of a message class."""
    given = _arguments(found, _plain_argument)
    return text.listing("", ["self", *given], "", indent=4, used=len("    def __init__() -> None"))


def written(message: Message) -> str:
    """The expression a writer returns."""
    payloads = [payload.attribute for payload in message.payloads]
    if not payloads:
        return 'line + b"\\n"'
    form = 'b"%b\\n' + "%b" * len(payloads) + '\\n"'
    return f"{form} % (line, {', '.join(payloads)})"


def message_view(message: Message) -> View:
    """What the class, the reader and the writer of ``message`` have in common."""
    name, found = class_name(message), attributes(message)
    tail = ["Experimental."] if message.stability != "stable" else []
    tail += ["Read and then dropped."] if message.no_effect else []
    return {
        "kind": message.name,
        "kind_bytes": python_literal(message.name.encode()),
        "class_name": name,
        "layout": message.layout.text,
        "doc": " ".join([sentence(message.doc), *tail, f"``{message.layout.text}`` (spec: {message.path})"]),
        "attributes": [{"name": attribute.name, "doc": attribute.doc} for attribute in found],
        "slots": text.tuple_text([attribute.name for attribute in found], indent=4, used=21),
        "init_signature": _init_signature(found),
        "reader": f"_read_{message.name.lower()}",
        "read_steps": read_steps(message),
        "writer": writer_name(message),
        "writer_signature": signature(message),
        "writer_doc": f"The bytes of {message.name}. Raises FieldError for a value the wire cannot carry.",
        "write_steps": write_steps(message),
        "written": written(message),
    }
