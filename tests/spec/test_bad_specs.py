"""One tiny bad spec per rule, with everything it must make the compiler say, character for character.

``bad/RULE.yaml`` (or ``bad/RULE--variant.yaml``) holds only the sections the rule is about; the sections it
lacks are appended from ``base.yaml``. A file that starts with ``# verbatim`` is used as it is.
``bad/….expected`` is the text report. After a deliberate change of a message: ``python
tests/spec/test_bad_specs.py --accept``, and read the diff.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
BASE = (HERE / "base.yaml").read_text(encoding="utf-8")
BAD = sorted((HERE / "bad").glob("*.yaml"))
NEEDS_NO_FILE = {"source.unreadable", "source.size"}
"""Rules about the file itself; test_source.py has them."""


def sections_of(text: str) -> dict[str, str]:
    """Top-level sections of a YAML text by name, comments before them dropped."""
    sections: dict[str, str] = {}
    name = ""
    for line in text.splitlines(keepends=True):
        if line[0].isalpha():
            name = line.partition(":")[0]
        if name:
            sections[name] = sections.get(name, "") + line
    return sections


def completed(raw: bytes) -> bytes:
    """A bad file with the sections it lacks appended."""
    if raw.startswith(b"# verbatim"):
        return raw
    present = sections_of(raw.decode("utf-8"))
    return raw + "".join(text for name, text in sections_of(BASE).items() if name not in present).encode()


def report(path: Path, scratch: Path) -> str:
    """Everything the compiler says about the completed ``path``, as text."""
    from codegen.findings import Findings, SpecRejected, render_text
    from codegen.lint import lint_model
    from codegen.resolve import load_model

    spec = scratch / path.name
    spec.write_bytes(completed(path.read_bytes()))
    findings = Findings()
    try:
        lint_model(load_model(spec, name=path.name, findings=findings), findings)
    except SpecRejected as rejected:
        assert rejected.findings is findings
    return render_text(findings)


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_bad_spec_says_exactly_what_is_expected(path: Path, tmp_path: Path) -> None:
    expected = path.with_suffix(".expected").read_text(encoding="utf-8")
    assert report(path, tmp_path) == expected
    if path.stem != "several-at-once":
        assert f"[{path.stem.partition('--')[0]}]" in expected


def test_base_is_free_of_findings(tmp_path: Path) -> None:
    assert report(HERE / "base.yaml", tmp_path) == ""


def test_every_rule_of_the_spec_has_a_bad_file() -> None:
    from codegen.catalogue import all_rules

    groups = ("target.", "output.", "ack.", "release.")
    rules = {rule.id for rule in all_rules() if not rule.id.startswith(groups)} - NEEDS_NO_FILE
    assert rules - {path.stem.partition("--")[0] for path in BAD} == set()


def test_findings_of_all_floors_come_together(tmp_path: Path) -> None:
    """A shape fault, two layout faults and a dangling reference: four findings, one run, sorted by place."""
    lines = report(HERE / "bad" / "several-at-once.yaml", tmp_path).splitlines()
    rules = [line.split("[")[1].split("]")[0] for line in lines if line.startswith("several-at-once")]
    assert rules == ["shape.value", "resolve.unknown-type", "layout.syntax", "resolve.unknown-reference"]


if __name__ == "__main__":
    import tempfile

    sys.path.insert(0, str(HERE.parents[1]))
    assert sys.argv[1:] == ["--accept"], __doc__
    with tempfile.TemporaryDirectory() as folder:
        for bad in BAD:
            bad.with_suffix(".expected").write_text(report(bad, Path(folder)), encoding="utf-8")
