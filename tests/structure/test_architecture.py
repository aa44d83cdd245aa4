"""The structure shows the architecture: arrows as drawn, one subject a module, functions of a screen."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("codegen", "generated", "engine", "server")

ARROWS = {
    "codegen": {"codegen"},
    "generated": {"generated"},
    "engine": {"engine", "generated"},
    "server": {"server", "generated"},
}
"""Rooms a room may import from."""

BEYOND_STDLIB = {"generated/testing": {"hypothesis"}}
"""What generated code may use beside the standard library."""

LONGEST_MODULE = 500
LONGEST_FUNCTION = 60


def sources(*rooms: str) -> list[Path]:
    return sorted(
        path for room in rooms for path in (ROOT / room).rglob("*.py") if "__pycache__" not in path.parts
    )


def imported_modules(path: Path) -> set[str]:
    """Absolute names of all modules that ``path`` imports, wherever in the file it does so."""
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            found.add(".".join([*base, *([node.module] if node.module else [])]))
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_imports_only_along_the_drawn_arrows(room):
    for path in sources(room):
        rooms = {name.split(".")[0] for name in imported_modules(path)} & set(ROOMS)
        assert rooms <= ARROWS[room], f"{path.relative_to(ROOT)} imports {rooms - ARROWS[room]}"


def test_generated_needs_only_the_standard_library():
    for path in sources("generated"):
        tops = {name.split(".")[0] for name in imported_modules(path)}
        extra = BEYOND_STDLIB.get(str(path.parent.relative_to(ROOT)), set())
        assert tops - set(sys.stdlib_module_names) - {"generated", ""} <= extra, path.relative_to(ROOT)


def test_importing_all_of_generated_needs_only_the_standard_library():
    modules = [path.stem for path in (ROOT / "generated").glob("*.py") if path.stem != "__init__"]
    program = f"import sys\nfrom generated import {', '.join(modules)}\nprint(*sorted(sys.modules))"
    command = [sys.executable, "-S", "-c", program]
    loaded = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert {name.split(".")[0] for name in loaded} <= set(sys.stdlib_module_names) | {"generated", "__main__"}


def test_the_gateway_never_imports_numpy_or_torch():
    program = "import sys, server.cli\nprint(*sorted(sys.modules))"
    command = [sys.executable, "-c", program]
    loaded = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "torch", "tokenizers"} & set(loaded)


def test_run_time_code_never_imports_torch():
    for path in sources("codegen", "generated", "server", "engine"):
        if "torch" in {name.split(".")[0] for name in imported_modules(path)}:
            assert path.is_relative_to(ROOT / "engine" / "nano"), path.relative_to(ROOT)


def test_no_module_is_longer_than_its_subject():
    too_long = {
        str(path.relative_to(ROOT)): lines
        for path in sources("codegen", "engine", "server")
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > LONGEST_MODULE
    }
    assert too_long == {}


def test_every_function_fits_on_a_screen():
    too_long = {}
    for path in sources("codegen", "engine", "server"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > LONGEST_FUNCTION:
                    too_long[f"{path.relative_to(ROOT)}:{node.name}"] = lines
    assert too_long == {}


def test_every_module_says_what_it_is_for():
    silent = [
        str(path.relative_to(ROOT))
        for path in sources(*ROOMS)
        if path.read_text(encoding="utf-8").strip()
        and not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert silent == []


def test_top_level_is_as_drawn():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    if not tracked:
        pytest.skip("not a git checkout")
    tops = {line.split("/")[0] for line in tracked.splitlines()}
    drawn = {
        "spec",
        "codegen",
        "generated",
        "engine",
        "server",
        "tests",
        "docs",
        "tasks.py",
        "pyproject.toml",
    }
    usual = {"README.md", "LICENSE", "CHANGELOG.md", "Makefile", ".ci", ".gitignore"}
    assert tops <= drawn | usual
