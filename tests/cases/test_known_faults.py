"""Every fault handed in ../shared/cases/bugs.md is named by a test that shows the right behaviour.

A test names an entry in its name (`test_b28_…`, `test_b15_and_b16_…`), in its docstring, or in that of its
module, where a range (B87 to B90) names all between.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HANDED = ROOT.parent / "shared" / "cases" / "bugs.md"

_NAMED = re.compile(r"(?<![A-Za-z0-9])b(\d{2,3})(?:(?:_to_| to |-)b(\d{2,3}))?(?![0-9])", re.IGNORECASE)


def entries(text: str) -> set[str]:
    """The entries a text names, ranges included."""
    found = _NAMED.findall(text.replace("test_", " "))
    return {f"B{number:02d}" for first, last in found for number in range(int(first), int(last or first) + 1)}


def claims(path: Path) -> Iterator[str]:
    """What the tests of a file say of themselves."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    yield ast.get_docstring(tree) or ""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name.lower().startswith("test"):
            yield node.name.replace("_and_", " and ")
            yield ast.get_docstring(node) or ""


def test_how_entries_are_named() -> None:
    assert entries("test_b15_and_b16_an_oversize_prompt") == {"B15", "B16"}
    assert entries("tools: B49, B87 to B89 and b07") == {"B07", "B49", "B87", "B88", "B89"}
    assert entries("b46 B51-B52; ab12, 0xb77, B5, b1234") == {"B46", "B51", "B52"}


@pytest.mark.skipif(not HANDED.exists(), reason="the handed faults of ../shared are not here")
def test_every_handed_fault_is_named_by_a_test() -> None:
    handed = set(re.findall(r"(?m)^\*\*(B\d+) ", HANDED.read_text(encoding="utf-8")))
    assert len(handed) > 50
    named = {
        entry
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if path != Path(__file__)
        for claim in claims(path)
        for entry in entries(claim)
    }
    assert sorted(handed - named) == []
