"""View of the C program that the agreement tests talk to: how it prints the values of each message."""

from __future__ import annotations

from dataclasses import dataclass

from ..layout import Counted, Optional, Part, Rest, Word
from ..model import Message, RealType, UintType, WireField
from .c_types import presence, struct_name


@dataclass(frozen=True, slots=True)
class Shown:
    """A message and the C lines that print its values."""

    kind: str
    name: str
    struct: str
    prints: list[str]


def shown(message: Message) -> Shown:
    """How one message is printed; values that are absent are not printed."""
    lines = _parts(message, message.layout.parts)
    for key in message.keys:
        shown_key = f'printf(" {key.name}=%llu", (unsigned long long)message->{key.name});'
        lines.append(f"if (message->has_{key.name}) {{ {shown_key} }}")
    return Shown(message.layout.kind, message.name.lower(), struct_name(message), lines)


def _parts(message: Message, parts: tuple[Part, ...]) -> list[str]:
    sizes = {payload.size: payload for payload in message.payloads}
    lines: list[str] = []
    for part in parts:
        if isinstance(part, Word) and part.name in sizes:
            payload = sizes[part.name]
            if not payload.drained:
                lines.append(f'printf(" {payload.attribute}="); print_bytes(message->{payload.attribute});')
        elif isinstance(part, Word):
            field = message.field(part.name)
            lines.append(_print(field, part.name, f"message->{part.name}"))
        elif isinstance(part, Rest):
            lines.append(f'printf(" {part.name}="); print_bytes(message->{part.name});')
        elif isinstance(part, Counted):
            for word in part.words:
                field = message.field(word.name)
                entry = _value(field, f"message->{field.attribute}[entry]")
                loop = f"for (size_t entry = 0u; entry < message->{part.count}; entry++)"
                lines += [f'printf(" {field.attribute}=");', f"{loop} {{ putchar(','); {entry} }}"]
        elif isinstance(part, Optional):
            first = part.parts[0]
            inner = _parts(message, part.parts)
            if isinstance(first, Word) and first.name in sizes:
                lines += inner
            else:
                lines += [f"if (message->{presence(part)}) {{", *(f"    {line}" for line in inner), "}"]
    return lines


def _print(field: WireField, name: str, value: str) -> str:
    return f'printf(" {name}="); {_value(field, value)}'


def _value(field: WireField, value: str) -> str:
    if isinstance(field.type, UintType):
        return f'printf("%llu", (unsigned long long){value});'
    if isinstance(field.type, RealType):
        return f'printf("%a", {value});'
    return f"print_bytes({value});"
