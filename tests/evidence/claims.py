"""The claims of `claims.yaml`, and whether the tests they name exist."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
CLAIMS = Path(__file__).with_name("claims.yaml")


@dataclass(frozen=True)
class Claim:
    """A sentence, and the tests that would fail if it were wrong."""

    text: str
    tests: tuple[str, ...]


def load(path: Path = CLAIMS) -> list[Claim]:
    """All claims in the order of the file."""
    entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    return [Claim(entry["claim"], tuple(entry.get("tests") or ())) for entry in entries]


def faults(claims: list[Claim]) -> list[str]:
    """Claims without tests, and named tests that do not exist."""
    found = [f"no test: {claim.text}" for claim in claims if not claim.tests]
    for test in sorted({test for claim in claims for test in claim.tests}):
        path, _, function = test.partition("::")
        place = ROOT / path
        files = [place] if place.is_file() else sorted(place.rglob("test_*.py")) if place.is_dir() else []
        if not files:
            found.append(f"no such file: {test}")
        elif function and f"def {function}(" not in files[0].read_text(encoding="utf-8"):
            found.append(f"no such test: {test}")
    return found


def file_of(case: Mapping[str, str]) -> str:
    """The file of a test case in a report; for a class made at run time the one its name says."""
    found = case.get("file", "")
    if found.startswith("tests/"):
        return found
    words = case.get("classname", "").split(".")
    paths = ("/".join(words[:length]) + ".py" for length in range(len(words), 0, -1))
    return next((path for path in paths if (ROOT / path).is_file()), found)


def belongs(node: str, test: str) -> bool:
    """Whether a test that ran (`tests/x.py::test_y[1]`) is one a claim names by file, folder or function."""
    path, _, function = test.partition("::")
    ran, _, name = node.partition("::")
    if function:
        return ran == path and name.partition("[")[0] == function
    return ran == path or ran.startswith(path + "/")


def command(tests: list[str], report: Path) -> list[str]:
    """pytest on the named tests on both cores, with a report to read."""
    return [
        *(sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadgroup", "-p", "no:cacheprovider"),
        *("-o", "junit_family=xunit1", f"--junitxml={report}", *tests),
    ]


def commit() -> str:
    """The commit the working tree stands on, with `+` when tracked files differ from it."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout.strip()

    return git("rev-parse", "--short", "HEAD") + ("+" if git("status", "--porcelain", "-uno") else "")
