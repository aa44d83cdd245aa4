"""Whether anything that `generate` reads or writes has changed since it last found everything current.

Guarantees: the stamp covers the spec, every file of the compiler, the versions of its libraries, every page
of docs and every output, so an equal stamp means that a full run would change nothing. It lives in the
ignored folder ``build`` and is only a short cut: without it, or with ``--root`` elsewhere, the full run
happens. ``check`` never uses it.
"""

from __future__ import annotations

import hashlib
import json
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from .output import MANIFEST

STAMP: Final = "build/codegen.stamp"

_LIBRARIES: Final = ("jinja2", "markupsafe", "lark", "pyyaml")


def inputs(root: Path, spec: str) -> str:
    """SHA-256 over everything a run starts from: spec, compiler, libraries."""
    total = hashlib.sha256(sys.version.encode())
    site = Path(sysconfig.get_path("purelib"))
    for folder in sorted(site.glob("*.dist-info")):
        if folder.name.lower().startswith(_LIBRARIES):
            total.update(folder.name.encode())
    _add_files(total, {root / spec, *_compiler()})
    return total.hexdigest()


def digest(root: Path, spec: str) -> str:
    """SHA-256 over the inputs and everything a run makes."""
    total = hashlib.sha256(inputs(root, spec).encode())
    _add_files(total, {*_pages(root), *_outputs(root)})
    return total.hexdigest()


def _add_files(total: hashlib._Hash, paths: set[Path]) -> None:
    for path in sorted(paths):
        total.update(f"\n{path.as_posix()}\n".encode())
        if path.is_file():
            total.update(hashlib.sha256(path.read_bytes()).digest())


def is_current(root: Path, spec: str) -> bool:
    """Whether the stamp of the last run that left everything current still holds."""
    try:
        return (root / STAMP).read_text(encoding="ascii") == digest(root, spec)
    except (OSError, ValueError):
        return False


def renew(root: Path, spec: str, started_with: str) -> None:
    """Remember that everything is current now, unless the inputs changed while the run was on."""
    if inputs(root, spec) == started_with:
        path = root / STAMP
        path.parent.mkdir(exist_ok=True)
        path.write_text(digest(root, spec), encoding="ascii")


def outputs_listed(root: Path) -> list[str]:
    """Paths of the manifest; empty when there is none."""
    try:
        return list(json.loads((root / MANIFEST).read_bytes())["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _compiler() -> Iterator[Path]:
    for path in Path(__file__).parent.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path


def _pages(root: Path) -> Iterator[Path]:
    yield from (root / "docs").rglob("*.md")


def _outputs(root: Path) -> Iterator[Path]:
    yield root / MANIFEST
    yield from (root / path for path in outputs_listed(root))
    for path in (root / "generated").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path
