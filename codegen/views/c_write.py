"""The writing half of the C header: for each message its checks, its room and its puts, as C lines."""

from __future__ import annotations

from dataclasses import dataclass

from ..layout import Counted, Extensions, Ignored, Literal, Optional, Part, Rest, Word
from ..model import HexType, Message, RealType, UintType, WireField
from .c_types import Member, decimals, members, presence, real, struct_name, uint, width

REAL_BYTES = 28
"""Longest ``%.9f`` of a number below 2^53 with sign and space; larger ones are counted at run time."""


@dataclass(frozen=True, slots=True)
class Writer:
    """One ``colibri_write_…`` function."""

    kind: str
    struct: str
    function: str
    doc: str
    members: list[Member]
    head_bytes: int
    """Room for the kind and every fixed or optional word, without counted words, free text and payloads."""
    checks: list[str]
    room: list[str]
    puts: list[str]


def writer(message: Message) -> Writer:
    """Everything the template needs to set the writing function of ``message``."""
    return Writer(
        kind=message.name,
        struct=struct_name(message),
        function=f"colibri_write_{message.name.lower()}",
        doc=message.doc,
        members=members(message),
        head_bytes=len(message.name) + 1 + _bytes(message, message.layout.parts) + _key_bytes(message),
        checks=_checks(message, message.layout.parts, 1) + _tail_checks(message),
        room=_room(message, message.layout.parts, 1)
        + [f"    room += message->{payload.attribute}.size;" for payload in message.payloads]
        + (["    room += 1u;"] if message.payloads else []),
        puts=_puts(message, message.layout.parts, 1) + _payload_puts(message),
    )


def word_bytes(field: WireField) -> int:
    """Longest form of the field's word with the space before it."""
    if isinstance(field.type, UintType):
        return 1 + len(str(field.type.high))
    return REAL_BYTES if isinstance(field.type, RealType) else 1


def _bytes(message: Message, parts: tuple[Part, ...]) -> int:
    total = 0
    for part in parts:
        if isinstance(part, Literal):
            total += 1 + len(part.text)
        elif isinstance(part, Word):
            total += word_bytes(message.field(part.name))
        elif isinstance(part, Optional):
            total += _bytes(message, part.parts)
    return total


def _key_bytes(message: Message) -> int:
    return sum(2 + len(key.name) + len(str(key.type.high)) for key in message.keys)


def value_check(field: WireField, value: str, indent: int, name: str | None = None) -> list[str]:
    """Lines that refuse a value outside the field's type, without what the C type makes pointless."""
    pad = "    " * indent
    tests: list[str] = []
    kind = field.type
    if isinstance(kind, UintType):
        if kind.low > 0:
            tests.append(f"{value} < {uint(kind.low)}")
        if kind.high < 2 ** width(kind.high) - 1:
            tests.append(f"{value} > {uint(kind.high)}")
    elif isinstance(kind, RealType):
        number = f"(double)(float){value}" if kind.single_precision else value
        if kind.low is not None:
            tests.append(f"!({number} >= {real(kind.low)})")
        if kind.above is not None:
            tests.append(f"!({number} > {real(kind.above)})")
        if kind.high is not None:
            tests.append(f"!({value} <= {real(kind.high)})")
        if kind.finite and kind.high is None:
            tests.append(f"!isfinite({value})")
    elif isinstance(kind, HexType):
        tests.append(f"!colibri_is_hex({value})")
    else:
        tests.append(f"!colibri_is_word({value})")
    if not tests:
        return []
    condition = " || ".join(tests)
    return [
        f"{pad}if ({condition}) {{",
        f'{pad}    return colibri_refuse(fault, "{name or field.name}");',
        f"{pad}}}",
    ]


def _checks(message: Message, parts: tuple[Part, ...], indent: int) -> list[str]:
    sizes = {payload.size: payload for payload in message.payloads}
    pad = "    " * indent
    lines: list[str] = []
    for part in parts:
        if isinstance(part, Word) and part.name not in sizes:
            lines += value_check(message.field(part.name), f"message->{part.name}", indent)
        elif isinstance(part, Word):
            lines += _size_check(message, part.name, indent)
        elif isinstance(part, Optional):
            inner = _checks(message, part.parts, indent + 1)
            lines += _when(message, part, inner, indent)
        elif isinstance(part, Counted):
            inner = []
            for word in part.words:
                field = message.field(word.name)
                inner += value_check(field, f"message->{field.attribute}[entry]", indent + 1)
            if inner:
                lines += [
                    f"{pad}for (size_t entry = 0u; entry < message->{part.count}; entry++) {{",
                    *inner,
                    f"{pad}}}",
                ]
        elif isinstance(part, Rest):
            lines += [
                f"{pad}if (!colibri_is_text(message->{part.name}, {part.at_least}u)) {{",
                f'{pad}    return colibri_refuse(fault, "{part.name}");',
                f"{pad}}}",
            ]
    return lines


def _when(message: Message, part: Optional, inner: list[str], indent: int) -> list[str]:
    """``inner`` under the condition that the optional tail is present; nothing when ``inner`` is empty."""
    if not inner:
        return []
    pad = "    " * indent
    return [f"{pad}if ({condition(message, part)}) {{", *inner, f"{pad}}}"]


def condition(message: Message, part: Optional) -> str:
    """C condition for an optional tail: its presence member, or for a size whatever needs the tail."""
    first = part.parts[0]
    sizes = {payload.size: payload for payload in message.payloads}
    if isinstance(first, Word) and first.name in sizes:
        wanted = [f"message->{sizes[first.name].attribute}.size != 0u"]
        wanted += [f"message->has_{key.name}" for key in message.keys]
        return " || ".join(wanted)
    return f"message->{presence(part)}"


