"""The located tree: every key and value has its place, scalars stay text, and nothing that is not YAML is a
traceback.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codegen.findings import Findings, Location, SpecRejected
from codegen.lint import lint_model
from codegen.resolve import load_model
from codegen.source import MAX_SOURCE_BYTES, Mapping, Scalar, Sequence, load_tree

ROOT = Path(__file__).resolve().parents[2]
SPEC = (ROOT / "spec/protocol.yaml").read_text(encoding="utf-8")


YAML_LINE_END = re.compile("\r\n|[\n\r\x85\u2028\u2029]")


def tree_of(text: str) -> Mapping:
    findings = Findings()
    tree = load_tree(text, "s.yaml", findings)
    assert list(findings) == []
    assert tree is not None
    return tree


def test_every_key_and_value_has_its_place() -> None:
    tree = tree_of("a: 1\nbéé:\n  - x\n  - {c: 'd e'}\n")
    second = tree.entries[1]
    assert second.key.location == Location("s.yaml", 2, 1)
    assert isinstance(second.value, Sequence)
    inner = second.value.items[1]
    assert isinstance(inner, Mapping)
    assert inner.entries[0].key.location == Location("s.yaml", 4, 6)
    assert inner.entries[0].value.location == Location("s.yaml", 4, 9)


@pytest.mark.parametrize(
    "word", ["NO", "on", "017", "12:30", "2024-01-02", "1.0.0", "~", "null", "1e3", "0x10"]
)
def test_scalars_stay_text(word: str) -> None:
    value = tree_of(f"key: {word}\n").get("key")
    assert value == Scalar(Location("s.yaml", 1, 6), word, True)


def test_quoted_text_is_not_plain_and_keeps_its_escapes() -> None:
    value = tree_of('key: "a\\x01\\n"\n').get("key")
    assert value == Scalar(Location("s.yaml", 1, 6), "a\x01\n", False)


def rejection(path: Path) -> list[tuple[str, str]]:
    with pytest.raises(SpecRejected) as caught:
        load_model(path, name="s.yaml")
    return [(finding.rule, str(finding.location)) for finding in caught.value.findings]


def test_a_file_of_100_megabytes_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "huge.yaml"
    with path.open("wb") as file:
        file.truncate(100 * 1024 * 1024)  # sparse: takes no room on the disk
    assert rejection(path) == [("source.size", "s.yaml:1:1")]


def test_a_file_just_over_the_bound_is_refused_and_one_at_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "long.yaml"
    path.write_bytes(b"#" * MAX_SOURCE_BYTES)
    assert rejection(path) == [("source.empty", "s.yaml:1:1")]
    path.write_bytes(b"#" * (MAX_SOURCE_BYTES + 1))
    assert rejection(path) == [("source.size", "s.yaml:1:1")]


def test_missing_file_and_directory_are_findings(tmp_path: Path) -> None:
    assert rejection(tmp_path / "none.yaml") == [("source.unreadable", "s.yaml:1:1")]
    assert rejection(tmp_path) == [("source.unreadable", "s.yaml:1:1")]


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_deep_nesting_is_a_finding(opening: str, tmp_path: Path) -> None:
    path = tmp_path / "deep.yaml"
    path.write_text("top: " + opening * 50_000 if opening != "- " else opening * 50_000, encoding="utf-8")
    rules = {rule for rule, _ in rejection(path)}
    assert rules <= {"source.depth", "source.syntax"}
    assert rules


@given(st.binary(max_size=200))
def test_any_bytes_are_findings_or_a_tree_never_a_traceback(raw: bytes) -> None:
    findings = Findings()
    text = raw.decode("utf-8", "replace")
    tree = load_tree(text, "s.yaml", findings)
    assert (tree is None) <= findings.has_errors
    for finding in findings:
        assert 1 <= finding.location.line <= len(YAML_LINE_END.findall(text)) + 2


LINES = SPEC.splitlines(keepends=True)


@settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    start=st.integers(0, len(LINES) - 1),
    count=st.integers(0, 6),
    insert=st.sampled_from(
        ["", "  odd: true\n", "[\n", "  - {a: b}\n", "frames: 3\n", "    layout: X <y> (<z>){q}\n"]
    ),
)
def test_a_mutilated_spec_is_accepted_or_rejected_never_a_traceback(
    tmp_path: Path, start: int, count: int, insert: str
) -> None:
    """Lines of the real spec removed and odd ones put in: a model, or findings with places in the file."""
    path = tmp_path / "mutilated.yaml"
    path.write_text("".join([*LINES[:start], insert, *LINES[start + count :]]), encoding="utf-8")
    findings = Findings()
    try:
        lint_model(load_model(path, name="s.yaml", findings=findings), findings)
    except SpecRejected as rejected:
        assert rejected.findings is findings
        assert findings.has_errors
    assert all(1 <= finding.location.line <= len(LINES) + 2 for finding in findings)
