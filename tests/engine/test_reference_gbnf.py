"""GBNF in the reference engine: exactly the language, whatever lexer stands below; faults that say where."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.reference.gbnf import GbnfError, to_lark
from engine.reference.grammar import GrammarCompiler, GrammarError

END = 256
COMPILER = GrammarCompiler(
    [*(bytes([byte]) for byte in range(256)), b"<end>"],
    frozenset(),
    frozenset({END}),
    lambda text: [*text.encode()],
)
"""Every byte is a token."""


def allows(grammar: str) -> Callable[[str], bool]:
    """Whether a text is in the language of a grammar, asked byte by byte."""

    def asked(text: str) -> bool:
        constraint = COMPILER.compile(grammar.encode())
        for place, token in enumerate(text.encode(), 1):
            if not constraint.allowed()[token]:
                return False
            if constraint.accept(token):  # nothing may follow
                return place == len(text.encode())
        return bool(constraint.allowed()[END])

    return asked


@pytest.mark.parametrize(
    ("grammar", "inside", "outside"),
    [
        ('root ::= ("a" | "ab") "b"', ["ab", "abb"], ["a", "b", "abbb"]),
        ('root ::= "\\u00e9\\U0001F600\\x41\\t\\"\\\\" "/"', ['é😀A\t"\\/'], ["é", "e"]),
        ('root ::= ("x"?)* "."', [".", "xxx."], ["x", "..x"]),
        ("root ::= [a-c-]+ [^\\]x]", ["a-é", "--/"], ["ax", "a]", "dd"]),
        ("root ::= [\\u00e0-\\u00ff] . [^]", ["é\nz", "ÿ😀\0"], ["e\nz"]),
        ('root ::= "a"{2} "b"{0} "c"{0,0} "d"{ 1 , } "e"{0,2}', ["aad", "aaddee"], ["aa", "aabd", "aadeee"]),
        ('root ::= "" | "q"', ["", "q"], ["qq"]),
        ('root ::= a-b | a_b\na-b ::= "1"\na_b ::= "2"', ["1", "2"], ["12"]),
        ('root ::= # why\n\n  "a" |\n  ( "b"\n  "c" # here\n  | "d" )\n  | "e"\n', ["a", "bc", "d"], ["b"]),
        ('root ::= "a"?* ( "b" * "c"\n{2}\n)\t+ "d"{2}{2}', ["ccdddd", "abccbbccdddd"], ["ccddd", "acdddd"]),
        ('root ::= "a" root root | "b" | "(" root ")" root', ["b", "abb", "aabbb", "(ab(b)b)b"], ["ab"]),
        ("root ::= [\\x7f] \"\\x7f\" root?", ["\x7f\x7f"], ["\x7f"]),
        ('root ::= "\x7f\\x7f\u2028"', ["\x7f\x7f\u2028"], ["\x7f"]),
        ('root ::= "(\n" root ")" | "x\n"', ["x\n", "(\nx\n)"], ["x", "(x)"]),
        ("root ::= [c-fa-db-e\\u0062] [^a-cb-e]", ["af", "fg", "c "], ["gf", "ad"]),
        ('root ::= "(" root? ")" | root "!"', ["()", "(())!", "(()!!)"], ["(", "!", ")("]),
        ('root ::= x | "ab" root\nx ::= "a" x "b" | "a" | "ab"', ["a", "aab", "aabb", "aba"], ["b", "abb"]),
    ],
)  # fmt: skip
def test_language(grammar: str, inside: list[str], outside: list[str]) -> None:
    accepted = allows(grammar)
    assert [text for text in inside if not accepted(text)] == []
    assert [text for text in outside if accepted(text)] == []


ITEMS = st.recursive(
    st.sampled_from(['"a"', '"ab"', '"ba"', "[ab]", "[^a]", '"b"', '""']),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(" ".join),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]} | {pair[1]})"),
        st.tuples(inner, st.sampled_from(["?", "{2}", "{0,2}", "+"])).map(
            lambda pair: f"({pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=6,
)
TEXTS = ["".join(text) for length in range(4) for text in product("ab", repeat=length)]


def as_expression(item: str) -> str:
    """The same language over the letters a and b as an expression of `re`."""
    return re.sub(r'[ "]', "", item).replace("[^a]", "b")


@given(ITEMS, ITEMS, st.sampled_from(["plain", "recursive", "again", "maybe again"]))
def test_any_language_in_every_form(item: str, other: str, form: str) -> None:
    """Each text of up to three letters is allowed exactly if the same regular expression matches it."""
    grammar, expression = {
        "plain": ("root ::= part\npart ::= {0}", "{0}"),
        "recursive": ('root ::= {0} | "c" root "c"', "{0}"),
        "again": ("root ::= {0} root | {1}", "({0})*({1})"),
        "maybe again": ("root ::= {1} again\nagain ::= ({0} again)?", "({1})({0})*"),
    }[form]
    accepted = allows(grammar.format(item, other))
    matches = re.compile(expression.format(as_expression(item), as_expression(other)))
    for text in TEXTS:
        assert accepted(text) == bool(matches.fullmatch(text)), text


@pytest.mark.parametrize(
    ("grammar", "words"),
    [
        ("root ::= (", "line 1: a group without end"),
        ("root ::= (\n(\n)", "line 3: a group without end"),
        ("root ::= missing", "the rule missing is not defined"),
        ('start ::= "a"', "the rule root is not defined"),
        ('root ::= "a"\nroot ::= "b"', "line 2: the rule root is defined twice"),
        ("root ::= a\na ::= [z-a]", "line 2: a range that ends before it begins"),
        ('root ::= "\\q"', "line 1: an unknown escape"),
        ('root ::= "\\ud800"', "line 1: \\ud800 is no character"),
        ('root ::= "\\U00110000"', "line 1: \\U00110000 is no character"),
        ('root ::= "a', "line 1: nothing of a grammar begins with '\"a'"),
        ('root ::= "a"{x}', "line 1: nothing of a grammar begins with '{x}'"),
        ("root ::= []", "line 1: an empty character class"),
        ('root ::= "a"' + "?" * 65, "line 1: repetitions stacked too deeply"),
        ("root ::= " + "(" * 65, "line 1: groups nested too deeply"),
        ('root ::= "a" )', "line 1: something unknown in a rule"),
        ('root ::= "a"\n*', "line 2: a rule without a name"),
        ("root ::= " + '"a" ' * 40_000, "the grammar is too large: more than 40000 tokens"),
        ("root ::= [" + "".join(map(chr, range(0x4E00, 0x9FFF, 2))) + "]", "more than 4096 ranges"),
        ('root ::= "a"\n::=', "line 2: a rule without a name"),
        ('root ::= "a"\nb', "line 2: b is followed by no ::="),
    ],
)
def test_faults(grammar: str, words: str) -> None:
    with pytest.raises(GbnfError, match=re.escape(words)):
        to_lark(grammar)


@given(st.lists(st.sampled_from([*'()[]{}|*+?.^-\\"#0123,ab\n ', "::=", "root ::= ", "\\u00e9", "é", '"a"'])))
def test_any_text_is_a_grammar_or_refused(pieces: list[str]) -> None:
    """Nothing but the one exception comes out, whatever a client hands in."""
    text = "root ::= " + "".join(pieces)
    try:
        assert to_lark(text).startswith("start: ")
        COMPILER.compile(text.encode()).allowed()
    except (GbnfError, GrammarError) as error:
        assert str(error)


@pytest.mark.parametrize("grammar", ["root ::= root", '{"$ref":"#"}', "root ::= a\na ::= root | a a"])
def test_a_language_without_text_is_refused_before_a_token_is_chosen(grammar: str) -> None:
    with pytest.raises(GrammarError, match="the grammar allows no text"):
        COMPILER.compile(grammar.encode())


def test_an_object_of_a_thousand_optional_properties_is_taken() -> None:
    properties = ",".join(f'"p{number}":{{"const":{number}}}' for number in range(1000))
    accepted = allows(f'{{"type":"object","properties":{{{properties}}},"additionalProperties":false}}')
    assert accepted('{"p7":7,"p999":999}')
    assert not accepted('{"p7":7,"p7":7}')


def test_long_texts_are_no_trouble() -> None:
    """Shapes that would take hours if a token looked back or ahead over the whole text again and again."""
    long = "a" * 30_000
    lines = "\n" * (1 << 20)
    for inside in ("[" + "一丁" * 400_000 + "]", f"[{long}]", f'"{long}"', lines + '"a"', f'# {long}\n"a"'):
        assert to_lark(f"root ::= {inside}").startswith("start: R0\nR0: ")
    for mark in '"[({':
        with pytest.raises(GbnfError):
            to_lark("root ::= " + mark * (1 << 20))
    chain = "".join(f"a{number} ::= a{number + 1}\n" for number in range(9000))
    assert to_lark(lines + chain + "root ::= a0\na9000 ::= [x]\n").count("\n") == 9003
