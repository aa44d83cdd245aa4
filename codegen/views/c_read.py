"""The reading half of the C header: for each message the steps through its header words, as C lines.

The order of checks is that of the Python reader, so that both name the same fault: the number of words first,
then word by word from the left, the number of a repeat's words right after its count, the value rules last.
"""

from __future__ import annotations

from dataclasses import dataclass

from codegen.facts import least_real, spans

from ..layout import Counted, Extensions, Ignored, Literal, Optional, Part, Rest, Word
from ..model import HexType, Message, RealType, UintType, WireField, WireType
from .c_types import c_type, presence, real, struct_name, uint, width


@dataclass(frozen=True, slots=True)
class Reader:
    """One ``colibri_read_…`` function; the table texts are empty where there are no counted words."""

    kind: str
    name: str
    struct: str
    function: str
    layout: str
    table_argument: str
    table_value: str
    word_count: str
    """C condition under which no form of the layout has this number of words."""
    steps: list[str]
    sizes: list[Size]
    payloads: list[str]
    """Members that point into the payload, in its order."""
    keys: list[KeyRow]


@dataclass(frozen=True, slots=True)
class Size:
    """A byte count in the header: the place of its word, the kind being 0."""

    place: int


@dataclass(frozen=True, slots=True)
class KeyRow:
    """An extension key for the reader: name, bounds, members."""

    name: str
    length: int
    low: str
    high: str
    type: str


def reader(message: Message) -> Reader:
    """Everything the template needs to set the reading function of ``message``."""
    counted = any(isinstance(part, Counted) for part in message.layout.walk())
    return Reader(
        kind=message.layout.kind,
        name=message.name.lower(),
        struct=struct_name(message),
        function=f"colibri_read_{message.name.lower()}",
        layout=message.layout.text,
        table_argument=", colibri_tables *tables" if counted else "",
        table_value=", &frame->tables" if counted else "",
        word_count=miscounted(message),
        steps=_steps(message, message.layout.parts, 1, 1) + _rules(message),
        sizes=_sizes(message, message.layout.parts, 1),
        payloads=[payload.attribute for payload in message.payloads],
        keys=[
            KeyRow(key.name, len(key.name), uint(key.type.low), uint(key.type.high), c_type(key.type))
            for key in message.keys
        ],
    )


def miscounted(message: Message) -> str:
    """C condition: the number of words (kind included) is one that no form of the layout has."""
    tests = []
    for low, high in spans(message):
        if high is None:
            tests.append(f"words < {low}u")
        elif low == high:
            tests.append(f"words != {low}u")
        else:
            tests.append(f"(words < {low}u || words > {high}u)")
    return " && ".join(tests)


def _sizes(message: Message, parts: tuple[Part, ...], place: int) -> list[Size]:
    by_size = {payload.size for payload in message.payloads}
    found: list[Size] = []
    for part in parts:
        if isinstance(part, Optional):
            return found + _sizes(message, part.parts, place)
        if isinstance(part, Word) and part.name in by_size:
            found.append(Size(place))
        place += 1
    return found


def read_call(kind: WireType, target: str) -> str:
    """C expression that reads the word into ``target`` and is the rule it breaks."""
    if isinstance(kind, UintType):
        bounds = f"{uint(kind.low)}, {uint(kind.high)}"
        if kind.unreadable is not None:
            return f"colibri_read_uint_or(word, {bounds}, {uint(kind.unreadable)}, {target})"
        return f"colibri_read_uint(word, {bounds}, {target})"
    if isinstance(kind, RealType):
        low = least_real(kind, printed=False)
        if low is not None or kind.high is not None:
            least = "-HUGE_VAL" if low is None else real(low)
            most = "HUGE_VAL" if kind.high is None else real(kind.high)
            return f"colibri_read_ranged(word, {least}, {most}, {target})"
        return f"colibri_read_{'finite' if kind.finite else 'real'}(word, {target})"
    test = "colibri_is_hex" if isinstance(kind, HexType) else "colibri_is_word"
    return f"({test}(word) ? COLIBRI_RULE_NONE : COLIBRI_RULE_WORD)"


def _take(field: WireField, target: str, pad: str) -> list[str]:
    """Lines that read the next word into the member ``target``."""
    scratch = "&number" if isinstance(field.type, UintType) else "&decimal"
    lines = [f"{pad}(void)colibri_next_word(&line, &word);", f"{pad}rule = {read_call(field.type, scratch)};"]
    lines += [
        f"{pad}if (rule != COLIBRI_RULE_NONE) {{",
        f'{pad}    return colibri_fail(fault, "{field.name}", rule);',
        f"{pad}}}",
    ]
    if isinstance(field.type, UintType):
        bits = width(field.type.high)
        lines.append(f"{pad}{target} = {'number' if bits == 64 else f'(uint{bits}_t)number'};")
    else:
        lines.append(f"{pad}{target} = {'decimal' if isinstance(field.type, RealType) else 'word'};")
    return lines