def _size_check(message: Message, name: str, indent: int) -> list[str]:
    payload = next(payload for payload in message.payloads if payload.size == name)
    kind = message.field(name).type
    if not isinstance(kind, UintType):
        raise ValueError(f"the size {name} of {message.name} is not a uint")
    pad = "    " * indent
    value = f"message->{payload.attribute}.size"
    tests = ([f"{value} < {uint(kind.low)}"] if kind.low else []) + [f"{value} > {uint(kind.high)}"]
    return [
        f"{pad}if ({' || '.join(tests)}) {{",
        f'{pad}    return colibri_refuse(fault, "{name}");',
        f"{pad}}}",
    ]


def _tail_checks(message: Message) -> list[str]:
    lines: list[str] = []
    for key in message.keys:
        lines += [
            f"    if (message->has_{key.name} && message->{key.name} > {uint(key.type.high)}) {{",
            f'        return colibri_refuse(fault, "{key.name}");',
            "    }",
        ]
    for rule in message.rules:
        lines += [
            f"    if (message->{rule.field} == {rule.value}u",
            f"        && !(message->has_{rule.only_with} && message->{rule.only_with} > 0u)) {{",
            f'        return colibri_refuse(fault, "{rule.field}");',
            "    }",
        ]
    return lines


def _room(message: Message, parts: tuple[Part, ...], indent: int) -> list[str]:
    pad = "    " * indent
    lines: list[str] = []
    sizes = {payload.size for payload in message.payloads}
    for part in parts:
        if isinstance(part, Word) and part.name not in sizes:
            kind = message.field(part.name).type
            if isinstance(kind, RealType) and kind.high is None:
                lines.append(f"{pad}room += colibri_extra_room(message->{part.name});")
            elif not isinstance(kind, UintType | RealType):
                lines.append(f"{pad}room += message->{part.name}.size;")
        elif isinstance(part, Rest):
            lines.append(f"{pad}room += 1u + message->{part.name}.size;")
        elif isinstance(part, Optional):
            lines += _when(message, part, _room(message, part.parts, indent + 1), indent)
        elif isinstance(part, Counted):
            fields = [message.field(word.name) for word in part.words]
            lines.append(f"{pad}room += (size_t)message->{part.count} * {sum(map(word_bytes, fields))}u;")
            large = [field for field in fields if isinstance(field.type, RealType)]
            if large:
                lines.append(f"{pad}for (size_t entry = 0u; entry < message->{part.count}; entry++) {{")
                lines += [
                    f"{pad}    room += colibri_extra_room(message->{field.attribute}[entry]);"
                    for field in large
                ]
                lines.append(f"{pad}}}")
    return lines


def put(field: WireField, value: str, pad: str) -> list[str]:
    """Lines that write one word with the space before it."""
    if isinstance(field.type, UintType):
        return [f"{pad}colibri_put_char(&out, ' ');", f"{pad}colibri_put_uint(&out, {value});"]
    if isinstance(field.type, RealType):
        places = decimals(field.type)
        name = (
            f"colibri_put_fixed(&out, {value}, {places}u)"
            if places is not None
            else f"colibri_put_general(&out, {value})"
        )
        return [f"{pad}colibri_put_char(&out, ' ');", f"{pad}{name};"]
    return [
        f"{pad}colibri_put_char(&out, ' ');",
        f"{pad}colibri_put_bytes(&out, {value}.data, {value}.size);",
    ]


def _puts(message: Message, parts: tuple[Part, ...], indent: int) -> list[str]:
    pad = "    " * indent
    sizes = {payload.size: payload.attribute for payload in message.payloads}
    lines: list[str] = []
    for part in parts:
        if isinstance(part, Literal):
            lines.append(f'{pad}colibri_put_bytes(&out, " {part.text}", {len(part.text) + 1}u);')
        elif isinstance(part, Word):
            value = f"message->{sizes[part.name]}.size" if part.name in sizes else f"message->{part.name}"
            lines += put(message.field(part.name), value, pad)
        elif isinstance(part, Optional):
            lines += _when(message, part, _puts(message, part.parts, indent + 1), indent)
        elif isinstance(part, Counted):
            lines.append(f"{pad}for (size_t entry = 0u; entry < message->{part.count}; entry++) {{")
            for word in part.words:
                field = message.field(word.name)
                lines += put(field, f"message->{field.attribute}[entry]", pad + "    ")
            lines.append(f"{pad}}}")
        elif isinstance(part, Rest):
            lines += [
                f"{pad}if (message->{part.name}.size != 0u) {{",
                f"{pad}    colibri_put_char(&out, ' ');",
                f"{pad}    colibri_put_bytes(&out, message->{part.name}.data, message->{part.name}.size);",
                f"{pad}}}",
            ]
        elif isinstance(part, Extensions):
            for key in message.keys:
                text = f" {key.name}="
                lines += [
                    f"{pad}if (message->has_{key.name}) {{",
                    f'{pad}    colibri_put_bytes(&out, "{text}", {len(text)}u);',
                    f"{pad}    colibri_put_uint(&out, message->{key.name});",
                    f"{pad}}}",
                ]
        elif isinstance(part, Ignored):
            continue
    return lines


def _payload_puts(message: Message) -> list[str]:
    lines = ["    colibri_put_char(&out, '\\n');"]
    for payload in message.payloads:
        value = f"message->{payload.attribute}"
        lines.append(f"    colibri_put_bytes(&out, {value}.data, {value}.size);")
    if message.payloads:
        lines.append("    colibri_put_char(&out, '\\n');")
    return lines
