"""GBNF, the grammar notation of llama.cpp, as a Lark grammar for llguidance.

A lexer takes the longest lexeme it can: were the literals of ``("a" | "ab") "b"`` lexemes, ``ab`` would not
be allowed. So a grammar without recursion becomes one single lexeme, and in any other every character is one.
What recursion only says "again" with becomes a repetition first: ``ws ::= [ ] ws | ""`` is ``[ ]*``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import chain
from typing import Any, Final, NamedTuple

DEEPEST_GROUP: Final = 64
MOST_TOKENS: Final = 40_000
"""Names, literals, marks, … of a grammar; the lists of words that people hand in have some thousands."""
MOST_RANGES: Final = 4096
"""Of one class, neighbours joined."""
_ROOT: Final = "root"
_TOKEN: Final = re.compile(
    r"""(?P<blank>[ \t\r]+|\#[^\n]*)
      | (?P<line>\n+)
      | (?P<name>[A-Za-z0-9_-]+)
      | (?P<defines>::=)
      | (?P<literal>"(?:[^"\\]|\\.)*")
      | (?P<class>\[\^?(?:[^\]\\]|\\.)*\])
      | (?P<repeat>[*+?]|\{[ \t]*[0-9]{1,6}[ \t]*(?:,[ \t]*(?:[0-9]{1,6}[ \t]*)?)?\})
      | (?P<mark>[|().])
    """,
    re.VERBOSE | re.DOTALL,
)
"""A line end in a literal stands for itself: whoever writes a grammar in a string of a program has one where
a backslash and an n were meant.
"""
_CHARACTER: Final = re.compile(
    r"""\\(?:x(?P<x>[0-9a-fA-F]{2})|u(?P<u>[0-9a-fA-F]{4})|U(?P<U>[0-9a-fA-F]{8})|(?P<plain>[nrt\\"\[\]^-]))
      | (?P<itself>[^\\])""",
    re.VERBOSE | re.DOTALL,
)
_PLAIN: Final = {"n": "\n", "r": "\r", "t": "\t"}


class GbnfError(ValueError):
    """The text is not a GBNF grammar; the message says where and why."""


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


def _tokens(source: str) -> list[_Token]:
    """The tokens that matter; a last one of the kind "end" closes them."""
    tokens: list[_Token] = []
    place, line = 0, 1
    while place < len(source):
        found = _TOKEN.match(source, place)
        if found is None:
            raise GbnfError(f"line {line}: nothing of a grammar begins with {source[place : place + 10]!r}")
        kind = str(found.lastgroup)
        if kind != "blank":
            tokens.append(_Token(kind, found[0], line))
        if len(tokens) > MOST_TOKENS:
            raise GbnfError(f"the grammar is too large: more than {MOST_TOKENS} tokens")
        line += found[0].count("\n")
        place = found.end()
    return [*tokens, _Token("end", "", line)]


def _code_points(text: str, line: int) -> Iterator[tuple[int, bool]]:
    """(code point, whether it was written plainly) of the inside of a literal or class."""
    place = 0
    while place < len(text):
        found = _CHARACTER.match(text, place)
        if found is None:
            raise GbnfError(f"line {line}: an unknown escape in {text[:40]!r}")
        digits = found["x"] or found["u"] or found["U"]
        plain = found["plain"] or found["itself"]
        code = int(digits, 16) if digits else ord(_PLAIN.get(plain, plain) if found["plain"] else plain)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise GbnfError(f"line {line}: {found[0]} is no character")
        yield code, found["itself"] is not None
        place = found.end()


def _characters(ranges: list[tuple[int, int]], negated: bool = False) -> str:
    """The lexeme of one character in (or, negated, outside) the ranges."""
    inside = "".join(rf"\u{{{first:x}}}-\u{{{last:x}}}" for first, last in ranges)
    return f"/[{'^' if negated else ''}{inside}]/"


_ANY: Final = _characters([(0, 0x10FFFF)])


class Item(NamedTuple):
    """A part of a sequence. ``what`` is a rule's name, a literal's text, a class in Lark's notation or the
    choices of a group; ``times`` are its repetitions, the innermost first.
    """

    kind: str
    what: Any
    times: tuple[str, ...] = ()


Sequence = tuple[Item, ...]
Choices = tuple[Sequence, ...]


def _class(token: _Token) -> Item:
    negated = token.text.startswith("[^")
    codes = list(_code_points(token.text[2 if negated else 1 : -1], token.line))
    ranges: list[tuple[int, int]] = []
    place = 0
    while place < len(codes):
        joined = place + 2 < len(codes) and codes[place + 1] == (ord("-"), True)
        first, last = codes[place][0], codes[place + 2 if joined else place][0]
        place += 3 if joined else 1
        if last < first:
            raise GbnfError(f"line {token.line}: a range that ends before it begins")
        ranges.append((first, last))
    if not ranges:
        if negated:
            return Item("class", _ANY)
        raise GbnfError(f"line {token.line}: an empty character class")
    return Item("class", _characters(_joined(ranges, token.line), negated))


def _joined(ranges: list[tuple[int, int]], line: int) -> list[tuple[int, int]]:
    """The same characters in as few ranges as possible."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    if len(joined) > MOST_RANGES:
        raise GbnfError(f"line {line}: a character class of more than {MOST_RANGES} ranges")
    return joined


class _Parser:
    """One pass over the tokens of a grammar."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def rules(self) -> dict[str, Choices]:
        """The choices of every rule, in the order of the text."""
        rules: dict[str, Choices] = {}
        self._skip_lines()
        while self._tokens[self._at].kind != "end":
            name = self._take("name", "a rule without a name")
            self._take("defines", f"{name.text} is followed by no ::=")
            self._skip_lines()
            if name.text in rules:
                raise GbnfError(f"line {name.line}: the rule {name.text} is defined twice")
            rules[name.text] = self._choices()
            if self._tokens[self._at].kind not in ("line", "end"):
                raise self._fault("something unknown in a rule")
            self._skip_lines()
        return rules

    def _fault(self, words: str) -> GbnfError:
        return GbnfError(f"line {self._tokens[self._at].line}: {words}")

    def _take(self, kind: str, otherwise: str) -> _Token:
        token = self._tokens[self._at]
        if token.kind != kind:
            raise self._fault(otherwise)
        self._at += 1
        return token

    def _skip_lines(self) -> None:
        while self._tokens[self._at].kind == "line":
            self._at += 1

    def _bar(self) -> bool:
        """Whether another choice follows, maybe after blank lines."""
        here = self._at
        self._skip_lines()
        if self._tokens[self._at].text == "|":
            self._at += 1
            self._skip_lines()
            return True
        self._at = here
        return False

    def _choices(self) -> Choices:
        choices = [self._sequence()]
        while self._bar():
            choices.append(self._sequence())
        return tuple(choices)

    def _sequence(self) -> Sequence:
        items = []
        while (item := self._item()) is not None:
            items.append(item._replace(times=tuple(self._repetitions())))
            if len(items[-1].times) > DEEPEST_GROUP:
                raise self._fault("repetitions stacked too deeply")
            if self._depth:
                self._skip_lines()
        return tuple(items)

    def _item(self) -> Item | None:
        token = self._tokens[self._at]
        if token.kind not in ("name", "literal", "class") and token.text not in ("(", "."):
            return None
        self._at += 1
        if token.text == "(":
            return self._group()
        if token.kind == "name":
            return Item("rule", token.text)
        if token.kind == "literal":
            codes = _code_points(token.text[1:-1], token.line)
            return Item("literal", "".join(chr(code) for code, _ in codes))
        return _class(token) if token.kind == "class" else Item("class", _ANY)

    def _repetitions(self) -> Iterator[str]:
        """Those behind an item; inside a group they may stand on later lines."""
        while True:
            here = self._at
            if self._depth:
                self._skip_lines()
            repeat = self._tokens[self._at]
            if repeat.kind != "repeat":
                self._at = here
                return
            self._at += 1
            yield re.sub(r"[ \t]", "", repeat.text)

    def _group(self) -> Item:
        if self._depth == DEEPEST_GROUP:
            raise self._fault("groups nested too deeply")
        self._depth += 1
        self._skip_lines()
        inside = self._choices()
        self._depth -= 1
        self._skip_lines()
        if self._tokens[self._at].text != ")":
            raise self._fault("a group without end")
        self._at += 1
        return Item("group", inside)


def _used(choices: Choices) -> set[str]:
    """The rules that choices name."""
    names: set[str] = set()
    for item in chain.from_iterable(choices):
        if item.kind == "rule":
            names.add(item.what)
        elif item.kind == "group":
            names |= _used(item.what)
    return names


def _repeating(name: str, choices: Choices) -> Choices:
    """The choices of a rule without those that end in the rule itself: ``x ::= a x | b`` is ``a* b``.

    It holds whatever ``a`` and ``b`` are, even if they name the rule too.
    """
    if len(choices) == 1 and [(item.kind, item.times) for item in choices[0]] == [("group", ("?",))]:
        choices = (*choices[0][0].what, ())
    again = tuple(sequence[:-1] for sequence in choices if sequence[-1:] == (Item("rule", name),))
    rest = tuple(sequence for sequence in choices if sequence[-1:] != (Item("rule", name),))
    if not again or not rest:
        return choices
    return ((Item("group", again, ("*",)), Item("group", rest)),)


def _recursive(used: dict[str, set[str]]) -> bool:
    """Whether a rule names itself, directly or by way of others."""
    users: dict[str, list[str]] = {name: [] for name in used}
    for name, names in used.items():
        for other in names:
            users[other].append(name)
    waits = {name: len(names) for name, names in used.items()}
    free = [name for name, count in waits.items() if not count]
    for name in free:  # grows as those that waited only for it become free
        for user in users[name]:
            waits[user] -= 1
            if not waits[user]:
                free.append(user)
    return len(free) < len(used)


class _Writer:
    """Rules as Lark text: as terminals, whose names are in capitals and which may hold whole literals, or as
    rules with a lexeme for every character.
    """

    def __init__(self, rules: dict[str, Choices], terminals: bool) -> None:
        self._terminals = terminals
        self._names = {name: f"{'R' if terminals else 'r'}{number}" for number, name in enumerate(rules)}
        self._rules = rules

    def text(self) -> str:
        """The whole grammar."""
        lines = [f"{self._names[name]}: {self._choices(choices)}\n" for name, choices in self._rules.items()]
        return f"start: {self._names[_ROOT]}\n" + "".join(lines)

    def _choices(self, choices: Choices) -> str:
        return " | ".join(" ".join(map(self._item, sequence)) or '""' for sequence in choices)

    def _item(self, item: Item) -> str:
        if item.kind == "rule":
            text = self._names[item.what]
        elif item.kind == "group":
            text = f"({self._choices(item.what)})"
        elif item.kind == "literal":
            text = self._literal(item.what)
        else:
            text = item.what
        for times in item.times:
            text = '""' if re.fullmatch(r"\{0+(,0+)?\}", times) else f"({text}){times}"
        return text

    def _literal(self, text: str) -> str:
        if self._terminals:
            return json.dumps(text, ensure_ascii=False).replace("\x7f", r"\u007f")
        return " ".join(_characters([(ord(character), ord(character))]) for character in text) or '""'


def to_lark(source: str) -> str:
    """The Lark grammar of a GBNF grammar, whose language is that of the rule ``root``; raises GbnfError."""
    rules = {name: _repeating(name, choices) for name, choices in _Parser(_tokens(source)).rules().items()}
    used = {name: _used(choices) for name, choices in rules.items()}
    for name in sorted({_ROOT}.union(*used.values()) - rules.keys()):
        raise GbnfError(f"the rule {name} is not defined")
    return _Writer(rules, terminals=not _recursive(used)).text()
