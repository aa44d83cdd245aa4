"""Vectors: labelled bytes, good and bad, with what a reader has to make of them.

Guarantees: deterministic; every field of every message is taken at both ends of its range and one beyond, and
in spellings that are no such word; every message is also short of a word, cut off, and wrongly terminated;
the examples of the spec come first. Texts are made here, apart from any reader or writer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from codegen.facts import counts_of, payload_of, spans
from codegen.layout import Counted, Extensions, Literal, Optional, Part, Rest, Word
from codegen.model import Example, HexType, Message, Model, RealType, UintType, WireField, WireType
from codegen.views.python_messages import attributes

Vector = dict[str, Any]

READY_KIND: Final = "READY"
REFUSED: Final = "BAD_REQUEST"
BROKEN: Final = "BAD_FRAME"

UNREADABLE: Final[dict[str, tuple[bytes, ...]]] = {
    "uint": (b"+5", b"1_0", b"0x1", b"5.", b"five", b"1e3", b"\xd9\xa3", b"5;", b"-"),
    "real": (
        b"1_0",
        b"infinity",
        b"NaN",
        b"-nan",
        b"+inf",
        b".",
        b"--1",
        b"1.2.3",
        b"0x1p3",
        b"1e",
        b"\xd9\xa3",
    ),
    "hex": (b"0", b"0g", b"abc"),
    "word": (b"a\x7fb", b"\x00"),
}
LONG: Final = b"9" * 30


@dataclass(frozen=True)
class Spelled:
    """Words of a message after its kind: (field, text), the payloads, and the values of its attributes."""

    message: Message
    words: tuple[tuple[str, bytes], ...] = ()
    payloads: tuple[bytes, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    lead: bytes = b""

    def header(self, gap: bytes = b" ") -> bytes:
        """The header line without its line feed."""
        return gap.join([self.message.layout.kind.encode(), *(text for _, text in self.words)])

    def data(self, gap: bytes = b" ") -> bytes:
        """All bytes."""
        payload = b"".join(self.payloads) + b"\n" if self.message.payloads else b""
        return self.lead + self.header(gap) + b"\n" + payload

    def with_word(self, place: int, text: bytes) -> Spelled:
        """The same with another text at ``place``."""
        words = list(self.words)
        words[place] = (words[place][0], text)
        return replace(self, words=tuple(words))


def sort_of(kind: WireType) -> str:
    """uint, real, hex or word."""
    if isinstance(kind, UintType):
        return "uint"
    return "real" if isinstance(kind, RealType) else "hex" if isinstance(kind, HexType) else "word"


def is_bounded(kind: RealType) -> bool:
    """Whether the number has bounds; only then its writer prints exponents."""
    return kind.low is not None or kind.high is not None


def meaning(kind: WireType, text: bytes) -> Any:
    """The value of a good spelling."""
    if isinstance(kind, UintType):
        readable = text.isdigit() and kind.low <= int(text) <= kind.high
        return int(text) if readable or kind.unreadable is None else kind.unreadable
    return float(text) if isinstance(kind, RealType) else text.decode()


# ---------------------------------------------------------------- spelling a message


class _Speller:
    """Spells the shortest or the fullest form of a message with ordinary values."""

    def __init__(self, message: Message, *, full: bool) -> None:
        self.message = message
        self.full = full
        self.words: list[tuple[str, bytes]] = []
        self.values: dict[str, Any] = {}
        self.payloads: dict[str, bytes] = {}
        self.entries = 2 if full else 0

    def spelled(self) -> Spelled:
        self._take(self.message.layout.parts)
        for attribute in attributes(self.message):
            absent: Any = b"" if attribute.type == "bytes" else None
            self.values.setdefault(attribute.name, absent)
        payloads = tuple(self.payloads.get(payload.attribute, b"") for payload in self.message.payloads)
        order = [attribute.name for attribute in attributes(self.message)]
        values = {name: self.values[name] for name in order}
        return Spelled(self.message, tuple(self.words), payloads, values)

    def _take(self, parts: tuple[Part, ...]) -> None:
        for part in parts:
            if isinstance(part, Literal):
                self.words.append(("", part.text.encode()))
            elif isinstance(part, Word):
                self._word(self.message.field(part.name))
            elif isinstance(part, Rest):
                texts = [b"some", b"word|s"] if self.full or part.at_least else []
                self.words += [(part.name, text) for text in texts]
                self.values[self.message.field(part.name).attribute] = [text.decode() for text in texts]
            elif isinstance(part, Counted):
                self._table(part)
            elif isinstance(part, Optional) and self.full:
                self._take(part.parts)
            elif isinstance(part, Extensions):
                for key in self.message.keys:
                    self.words.append((key.name, f"{key.name}={key.type.high}".encode()))
                    self.values[key.name] = key.type.high

    def _word(self, found: WireField) -> None:
        payload = payload_of(self.message, found.name)
        if payload is not None:
            data = b"ab\n" if payload is self.message.payloads[0] else b"\x00\xff"
            self.payloads[payload.attribute] = data
            self.words.append((found.name, str(len(data)).encode()))
            if not payload.drained:
                self.values[payload.attribute] = data
        elif found.name in counts_of(self.message):
            self.words.append((found.name, str(self.entries).encode()))
        else:
            text = _ordinary(found.type)
            self.words.append((found.name, text))
            self.values[found.attribute] = meaning(found.type, text)

    def _table(self, part: Counted) -> None:
        fields = [self.message.field(word.name) for word in part.words]
        for found in fields:
            self.values[found.attribute] = []
        for entry in range(self.entries):
            for found in fields:
                text = _ordinary(found.type, entry)
                self.words.append((found.name, text))
                self.values[found.attribute].append(meaning(found.type, text))


def _ordinary(kind: WireType, entry: int = 0) -> bytes:
    """A value in range like those an engine sends."""
    if isinstance(kind, UintType):
        return str(min(kind.low + 1 + entry, kind.high)).encode()
    if isinstance(kind, RealType):
        return b"0.5" if is_bounded(kind) else b"-1.250000" if entry == 0 else b"-inf"
    return b"0aF0" if isinstance(kind, HexType) else b"word"


# ---------------------------------------------------------------- good and bad words


def good_texts(kind: WireType) -> list[bytes]:
    """Spellings at the ends of the range, and odd ones that are allowed."""
    if isinstance(kind, UintType):
        found = [str(kind.low).encode(), str(kind.high).encode(), b"000" + str(kind.high).encode()]
        odd = [*UNREADABLE["uint"], *outside_numbers(kind)]
        return found if kind.unreadable is None else found + odd
    if isinstance(kind, RealType):
        if is_bounded(kind):
            high = repr(kind.high).encode()
            found = [high, b"1e-30", b"5E-1", b"+0.25", b".5", b"1."]
            return found if kind.above is not None else [*found, b"0", b"-0.000"]
        found = [b"0", b"-0.000", b"+1.5", b"1.", b"-.5", b"123456789012345678901234567890.25"]
        return found if kind.finite else [*found, b"nan", b"inf", b"-inf"]
    return [b"00", b"0aF0"] if isinstance(kind, HexType) else [b"~", b"caf\xc3\xa9"]


def unreadable_texts(kind: WireType) -> list[bytes]:
    """Spellings that are no such word."""
    if isinstance(kind, UintType) and kind.unreadable is not None:
        return []
    found = list(UNREADABLE[sort_of(kind)])
    if isinstance(kind, RealType) and not is_bounded(kind):
        found.append(b"1e3")
    return found


def outside_numbers(kind: UintType) -> list[bytes]:
    """Numbers below and above the range of an unsigned number."""
    below = [str(kind.low - 1).encode()] if kind.low > 0 else []
    return [*below, str(kind.high + 1).encode(), b"-1", b"-0", LONG]


def outside_texts(kind: WireType) -> list[bytes]:
    """Numbers out of range."""
    if isinstance(kind, UintType):
        return outside_numbers(kind) if kind.unreadable is None else []
    if not isinstance(kind, RealType) or not kind.finite:
        return []
    found = [b"nan", b"inf", b"-inf"]
    if kind.high is not None:
        found += [b"%.17g" % (kind.high * (1 + 2**-50)), b"1e300"]
    if kind.low is not None:
        found.append(b"-0.0000001")
    if kind.above is not None:
        found += [b"%g" % kind.above, b"1e-50"]
    return found


# ---------------------------------------------------------------- vectors


def frame_vectors(model: Model) -> list[Vector]:
    """Vectors of all frames and of the handshake."""
    found: list[Vector] = []
    for message in model.frames:
        found += _frame_vectors(message, message.name, b"")
    return found + _frame_vectors(model.handshake.message, READY_KIND, model.handshake.sentinel)


def _frame_vectors(message: Message, kind: str, lead: bytes) -> list[Vector]:
    found = _examples(message, kind)
    short = replace(_Speller(message, full=False).spelled(), lead=lead)
    full = replace(_Speller(message, full=True).spelled(), lead=lead)
    found += list(_good(kind, short, full))
    for label, broken, at, rule in _bad(short, full):
        fault = {"kind": kind, "field": at, "rule": rule, "at": "feed"}
        found.append(_vector(f"{kind} {label}", broken, fault=fault))
    found += list(_cut(kind, full, command=False))
    if not lead:
        fault = {"kind": "", "field": "", "rule": "unknown_kind", "at": "feed"}
        found.append(_vector(f"{kind} in lower case", short.data().lower(), fault=fault))
    return found


def command_vectors(model: Model) -> list[Vector]:
    """Vectors of all commands."""
    found: list[Vector] = []
    for message in model.commands:
        short = _Speller(message, full=False).spelled()
        full = _Speller(message, full=True).spelled()
        found += _examples(message, message.name)
        found += list(_good(message.name, short, full))
        for label, broken, at, rule in _bad_command(short, full):
            refusal = {
                "kind": message.name,
                "id": _readable_id(broken),
                "code": REFUSED,
                "field": at,
                "rule": rule,
            }
            found.append(_vector(f"{message.name} {label}", broken.data(), refusal=refusal))
        found += list(_cut(message.name, full, command=True))
        refusal = {"kind": "", "id": 0, "code": REFUSED, "field": "", "rule": "unknown_kind"}
        header = short.header().lower() + b"\n"
        found.append(_vector(f"{message.name} in lower case", header, refusal=refusal))
    return found


def _vector(name: str, data: bytes, **verdict: Any) -> Vector:
    shown = data.decode("latin-1").encode("unicode_escape").decode("ascii")
    short = shown if len(shown) <= 120 else f"{shown[:117]}..."
    return {"name": name, "shown": short, "hex": data.hex(), **verdict}


def encoded(value: Any) -> Any:
    """A value as JSON: floats as ``{"real": text}`` (nan and inf too), bytes as ``{"hex": text}``."""
    if isinstance(value, float):
        return {"real": repr(value)}
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, list | tuple):
        return [encoded(part) for part in value]
    return value


def _gives(kind: str, values: Mapping[str, Any], *, partial: bool = False) -> Vector:
    found: Vector = {"kind": kind, "values": {name: encoded(value) for name, value in values.items()}}
    return {**found, "partial": True} if partial else found


def _examples(message: Message, kind: str) -> list[Vector]:
    """The examples of the spec."""
    return [
        _example(message, example, kind, f"{kind} example {number} of the spec")
        for number, example in enumerate(message.examples, start=1)
    ]


def _example(message: Message, example: Example, kind: str, label: str) -> Vector:
    if example.fault is None:
        types = {attribute.name: attribute for attribute in attributes(message)}
        values = {name: _typed(types[name].type, value) for name, value in (example.gives or {}).items()}
        return _vector(label, example.data, gives=_gives(kind, values, partial=True))
    fault = example.fault
    if message.direction == "command" and fault.code == REFUSED:
        words = tuple(("", word) for word in example.data.partition(b"\n")[0].split()[1:])
        refusal = {"kind": kind, "id": _readable_id(Spelled(message, words))}
        return _vector(
            label,
            example.data,
            refusal={**refusal, "code": fault.code, "field": fault.field, "rule": fault.rule},
        )
    return _vector(
        label, example.data, fault={"kind": kind, "field": fault.field, "rule": fault.rule, "at": "feed"}
    )


def _typed(kind: str, value: Any) -> Any:
    """A value of an example in the type of its attribute."""
    if kind.startswith("bytes"):
        return str(value).encode()
    if kind.startswith("tuple"):
        return [float(part) if "float" in kind else part for part in value]
    return float(value) if kind.startswith("float") else value


def _good(kind: str, short: Spelled, full: Spelled) -> Iterator[Vector]:
    yield _vector(f"{kind} shortest", short.data(), gives=_gives(kind, short.values))
    yield _vector(f"{kind} fullest", full.data(), gives=_gives(kind, full.values))
    yield _vector(f"{kind} with runs of tabs and spaces", full.data(b" \t "), gives=_gives(kind, full.values))
    if not full.lead:
        yield _vector(f"{kind} after empty lines", b"\n \t\n" + full.data(), gives=_gives(kind, full.values))
    for place, found in _plain_places(full):
        for text in good_texts(found.type):
            values = {**full.values, found.attribute: meaning(found.type, text)}
            shown = text.decode("latin-1")
            yield _vector(
                f"{kind} {found.name} as {shown}",
                full.with_word(place, text).data(),
                gives=_gives(kind, values),
            )


def _plain_places(spelled: Spelled) -> Iterator[tuple[int, WireField]]:
    """(place, field) of every single word that is no payload size and no count."""
    message = spelled.message
    for place, (name, _) in enumerate(spelled.words):
        if not name or name in {key.name for key in message.keys}:
            continue
        found = message.field(name)
        is_rest = any(isinstance(part, Rest) and part.name == name for part in message.layout.walk())
        if found.repeated or is_rest or name in counts_of(message) or payload_of(message, name) is not None:
            continue
        yield place, found


Bad = tuple[str, bytes, str, str]


def _bad(short: Spelled, full: Spelled) -> Iterator[Bad]:
    """(label, bytes, field, rule) of everything wrong with one word, or with their number."""
    message = full.message
    seen: set[str] = set()
    for place, (name, text) in enumerate(full.words):
        if name and name in seen:
            continue
        seen.add(name)
        if not name:
            yield "with another constant", full.with_word(place, text.lower()).data(), "", "constant"
            continue
        kind = message.field(name).type
        for bad in unreadable_texts(kind):
            yield f"{name} as {_shown(bad)}", full.with_word(place, bad).data(), name, "word"
        for bad in outside_texts(kind):
            yield f"{name} as {_shown(bad)}", full.with_word(place, bad).data(), name, "range"
    for label, words in _miscounted(short, full):
        yield label, replace(short, words=words).data(), "", "word_count"


def _shown(text: bytes) -> str:
    return text.decode("latin-1").encode("unicode_escape").decode("ascii")


Words = tuple[tuple[str, bytes], ...]


def _miscounted(short: Spelled, full: Spelled) -> Iterator[tuple[str, Words]]:
    """Word lists of which no form of the layout has so many."""
    least = spans(short.message)[0][0] - 1
    if short.words:
        yield (
            "short of its last word",
            short.words[: least - 1] if len(short.words) > least else short.words[:-1],
        )
    if spans(short.message)[-1][1] is not None:
        yield "with one word too many", (*full.words, ("", b"1"))
    for (_, high), (low, _) in zip(spans(short.message), spans(short.message)[1:], strict=False):
        for count in range((high or 0) + 1, low):
            yield f"of {count} words", full.words[: count - 1]
    if any(isinstance(part, Counted) for part in full.message.layout.walk()):
        yield "short of a table word", full.words[:-1]
        yield "with one table word too many", (*full.words, ("", b"1"))


def _cut(kind: str, full: Spelled, *, command: bool) -> Iterator[Vector]:
    """Wrong terminators and streams that end inside the message."""
    data, header = full.data(), full.lead + full.header()
    fault: Vector = {"kind": kind, "field": "", "rule": "truncated", "at": "eof"}
    code = {"code": BROKEN} if command else {}
    if full.message.payloads:
        wrong = {"kind": kind, "field": "", "rule": "terminator", "at": "feed", **code}
        yield _vector(f"{kind} with another byte after its payload", data[:-1] + b"X", fault=wrong)
        yield _vector(f"{kind} with a payload one byte too long", data[:-1] + b"X\n", fault=wrong)
        for label, end in (("before its terminator", len(data) - 1), ("inside its payload", len(header) + 2)):
            yield _vector(f"{kind} cut off {label}", data[:end], fault={**fault, **code})
    unknown = fault if full.lead else {**fault, "kind": ""}
    yield _vector(f"{kind} cut off in its header", header[:-1], fault={**unknown, **code})


def _readable_id(spelled: Spelled) -> int:
    kind = spelled.message.field("id").type
    if not spelled.words or not spelled.words[0][1].isdigit() or not isinstance(kind, UintType):
        return 0
    value = int(spelled.words[0][1])
    return value if kind.low <= value <= kind.high else 0


def _bad_command(short: Spelled, full: Spelled) -> Iterator[tuple[str, Spelled, str, str]]:
    """(label, message, field, rule): like :func:`_bad`, each with just the payload its header still names."""
    message = full.message
    keys = {key.name for key in message.keys}
    for place, (name, _) in enumerate(full.words):
        if name in keys:
            continue
        kind = message.field(name).type
        for bad in unreadable_texts(kind):
            broken = _named(full.with_word(place, bad))
            yield f"{name} as {_shown(bad)}", broken, name, "word"
        for bad in outside_texts(kind):
            if payload_of(message, name) is None or not bad.isdigit():
                yield f"{name} as {_shown(bad)}", _named(full.with_word(place, bad)), name, "range"
    for label, words in _miscounted(short, full):
        yield label, _named(replace(short, words=words)), "", "word_count"
    if message.keys:
        yield from _bad_keys(short, full)
    for rule in message.rules:
        place = [name for name, _ in short.words].index(rule.field)
        broken = short.with_word(place, str(rule.value).encode())
        yield f"{rule.field} {rule.value} without {rule.only_with}", broken, rule.field, "range"


def _named(spelled: Spelled) -> Spelled:
    """The message with just the payload bytes its header names."""
    total = None
    for name, text in spelled.words:
        if name and any(payload.size == name for payload in spelled.message.payloads):
            if not text.isdigit():
                break
            total = (total or 0) + int(text)
    if total is None:
        return replace(spelled, message=replace(spelled.message, payloads=()))
    return replace(spelled, payloads=(b"p" * total,))


def _bad_keys(short: Spelled, full: Spelled) -> Iterator[tuple[str, Spelled, str, str]]:
    message = full.message
    names = {key.name for key in message.keys}
    plain = tuple(word for word in full.words if word[0] not in names)
    first, last = message.keys[0], message.keys[-1]
    cases: list[tuple[str, list[str], str, str]] = [
        ("an unknown key", ["wish=1"], "wish", "unknown_key"),
        ("a key in capitals", [f"{first.name.upper()}=1"], "", "word"),
        ("a key of sixteen letters", ["sixteen_letters_=1"], "", "word"),
        ("no equals sign", [first.name], "", "word"),
        ("keys out of order", [f"{last.name}=1", f"{first.name}=1"], first.name, "key_order"),
    ]
    for key in message.keys:
        cases += [
            (f"{key.name} twice", [f"{key.name}=1", f"{key.name}=1"], key.name, "duplicate_key"),
            (f"{key.name} without a value", [f"{key.name}="], key.name, "word"),
            (f"junk glued to {key.name}", [f"{key.name}=1x"], key.name, "word"),
            (f"{key.name} one too large", [f"{key.name}={key.type.high + 1}"], key.name, "range"),
            (f"{key.name} of ten digits", [f"{key.name}=9999999999"], key.name, "range"),
            (f"{key.name} of eleven digits", [f"{key.name}=00000000001"], key.name, "range"),
        ]
    for label, texts, at, rule in cases:
        words = (*plain, *(("", text.encode()) for text in texts))
        yield f"with {label}", replace(full, words=words), at, rule
