"""docs/contract.md knows every section of the contract that code and tests cite."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONTRACT = ROOT.parent / "shared" / "contract"
CITATION = re.compile(
    r"(?P<file>http|wire)\.md(?: §§?| sections? )(?P<sections>\d+(?:(?:\.\d+)?(?:, §?| and §?| to )\d+)*)"
)
CITING = ("codegen", "engine", "server", "tests")


def sections(file: str) -> dict[int, str]:
    """Number and subject of every row of a table of the page."""
    page = (ROOT / "docs" / "contract.md").read_text(encoding="utf-8")
    (table,) = re.findall(rf"^## {file}\.md\n\n(.*?)(?:\n\n|\Z)", page, re.MULTILINE | re.DOTALL)
    return {
        int(number): subject
        for number, subject in re.findall(r"^\| (\d+) \| ([^|]+) \|", table, re.MULTILINE)
    }


def cited() -> set[tuple[str, int]]:
    texts = [
        path.read_text(encoding="utf-8")
        for room in CITING
        for ending in ("*.py", "*.c", "*.h")
        for path in (ROOT / room).rglob(ending)
    ]
    return {
        (found["file"], int(number))
        for text in texts
        for found in CITATION.finditer(text)
        for number in re.findall(r"(?<!\.)\d+", found["sections"])
    }


def test_every_section_that_is_cited_has_a_row():
    found = cited()
    assert len(found) > 15
    assert {(file, number) for file, number in found if number not in sections(file)} == set()


@pytest.mark.parametrize("file", ["http", "wire"])
def test_rows_are_the_sections_of_the_contract(file):
    if not CONTRACT.is_dir():
        pytest.skip("the contract is not beside this checkout")
    headings = re.findall(
        r"^## (\d+)\. (.*)$", (CONTRACT / f"{file}.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    rows = sections(file)
    assert [int(number) for number, _ in headings] == list(rows)
    for number, heading in headings:
        assert heading.startswith(rows[int(number)]), heading
