"""Old, new and the expected verdicts, one file per compatibility rule.

A triple names a text of ``base.yaml`` (``old``) and what replaces it in the new spec (``new``); ``before``
edits both sides first, ``also`` the new side too, and the new spec has version 2.0.0 unless ``version``
says otherwise. Each line of ``expected`` is: rule, level, level for old writers / for old readers, item,
file:line:column. After a deliberate change: ``python tests/compat/test_rules.py --accept``, and read the
diff.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml

from codegen.changes import Snapshot, snapshot_of
from codegen.compare import compare
from codegen.resolve import load_model

HERE = Path(__file__).resolve().parent
BASE = (HERE / "base.yaml").read_text(encoding="utf-8")
TRIPLES = sorted(path for path in HERE.glob("*.yaml") if path.stem != "base")


def edited(text: str, edits: list[list[str]]) -> str:
    for old, new in edits:
        assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in the base"
        text = text.replace(old, new)
    return text


_OLD: dict[str, Snapshot] = {}
"""Snapshots of old specs by text: most triples start from the same one."""


def snapshot(text: str, name: str, scratch: Path) -> Snapshot:
    """The resolved spec ``text``, its places in a file called ``name``."""
    path = scratch / name
    path.write_text(text, encoding="utf-8")
    return snapshot_of(load_model(path, name=name))


def verdicts(path: Path, scratch: Path) -> list[str]:
    """Every change between the two specs of a triple, one line each."""
    triple = yaml.safe_load(path.read_text(encoding="utf-8"))
    before = edited(BASE, triple.get("before", []))
    version = ["version: 1.0.0", f"version: {triple.get('version', '2.0.0')}"]
    after = edited(before, [version, [triple["old"], triple["new"]], *triple.get("also", [])])
    if before not in _OLD:
        _OLD[before] = snapshot(before, "old.yaml", scratch)
    models = (_OLD[before], snapshot(after, "new.yaml", scratch))
    return [
        f"{change.rule} {verdict.level} {verdict.back}/{verdict.fwd} {change.item} {change.location}"
        for change in compare(*models)
        for verdict in [change.verdict]
    ]


@pytest.mark.parametrize("path", TRIPLES, ids=lambda path: path.stem)
def test_triple(path: Path, tmp_path: Path) -> None:
    expected = yaml.safe_load(path.read_text(encoding="utf-8"))["expected"]
    assert verdicts(path, tmp_path) == expected
    if path.stem != "nothing-changed":
        assert path.stem.partition("--")[0] in [line.split()[0] for line in expected]


def test_every_rule_has_a_triple_or_says_why_not() -> None:
    from codegen.compat import COMPAT_RULES

    tried = {path.stem.partition("--")[0] for path in TRIPLES}
    assert {rule.id for rule in COMPAT_RULES.values() if not rule.dormant} - tried == set()
    assert {rule.id for rule in COMPAT_RULES.values() if rule.dormant} & tried == set()


def accept() -> None:
    import tempfile

    for path in TRIPLES:
        with tempfile.TemporaryDirectory() as folder:
            lines = verdicts(path, Path(folder))
        head = path.read_text(encoding="utf-8").partition("expected:")[0]
        body = "".join(f"\n  - {line}" for line in lines) or " []"
        path.write_text(f"{head}expected:{body}\n", encoding="utf-8")


if __name__ == "__main__":
    assert sys.argv[1:] == ["--accept"], __doc__
    accept()
