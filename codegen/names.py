"""The forms of a name: on the wire, in Python, in C, as a macro, in JSON.

Names in the spec are ``lower_snake`` (fields, limits, settings) or ``UPPER_SNAKE`` (message kinds, wire
errors). Guarantees: every form is a pure function of the name; two names clash when any of their *emitted*
forms are equal, so clashes are found on the mangled form and not on the spelling in the spec; a form that
would be a reserved word is reported, never escaped.
"""

from __future__ import annotations

import keyword
import re
from typing import Final

_WORD_BREAK = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])")

LOWER_SNAKE: Final = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*\Z")
UPPER_SNAKE: Final = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*\Z")

# fmt: off
C_WORDS: Final = frozenset(
    {
        "alignas", "alignof", "auto", "bool", "break", "case", "char", "const", "constexpr",
        "continue", "default", "do", "double", "else", "enum", "extern", "false", "float", "for",
        "goto", "if", "inline", "int", "long", "nullptr", "register", "restrict", "return", "short",
        "signed", "sizeof", "static", "static_assert", "struct", "switch", "thread_local", "true",
        "typedef", "typeof", "union", "unsigned", "void", "volatile", "while", "and", "and_eq",
        "asm", "bitand", "bitor", "catch", "char8_t", "char16_t", "char32_t", "class", "compl",
        "concept", "consteval", "constinit", "const_cast", "co_await", "co_return", "co_yield",
        "decltype", "delete", "dynamic_cast", "explicit", "export", "friend", "mutable",
        "namespace", "new", "noexcept", "not", "not_eq", "operator", "or", "or_eq", "private",
        "protected", "public", "reinterpret_cast", "requires", "static_cast", "template", "this",
        "throw", "try", "typeid", "typename", "using", "virtual", "wchar_t", "xor", "xor_eq",
    }
)
# fmt: on
"""Keywords of C (up to C23) and C++ (up to C++20): the header must compile as both."""

PYTHON_WORDS: Final = frozenset(keyword.kwlist) | {"self", "cls"}
"""Words that cannot be a field, argument or constant in the Python we emit."""


def words(name: str) -> list[str]:
    """The lower-case words of a name in any case: ``POST /v1/x`` → post, v1, x; ``BadFrame`` → bad, frame."""
    return [word.lower() for word in _WORD_BREAK.split(name) if word]


def snake(name: str) -> str:
    """``lower_snake``: Python attributes and functions, C functions and members, JSON keys."""
    return "_".join(words(name))


def macro(name: str) -> str:
    """``UPPER_SNAKE``: Python constants, C macros and enumerators."""
    return snake(name).upper()


def pascal(name: str) -> str:
    """``PascalCase``: Python classes, JSON Schema definitions."""
    return "".join(word[0].upper() + word[1:] for word in words(name))


def kebab(name: str) -> str:
    """``kebab-case``: command line flags, anchors in docs."""
    return "-".join(words(name))


def reserved_in(name: str) -> list[str]:
    """Languages in which an emitted form of ``name`` is a reserved word, sorted."""
    form = snake(name)
    languages = []
    if form in C_WORDS:
        languages.append("C or C++")
    if form in PYTHON_WORDS or pascal(name) in PYTHON_WORDS:
        languages.append("Python")
    return languages
