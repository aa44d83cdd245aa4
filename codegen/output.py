"""Texts → files.

Guarantees: a file whose content is already right is not touched; ``generated/MANIFEST.json`` lists every
file made, with its SHA-256, and a file the manifest once listed disappears when no target makes it any
more; tables are injected into hand-written pages between ``<!-- generated:NAME -->`` and ``<!--
/generated:NAME -->`` and nothing else of a page changes; a check writes nothing and says as a unified diff
what would change. Either everything is written or nothing is.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from .findings import Findings, Location, Rule, alternatives

MANIFEST: Final = "generated/MANIFEST.json"

RULES: Final = tuple(
    Rule(f"output.{name}", purpose, advice)
    for name, purpose, advice in (
        ("stale", "Every output is what the spec makes of it.", "Run: python -m codegen generate"),
        ("stranger", "generated/ holds nothing that no target makes.", "Move or delete the file."),
        ("marker-unknown", "A marker in a page names a table that exists.", "Use one of the listed names."),
        ("marker-unclosed", "Every opening marker has its closing one.", "Add <!-- /generated:NAME -->."),
        ("table-unused", "Every table appears in some page.", "Put its two markers into a page of docs/."),
        ("manifest", "The manifest is readable.", "Restore generated/MANIFEST.json or delete it."),
    )
)

_MARKER = re.compile(r"^[ ]*<!-- (/?)generated:([a-zA-Z0-9_.-]+) -->[ ]*$", re.MULTILINE)

_IGNORED_DIRECTORIES: Final = frozenset({"__pycache__", ".mypy_cache", ".ruff_cache"})


@dataclass(frozen=True, slots=True)
class Products:
    """All a run makes: whole ``files`` by path and ``tables`` (Markdown by name) for injection into pages."""

    files: Mapping[str, str]
    tables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """What must happen on disk: texts to write and paths to remove, both relative to the project's root."""

    writes: Mapping[str, str]
    removals: tuple[str, ...]


def make_plan(root: Path, products: Products, findings: Findings) -> Plan:
    """Compare ``products`` with the disk under ``root``.

    Problems of pages and of the manifest are added to ``findings``; a plan made with errors must not be
    applied.
    """
    wanted = dict(products.files)
    wanted.update(_inject(root, products.tables, findings))
    pages = set(wanted) - set(products.files)
    wanted[MANIFEST] = manifest_text(products.files)
    writes = {path: text for path, text in sorted(wanted.items()) if _read(root / path) != text}
    listed = _manifest_paths(root, findings)
    stale = sorted(path for path in listed if path not in wanted and (root / path).is_file())
    _report_strangers(root, set(wanted) | set(stale) | pages, findings)
    return Plan(writes, tuple(stale))


def apply_plan(root: Path, plan: Plan) -> None:
    """Write and remove what ``plan`` says; directories left empty under ``generated`` go too."""
    for path, text in plan.writes.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = target.with_name(target.name + ".new")
        scratch.write_bytes(text.encode("utf-8"))
        scratch.replace(target)
    for path in plan.removals:
        target = root / path
        target.unlink(missing_ok=True)
        parent = target.parent
        while parent != root and parent.is_dir() and not any(parent.iterdir()):
            parent.rmdir()
            parent = parent.parent


def report_stale(root: Path, plan: Plan, findings: Findings) -> str:
    """Add a finding per path that is not current; return the unified diff from the disk to what it should
    be.
    """
    pieces = []
    for path, text in plan.writes.items():
        present = _read(root / path)
        verb = "does not exist" if present is None else "is not current"
        line = _first_difference(present or "", text)
        findings.error("output.stale", Location(path, line), f"the file {verb}")
        pieces.append(_diff(path, present, text))
    for path in plan.removals:
        findings.error("output.stale", Location(path), "no target makes this file any more")
        pieces.append(_diff(path, _read(root / path), None))
    return "".join(pieces)


