"""GBNF, the grammar notation of llama.cpp, as a Lark grammar for llguidance.

A lexer takes the longest lexeme it can: were the literals of ``("a" | "ab") "b"`` lexemes, ``ab`` would not
be allowed. So a grammar without recursion becomes one single lexeme, and in any other every character is one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

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
      | (?P<literal>"(?:[^"\\\n]|\\.)*")
      | (?P<class>\[\^?(?:[^\]\\]|\\.)*\])
      | (?P<repeat>[*+?]|\{[ \t]*[0-9]{1,6}[ \t]*(?:,[ \t]*(?:[0-9]{1,6}[ \t]*)?)?\})
      | (?P<mark>[|().])
    """,
    re.VERBOSE | re.DOTALL,
)
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


def _literal(token: _Token, whole: bool) -> str:
    codes = [code for code, _ in _code_points(token.text[1:-1], token.line)]
    if whole:
        return json.dumps("".join(map(chr, codes)), ensure_ascii=False).replace("\x7f", r"\u007f")
    return " ".join(_characters([(code, code)]) for code in codes) or '""'


def _class(token: _Token) -> str:
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
            return _ANY
        raise GbnfError(f"line {token.line}: an empty character class")
    return _characters(_joined(ranges, token.line), negated)


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
    """One pass over the tokens. Rules become terminals of Lark, whose names are in capitals, or rules."""

    def __init__(self, tokens: list[_Token], terminals: bool) -> None:
        self._tokens = tokens
        self._at = 0
        self._terminals = terminals
        self._numbers: dict[str, int] = {}
        self._rule = ""
        self._depth = 0
        self.used: dict[str, set[str]] = {}
        """The rules that each rule names."""

    def grammar(self) -> str:
        """All rules as Lark text."""
        rules: dict[str, str] = {}
        self._skip_lines()
        while self._tokens[self._at].kind != "end":
            name = self._take("name", "a rule without a name")
            self._take("defines", f"{name.text} is followed by no ::=")
            self._skip_lines()
            if name.text in rules:
                raise GbnfError(f"line {name.line}: the rule {name.text} is defined twice")
            self._rule = name.text
            self.used[name.text] = set()
            rules[name.text] = self._choices()
            if self._tokens[self._at].kind not in ("line", "end"):
                raise self._fault("something unknown in a rule")
            self._skip_lines()
        for named in sorted({_ROOT}.union(*self.used.values()) - rules.keys()):
            raise GbnfError(f"the rule {named} is not defined")
        lines = [f"{self._name(name)}: {body}\n" for name, body in rules.items()]
        return f"start: {self._name(_ROOT)}\n" + "".join(lines)

    def _name(self, name: str) -> str:
        number = self._numbers.setdefault(name, len(self._numbers))
        return f"{'R' if self._terminals else 'r'}{number}"

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

    def _choices(self) -> str:
        choices = [self._sequence()]
        while self._bar():
            choices.append(self._sequence())
        return " | ".join(choices)

    def _sequence(self) -> str:
        items = []
        while (item := self._item()) is not None:
            items.append(item)
            if self._depth:
                self._skip_lines()
        return " ".join(items) or '""'

    def _item(self) -> str | None:
        token = self._tokens[self._at]
        if token.kind not in ("name", "literal", "class") and token.text not in ("(", "."):
            return None
        self._at += 1
        if token.text == "(":
            item = self._group()
        elif token.kind == "name":
            self.used[self._rule].add(token.text)
            item = self._name(token.text)
        elif token.kind == "literal":
            item = _literal(token, self._terminals)
        else:
            item = _class(token) if token.kind == "class" else _ANY
        return self._repeated(item)

    def _repeated(self, item: str) -> str:
        """The item with all its repetitions, which inside a group may stand on later lines."""
        while True:
            here = self._at
            if self._depth:
                self._skip_lines()
            repeat = self._tokens[self._at]
            if repeat.kind != "repeat":
                self._at = here
                return item
            self._at += 1
            times = re.sub(r"[ \t]", "", repeat.text)
            item = '""' if re.fullmatch(r"\{0+(,0+)?\}", times) else f"({item}){times}"

    def _group(self) -> str:
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
        return f"({inside})"


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


def to_lark(source: str) -> str:
    """The Lark grammar of a GBNF grammar, whose language is that of the rule ``root``; raises GbnfError."""
    tokens = _tokens(source)
    parser = _Parser(tokens, terminals=True)
    grammar = parser.grammar()
    return _Parser(tokens, terminals=False).grammar() if _recursive(parser.used) else grammar
