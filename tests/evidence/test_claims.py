"""The table of claims holds together; `invoke evidence` runs what it names."""

from __future__ import annotations

from pathlib import Path

from .claims import ROOT, Claim, belongs, faults, load


def test_every_claim_names_tests_that_exist():
    assert faults(load()) == []


def test_claims_without_tests_and_tests_that_do_not_exist_are_told():
    here = Path(__file__).relative_to(ROOT).as_posix()
    claims = [
        Claim("bare", ()),
        Claim("gone", ("tests/nowhere.py", f"{here}::test_never_written", "tests/evidence")),
    ]
    assert faults(claims) == [
        "no test: bare",
        f"no such test: {here}::test_never_written",
        "no such file: tests/nowhere.py",
    ]


def test_a_name_stands_for_a_folder_a_file_or_a_function():
    assert belongs("tests/a/test_b.py::test_c[x-1]", "tests/a/test_b.py::test_c")
    assert belongs("tests/a/test_b.py::test_c", "tests/a")
    assert belongs("tests/a/test_b.py::test_c", "tests/a/test_b.py")
    assert not belongs("tests/a/test_b.py::test_cd", "tests/a/test_b.py::test_c")
    assert not belongs("tests/ab/test_b.py::test_c", "tests/a")


def test_the_page_has_the_claims_there_are_and_no_others():
    """`invoke evidence --only claims` writes them anew."""
    rows = [
        line.split(" | ")
        for line in (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and "` | " in line and line.endswith(" |") and line.count(" | ") == 3
    ]
    shown = [(row[0].removeprefix("|").strip(), "tests/" + row[1].strip("`")) for row in rows]
    there = [(claim.text if not at else "", test) for claim in load() for at, test in enumerate(claim.tests)]
    assert shown == there
