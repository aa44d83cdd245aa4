"""Two fingerprints: base for what every peer must agree on, full for everything but prose."""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen.resolve import load_model

BASE = (Path(__file__).resolve().parent / "base.yaml").read_text(encoding="utf-8")


def fingerprints(folder: Path, *edits: tuple[str, str]) -> tuple[str, str]:
    text = BASE
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path = folder / "spec.yaml"
    path.write_text(text, encoding="utf-8")
    model = load_model(path)
    return model.fingerprint_base, model.fingerprint_full


@pytest.mark.parametrize(
    ("edit", "base_changes", "full_changes"),
    [
        (("doc: A question.", "doc: One question."), False, False),
        (("# The smallest spec", "# A comment, and so other places: \n# The smallest spec"), False, False),
        (("gives: {id: 1, score: 0.5}", "gives: {id: 1}"), False, False),
        (("keys: {top: {", "keys: {k: {type: top}, top: {"), False, True),
        (("layout: TELL <id> <score>", "layout: TELL <id> <score> [<top>]"), False, True),
        (("default: 80", "default: 81"), False, True),
        (("layout: TELL <id> <score>", "layout: TELL <id> <score> <top>"), True, True),
        (("id: {uint: 1..2^64-1", "id: {uint: 1..2^32-1"), True, True),
        (('sentinel: "READY\\n"', 'sentinel: "GO\\n"'), True, True),
    ],
)  # fmt: skip
def test_what_changes_which(
    tmp_path: Path, edit: tuple[str, str], base_changes: bool, full_changes: bool
) -> None:
    base, full = fingerprints(tmp_path)
    changed_base, changed_full = fingerprints(tmp_path, edit)
    assert (changed_base != base, changed_full != full) == (base_changes, full_changes)


def test_they_are_sha256_in_hexadecimal_and_differ(tmp_path: Path) -> None:
    base, full = fingerprints(tmp_path)
    assert len(base) == len(full) == 64
    assert int(base, 16) != int(full, 16)
