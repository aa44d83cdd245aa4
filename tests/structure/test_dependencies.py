"""What is imported is declared, declared with a pinned major, and has a line in docs/dependencies.md."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

from .test_architecture import ROOMS, ROOT, imported_modules, sources

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DECLARED = {"": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}
"""Extra -> its requirements; those of the project itself under the empty name."""

OTHER_NAMES = {"yaml": "pyyaml", "railroad": "railroad-diagrams"}
"""Module -> package, where they differ by more than a hyphen."""

EXTRAS = {"codegen": ["build"], "generated/testing": ["dev"], "engine/nano": ["train"]}
"""Directory -> the extras its modules may need beside what the project itself needs."""

PAGE = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")


def package(requirement: str) -> str:
    """The package's name of a requirement, without extras and versions."""
    name = re.match(r"[\w.-]+", requirement)
    assert name is not None, requirement
    return name[0].lower()


def may_import(path: Path) -> set[str]:
    inside = path.relative_to(ROOT).as_posix()
    extras = [extra for place, names in EXTRAS.items() if inside.startswith(place + "/") for extra in names]
    return {package(requirement) for extra in ("", *extras) for requirement in DECLARED[extra]}


@pytest.mark.parametrize("room", ROOMS)
def test_what_is_imported_is_declared(room):
    own = {*sys.stdlib_module_names, *ROOMS, ""}
    for path in sources(room):
        modules = {name.split(".")[0] for name in imported_modules(path)} - own
        needed = {OTHER_NAMES.get(module, module.replace("_", "-")) for module in modules}
        assert needed <= may_import(path), f"{path.relative_to(ROOT)}: {needed - may_import(path)}"


@pytest.mark.parametrize("extra", DECLARED)
def test_every_requirement_has_a_bound_and_a_line_on_the_page(extra):
    named = re.findall(r"[\w.-]+", " ".join(re.findall(r"^\| ([^|]+) \|", PAGE, re.MULTILINE)))
    for requirement in DECLARED[extra]:
        assert re.search(r"<|==", requirement), requirement
        assert package(requirement) in named, requirement