def manifest_text(files: Mapping[str, str]) -> str:
    """The manifest of ``files``: path → SHA-256 of the UTF-8 text, sorted."""
    digests = {path: hashlib.sha256(files[path].encode("utf-8")).hexdigest() for path in sorted(files)}
    return json.dumps({"files": digests}, indent=2) + "\n"


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except (FileNotFoundError, NotADirectoryError):
        return None


def _manifest_paths(root: Path, findings: Findings) -> list[str]:
    text = _read(root / MANIFEST)
    if text is None:
        return []
    try:
        listed = json.loads(text)["files"]
        paths = [str(path) for path in listed]
    except (ValueError, KeyError, TypeError):
        findings.error("output.manifest", Location(MANIFEST), "the manifest cannot be read")
        return []
    outside = [path for path in paths if _escapes(path)]
    for path in outside:
        findings.error("output.manifest", Location(MANIFEST), f"the path {path!r} leads out of the project")
    return [path for path in paths if path not in outside]


def _escapes(path: str) -> bool:
    pure = PurePosixPath(path)
    return pure.is_absolute() or ".." in pure.parts


def _report_strangers(root: Path, known: set[str], findings: Findings) -> None:
    folder = root / "generated"
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(root)
        ignored = _IGNORED_DIRECTORIES.intersection(relative.parts) or path.name.endswith(".new")
        if path.is_file() and not ignored and relative.as_posix() not in known:
            findings.warning("output.stranger", Location(relative.as_posix()), "no target makes this file")


def _inject(root: Path, tables: Mapping[str, str], findings: Findings) -> dict[str, str]:
    """New text of every page that carries a marker."""
    pages: dict[str, str] = {}
    used: set[str] = set()
    for page in sorted((root / "docs").rglob("*.md")):
        path = page.relative_to(root).as_posix()
        text = page.read_text(encoding="utf-8")
        if "generated:" in text:
            pages[path] = _inject_page(path, text, tables, used, findings)
    for name in sorted(set(tables) - used):
        findings.warning("output.table-unused", Location("docs"), f"no page carries the table {name!r}")
    return pages


def _inject_page(path: str, text: str, tables: Mapping[str, str], used: set[str], findings: Findings) -> str:
    pieces: list[str] = []
    done = 0
    opened: re.Match[str] | None = None
    for marker in _MARKER.finditer(text):
        closing, name = bool(marker[1]), marker[2]
        place = Location(path, text.count("\n", 0, marker.start()) + 1)
        if closing and opened is not None and name == opened[2]:
            pieces.append(text[done : opened.end()] + "\n\n")
            pieces.append(tables.get(name, "").strip("\n") + "\n\n")
            done = marker.start()
            opened = None
        elif closing or opened is not None:
            what = "closes nothing" if closing else f"opens inside {opened[2]!r}" if opened else ""
            findings.error("output.marker-unclosed", place, f"the marker of {name!r} {what}")
        else:
            opened = marker
            used.add(name)
            if name not in tables:
                findings.error(
                    "output.marker-unknown",
                    place,
                    f"there is no generated table {name!r}",
                    hint=alternatives(name, tables, "tables"),
                )
    if opened is not None:
        place = Location(path, text.count("\n", 0, opened.start()) + 1)
        findings.error("output.marker-unclosed", place, f"the marker of {opened[2]!r} is never closed")
    pieces.append(text[done:])
    return "".join(pieces)


def _first_difference(present: str, wanted: str) -> int:
    old, new = present.split("\n"), wanted.split("\n")
    for number, (left, right) in enumerate(zip(old, new, strict=False), start=1):
        if left != right:
            return number
    return min(len(old), len(new))


def _diff(path: str, present: str | None, wanted: str | None) -> str:
    lines = difflib.unified_diff(
        (present or "").splitlines(keepends=True),
        (wanted or "").splitlines(keepends=True),
        "/dev/null" if present is None else f"a/{path}",
        "/dev/null" if wanted is None else f"b/{path}",
    )
    return "".join(
        line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines
    )