def _steps(message: Message, parts: tuple[Part, ...], place: int, indent: int) -> list[str]:
    pad = "    " * indent
    sizes = {payload.size: payload.attribute for payload in message.payloads}
    lines: list[str] = []
    for position, part in enumerate(parts):
        if isinstance(part, Literal):
            lines += [
                f"{pad}(void)colibri_next_word(&line, &word);",
                f'{pad}if (!colibri_word_is(word, "{part.text}")) {{',
                f'{pad}    return colibri_fail(fault, "", COLIBRI_RULE_CONSTANT);',
                f"{pad}}}",
            ]
            place += 1
        elif isinstance(part, Word):
            field = message.field(part.name)
            if part.name in sizes:
                lines += _take(field, f"message->{sizes[part.name]}.size", pad)
                lines[-1] = f"{pad}message->{sizes[part.name]}.size = (size_t)number;"
            else:
                lines += _take(field, f"message->{part.name}", pad)
            place += 1
        elif isinstance(part, Optional):
            first = part.parts[0]
            lines.append(f"{pad}if (words > {place}u) {{")
            if isinstance(first, Word) and first.name not in sizes:
                lines.append(f"{pad}    message->{presence(part)} = true;")
            lines += [*_steps(message, part.parts, place, indent + 1), f"{pad}}}"]
        elif isinstance(part, Counted):
            more = any(isinstance(later, Ignored) for later in parts[position + 1 :])
            lines += _counted(message, part, place, pad, more)
        elif isinstance(part, Rest):
            lines += _rest(message.field(part.name), pad)
        elif isinstance(part, Extensions):
            lines += [
                f"{pad}if (!colibri_read_{message.name.lower()}_keys(&line, message, fault)) {{",
                f"{pad}    return false;",
                f"{pad}}}",
            ]
    return lines


def _counted(message: Message, part: Counted, place: int, pad: str, open_ended: bool) -> list[str]:
    end = f"{place}u + {len(part.words)}u * (size_t)message->{part.count}"
    lines = [
        f"{pad}if (words {'<' if open_ended else '!='} {end}) {{",
        f'{pad}    return colibri_fail(fault, "", COLIBRI_RULE_WORD_COUNT);',
        f"{pad}}}",
        f"{pad}for (size_t entry = 0u; entry < message->{part.count}; entry++) {{",
    ]
    for word in part.words:
        field = message.field(word.name)
        lines += _take(field, f"tables->{field.attribute}[entry]", pad + "    ")
    lines.append(f"{pad}}}")
    for word in part.words:
        attribute = message.field(word.name).attribute
        lines.append(f"{pad}message->{attribute} = tables->{attribute};")
    return lines


def _rest(field: WireField, pad: str) -> list[str]:
    return [
        f"{pad}message->{field.name} = colibri_rest(&line);",
        f"{pad}while (colibri_next_word(&line, &word)) {{",
        f"{pad}    rule = {read_call(field.type, 'NULL')};",
        f"{pad}    if (rule != COLIBRI_RULE_NONE) {{",
        f'{pad}        return colibri_fail(fault, "{field.name}", rule);',
        f"{pad}    }}",
        f"{pad}}}",
    ]


def _rules(message: Message) -> list[str]:
    lines: list[str] = []
    for rule in message.rules:
        lines += [
            f"    if (message->{rule.field} == {rule.value}u",
            f"        && !(message->has_{rule.only_with} && message->{rule.only_with} > 0u)) {{",
            f'        return colibri_fail(fault, "{rule.field}", COLIBRI_RULE_RANGE);',
            "    }",
        ]
    return lines


@dataclass(frozen=True, slots=True)
class Column:
    """A member of the room for counted words."""

    declaration: str


def tables(messages: tuple[Message, ...]) -> list[Column]:
    """Room for the counted words of any of ``messages``, sized by the range of their counts."""
    found: dict[str, str] = {}
    for message in messages:
        for part in message.layout.walk():
            if not isinstance(part, Counted):
                continue
            count = message.field(part.count).type
            if not isinstance(count, UintType):
                raise ValueError(f"the count {part.count} of {message.name} is not a uint")
            for word in part.words:
                field = message.field(word.name)
                found[field.attribute] = f"{c_type(field.type)} {field.attribute}[{uint(count.high)}]"
    return [Column(declaration) for declaration in found.values()]
