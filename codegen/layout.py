"""The layout notation of a message header, parsed.

``ECHO <id> <size> (<token> <token_logprob>){k}`` → :class:`Layout`, a tuple of parts with the column of each.
Guarantees of a returned layout: it starts with a literal kind; field names are unique; a repeat count names a
field read before it; what makes the length of a line uncertain (``[…]``, ``<x>*``, ``<x>+``, ``...``,
extensions, repeats) comes only where a reader can decide it from the number of words left. Every violation
is a finding at its own column.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from .findings import Findings, Related, Rule
from .source import Scalar

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

RULES: Final = (
    Rule("layout.syntax", "A layout line is in the layout notation.", "Its parts: codegen/layout.lark."),
    Rule("layout.duplicate-field", "A layout names each field once.", "Rename one of the two fields."),
    Rule("layout.unknown-count", "A repeat count is a field read earlier.", "Put the count first."),
    Rule(
        "layout.ambiguous",
        "The number of words alone decides which optional parts of a line are present.",
        "Open-ended parts come last, nested as [a [b [...]]].",
    ),
)


@dataclass(frozen=True, slots=True)
class Literal:
    """A fixed word after the kind."""

    text: str
    offset: int


@dataclass(frozen=True, slots=True)
class Word:
    """One word that holds the field ``name``."""

    name: str
    offset: int


@dataclass(frozen=True, slots=True)
class Rest:
    """The rest of the line, at least ``at_least`` words (0 or 1), held by the field ``name``."""

    name: str
    at_least: int
    offset: int


@dataclass(frozen=True, slots=True)
class Ignored:
    """Further words that a reader accepts and drops."""

    offset: int


@dataclass(frozen=True, slots=True)
class Optional:
    """A tail that may be absent as a whole."""

    parts: tuple[Part, ...]
    offset: int


@dataclass(frozen=True, slots=True)
class Counted:
    """``words`` repeated as often as the field ``count`` says."""

    words: tuple[Word, ...]
    count: str
    offset: int
    count_offset: int


@dataclass(frozen=True, slots=True)
class Extensions:
    """Any number of ``key=value`` words."""

    key: str
    value: str
    offset: int


Part = Literal | Word | Rest | Ignored | Optional | Counted | Extensions


@dataclass(frozen=True, slots=True)
class Layout:
    """A parsed layout line. ``text`` is the line as written, with single spaces between its parts."""

    kind: str
    parts: tuple[Part, ...]
    text: str

    def walk(self) -> Iterator[Part]:
        """Every part, outer before inner, in the order of the line."""
        yield from _walk(self.parts)

    def field_names(self) -> list[str]:
        """Names of all fields in the order of the line, those of a repeat included."""
        return [part.name for part in self.walk() if isinstance(part, Word | Rest)]


def _walk(parts: tuple[Part, ...]) -> Iterator[Part]:
    for part in parts:
        yield part
        if isinstance(part, Optional):
            yield from _walk(part.parts)
        elif isinstance(part, Counted):
            yield from part.words


def parse_layout(source: Scalar, findings: Findings, item: str) -> Layout | None:
    """Parse the layout written in ``source``; None with findings under ``item`` when it is not one."""
    from lark import UnexpectedInput  # lark costs 60 ms to import; commands that read no layout skip it

    try:
        tree = _parser().parse(source.text)
    except UnexpectedInput as error:
        offset = _error_offset(error, source.text)
        found = repr(source.text[offset:].split(" ")[0]) if source.text[offset:] else "the end of the line"
        findings.error(
            "layout.syntax",
            source.at(offset),
            f"the layout cannot be read at {found}",
            item=item,
            hint=f"expected {_expected(error)}",
        )
        return None
    kind, *parts = tree.children  # one literal, then trees only
    trees = tuple(_part(cast("Tree[Token]", part)) for part in parts)
    layout = Layout(str(kind), trees, " ".join(source.text.split()))
    before = len(findings)
    _check_names(layout, source, findings, item)
    _check_order(layout.parts, source, findings, item)
    return layout if len(findings) == before else None


@lru_cache(maxsize=1)
def _parser() -> Lark:
    from lark import Lark

    grammar = Path(__file__).with_name("layout.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", propagate_positions=True)


_SPELLING: Final = {
    "LITERAL": "a literal WORD",
    "NAME": "a lower-case name",
    "DOTS": "'...'",
    "LESSTHAN": "'<'",
    "MORETHAN": "'>'",
    "PLUS": "'+'",
    "LSQB": "'['",
    "RSQB": "']'",
    "LPAR": "'('",
    "RPAR": "')'",
    "LBRACE": "'{'",
    "RBRACE": "'}'",
    "EQUAL": "'='",
    "STAR": "'*'",
    "$END": "the end of the line",
}


def _error_offset(error: Any, text: str) -> int:
    """Where a reader of ``text`` stumbled; the length of ``text`` when it ended too early."""
    at_end = getattr(getattr(error, "token", None), "type", "") == "$END"
    position = error.pos_in_stream
    return len(text) if at_end or position is None or position < 0 else int(position)


def _expected(error: Any) -> str:
    names = getattr(error, "expected", None) or getattr(error, "allowed", None) or ()
    return " or ".join(sorted(_SPELLING.get(name, name) for name in names)) or "another part of the notation"


def _part(tree: Tree[Token]) -> Part:
    offset = tree.meta.start_pos
    children: list[Any] = tree.children
    match tree.data:
        case "field":
            return Word(str(children[0]), offset)
        case "rest":
            return Rest(str(children[0]), int(children[1] == "+"), offset)
        case "ignored":
            return Ignored(offset)
        case "literal":
            return Literal(str(children[0]), offset)
        case "optional":
            return Optional(tuple(_part(child) for child in children), offset)
        case "counted":
            *fields, count = children
            words = tuple(Word(str(child.children[0]), child.meta.start_pos) for child in fields)
            return Counted(words, str(count), offset, count.start_pos)
        case _:
            return Extensions(str(children[0]), str(children[1]), offset)


def _check_names(layout: Layout, source: Scalar, findings: Findings, item: str) -> None:
    seen: dict[str, int] = {}
    for part in layout.walk():
        if isinstance(part, Word | Rest):
            if part.name in seen:
                findings.error(
                    "layout.duplicate-field",
                    source.at(part.offset),
                    f"the field <{part.name}> is already in this layout",
                    item=item,
                    related=(Related("previous definition", source.at(seen[part.name])),),
                )
            seen.setdefault(part.name, part.offset)
        elif isinstance(part, Counted) and part.count not in seen:
            findings.error(
                "layout.unknown-count",
                source.at(part.count_offset),
                f"the repeat count {part.count!r} is no field read before it",
                item=item,
                hint=f"fields before it: {', '.join(seen) or 'none'}",
            )


def _check_order(parts: tuple[Part, ...], source: Scalar, findings: Findings, item: str) -> None:
    """Refuse a part after one that already takes an uncertain number of words."""
    for part, following in pairwise(parts):
        if isinstance(part, Word | Literal):
            continue
        if isinstance(part, Counted) and isinstance(following, Ignored):
            continue  # the count fixes the words of the repeat, so what follows is decided
        findings.error(
            "layout.ambiguous",
            source.at(following.offset),
            f"a part after {_describe(part)}: the number of words no longer decides what it is",
            item=item,
            hint="put it before, or nest it as the last part inside the brackets",
        )
    for part in parts:
        if isinstance(part, Optional):
            _check_order(part.parts, source, findings, item)


def _describe(part: Part) -> str:
    match part:
        case Rest(name, at_least):
            return f"<{name}>{'+' if at_least else '*'}"
        case Ignored():
            return "'...'"
        case Optional():
            return "an optional tail"
        case Counted(count=count):
            return f"a repeat of {count}"
        case _:
            return "the extension words"
