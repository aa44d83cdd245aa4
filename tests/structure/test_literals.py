"""What the spec promises is not typed again in hand-written code: error codes, variables, markers of chats.

Limits are left out: most are round numbers that other things have too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from generated import errors, launch, markup
from generated.settings import SETTINGS

from .test_architecture import ROOT, sources

CODES = {
    *(code.value for code in errors.WireCode),
    *(name for kind in errors.KINDS.values() for name in (kind.name, kind.code) if name),
}
"""Of the wire and of the API. Forbidden as whole strings: some are everyday words."""

VARIABLES = {
    *(setting.env for setting in SETTINGS.values() if setting.env),
    *(name for constant, name in vars(launch).items() if constant.isupper() and isinstance(name, str)),
}
"""Of the gateway and of the engine's launch. Forbidden as words of any string."""

MARKERS = {text for markers in markup.MARKUP.values() for text in markers.values()}
"""Of all templates. Forbidden as parts of any string."""

MARKED = {
    "engine/nano/documents.py": "what the embedded model is trained on, spelled as it reads it",
    "engine/nano/examination.py": "the same for what it is examined with",
}
"""Module -> why it may spell markers."""

TYPED = {
    ("server/scheduler.py", name): "a state of a ticket; its value goes nowhere, the error is errors.NAME"
    for name in ("queue_full", "queue_timeout", "engine_unavailable", "shutting_down")
}
"""(file, name) -> why it may stand there."""


def strings(path: Path) -> Iterator[str]:
    """Every string and every bytes of a module, also the parts of f-strings, but no docstring."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in alone:
            if isinstance(node.value, str):
                yield node.value
            elif isinstance(node.value, bytes):
                yield node.value.decode("latin-1")


def promised(text: str) -> set[str]:
    """The promised names that a string spells."""
    return ({text} & CODES) | (set(re.findall(r"[A-Z][A-Z_]+", text)) & VARIABLES)


def test_what_is_looked_for_is_there():
    assert len(CODES) > 30 and len(VARIABLES) > 20
    assert promised("SLOT_BUSY") == promised("b SLOT_BUSY") | {"SLOT_BUSY"} == {"SLOT_BUSY"}
    assert promised("queue_full") and promised("set COLI_API_KEY=1") and promised("KV_SLOTS")


@pytest.mark.parametrize("room", ["server", "engine"])
def test_error_codes_and_variables_are_not_typed(room):
    typed = {
        (str(path.relative_to(ROOT)), name)
        for path in sources(room)
        for text in strings(path)
        for name in promised(text)
    }
    assert typed - set(TYPED) == set()


@pytest.mark.parametrize("room", ["server", "engine"])
def test_markers_are_not_typed(room):
    typed = {
        str(path.relative_to(ROOT))
        for path in sources(room)
        if any(marker in text for text in strings(path) for marker in MARKERS)
    }
    assert typed == {path for path in MARKED if path.startswith(f"{room}/")}


def test_no_exception_is_left_over():
    for (file, name), _ in TYPED.items():
        assert any(name in promised(text) for text in strings(ROOT / file)), (file, name)
