"""Literals, comments and docstrings that templates emit mean what the view said, whatever it said."""

from __future__ import annotations

import ast
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from codegen import names
from codegen.render import c_string, comment, docstring, environment, markdown_cell, python_literal

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.binary()
    | st.floats(allow_nan=False, allow_infinity=False)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(VALUES)
def test_python_literal_is_read_back(value: object) -> None:
    assert ast.literal_eval(python_literal(value)) == value


@given(st.frozensets(st.text(max_size=4), max_size=4))
def test_sets_are_sorted(value: frozenset[str]) -> None:
    text = python_literal(value)
    assert eval(text, {"frozenset": frozenset}) == value
    assert text == python_literal(frozenset(sorted(value, reverse=True)))


def c_bytes(literal: str) -> bytes:
    """The bytes of a C string literal, read by the rules of C."""
    simple = {"n": 10, "r": 13, "t": 9, '"': 34, "\\": 92}
    found = bytearray()
    for octal, escape, plain in re.findall(r"\\([0-7]{1,3})|\\(.)|([^\\])", literal[1:-1], re.DOTALL):
        found.append(int(octal, 8) if octal else simple[escape] if escape else ord(plain))
    return bytes(found)


@given(st.binary(max_size=20))
def test_c_string_has_the_same_bytes_and_no_trigraph(raw: bytes) -> None:
    literal = c_string(raw)
    assert c_bytes(literal) == raw
    assert literal.isascii() and literal.isprintable()
    assert "?" not in literal


TEXT = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=300)


@given(TEXT, st.sampled_from([0, 4, 8]))
def test_docstring_parses_to_its_words(text: str, indent: int) -> None:
    code = "if x:\n" * bool(indent) + docstring(text, indent=indent or 0)
    body = ast.parse(code).body[0]
    statement = body.body[0] if isinstance(body, ast.If) else body
    assert isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    assert str(statement.value.value).split() == text.split()


def test_long_docstring_and_comment_keep_the_width() -> None:
    text = "word " * 100
    for line in (docstring(text, width=80) + "\n" + comment(text, width=80, indent=4)).splitlines():
        assert len(line) <= 80
    assert comment("a\n\nb", "//") == "// a\n//\n// b"


def test_cells_are_one_line() -> None:
    assert markdown_cell("a | b\n  c") == "a \\| b c"


def test_a_missing_name_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="'limit' is undefined"):
        environment().from_string("{{ limit }}").render()


@pytest.mark.parametrize(
    ("name", "snake", "macro", "pascal", "kebab"),
    [
        ("top_k", "top_k", "TOP_K", "TopK", "top-k"),
        ("BAD_REQUEST", "bad_request", "BAD_REQUEST", "BadRequest", "bad-request"),
        (
            "POST /v1/chat/completions",
            "post_v1_chat_completions",
            "POST_V1_CHAT_COMPLETIONS",
            "PostV1ChatCompletions",
            "post-v1-chat-completions",
        ),
        ("ChatChoice", "chat_choice", "CHAT_CHOICE", "ChatChoice", "chat-choice"),
    ],
)
def test_forms_of_a_name(name: str, snake: str, macro: str, pascal: str, kebab: str) -> None:
    assert (names.snake(name), names.macro(name), names.pascal(name), names.kebab(name)) == (
        snake,
        macro,
        pascal,
        kebab,
    )


def test_reserved_words_of_both_languages() -> None:
    assert names.reserved_in("class") == ["C or C++", "Python"]
    assert names.reserved_in("register") == ["C or C++"]
    assert names.reserved_in("lambda") == ["Python"]
    assert names.reserved_in("none") == ["Python"]
    assert names.reserved_in("payload") == []
