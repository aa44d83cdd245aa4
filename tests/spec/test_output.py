"""Writing: only what changed, nothing stale left, tables between markers, a check that writes nothing."""

from __future__ import annotations

from pathlib import Path

from codegen.findings import Findings
from codegen.output import MANIFEST, Products, apply_plan, make_plan, report_stale

PAGE = """# Page

<!-- generated:fields -->
old
<!-- /generated:fields -->

By hand.
"""


def generate(root: Path, files: dict[str, str], tables: dict[str, str] | None = None) -> list[str]:
    findings = Findings()
    plan = make_plan(root, Products(files, tables or {}), findings)
    assert not findings.has_errors, list(findings)
    apply_plan(root, plan)
    return [*plan.writes, *(f"-{path}" for path in plan.removals)]


def problems(root: Path, tables: dict[str, str]) -> list[tuple[str, str]]:
    findings = Findings()
    make_plan(root, Products({}, tables), findings)
    return [(finding.rule, str(finding.location)) for finding in findings]


def test_current_files_are_not_touched(tmp_path: Path) -> None:
    assert generate(tmp_path, {"generated/a.py": "x = 1\n"}) == [MANIFEST, "generated/a.py"]
    before = (tmp_path / "generated/a.py").stat().st_mtime_ns
    assert generate(tmp_path, {"generated/a.py": "x = 1\n"}) == []
    assert (tmp_path / "generated/a.py").stat().st_mtime_ns == before


def test_a_file_no_target_makes_any_more_disappears_with_its_empty_folder(tmp_path: Path) -> None:
    generate(tmp_path, {"generated/a.py": "", "generated/c/b.h": "", "docs/x.svg": ""})
    assert generate(tmp_path, {"generated/a.py": ""}) == [MANIFEST, "-docs/x.svg", "-generated/c/b.h"]
    assert not (tmp_path / "generated/c").exists()
    assert not (tmp_path / "docs").exists()
    assert (tmp_path / "generated/a.py").exists()


def test_a_file_the_manifest_never_listed_stays_and_is_told(tmp_path: Path) -> None:
    generate(tmp_path, {"generated/a.py": ""})
    (tmp_path / "generated/mine.py").write_text("")
    findings = Findings()
    plan = make_plan(tmp_path, Products({"generated/a.py": ""}), findings)
    assert (dict(plan.writes), plan.removals) == ({}, ())
    assert [(f.rule, f.location.file) for f in findings] == [("output.stranger", "generated/mine.py")]


def test_a_manifest_that_leads_out_of_the_project_removes_nothing(tmp_path: Path) -> None:
    root = tmp_path / "project"
    (root / "generated").mkdir(parents=True)
    (tmp_path / "precious").write_text("")
    (root / MANIFEST).write_text('{"files": {"../precious": "0", "/etc/hostname": "0"}}')
    findings = Findings()
    plan = make_plan(root, Products({}), findings)
    assert plan.removals == ()
    assert [finding.rule for finding in findings] == ["output.manifest", "output.manifest"]


def test_a_broken_manifest_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "generated").mkdir()
    (tmp_path / MANIFEST).write_text("{")
    assert problems(tmp_path, {}) == [("output.manifest", f"{MANIFEST}:1:1")]


def test_tables_go_between_their_markers_and_nothing_else_changes(tmp_path: Path) -> None:
    page = tmp_path / "docs/page.md"
    page.parent.mkdir()
    page.write_text(PAGE)
    assert generate(tmp_path, {}, {"fields": "| a |\n|---|\n"}) == ["docs/page.md", MANIFEST]
    assert page.read_text() == PAGE.replace("old\n", "\n| a |\n|---|\n\n")
    assert generate(tmp_path, {}, {"fields": "| a |\n|---|\n"}) == []


def test_faulty_markers_are_findings_with_their_line(tmp_path: Path) -> None:
    page = tmp_path / "docs/page.md"
    page.parent.mkdir()
    page.write_text(PAGE)
    assert problems(tmp_path, {"fieldz": ""}) == [
        ("output.table-unused", "docs:1:1"),
        ("output.marker-unknown", "docs/page.md:3:1"),
    ]
    page.write_text("<!-- generated:fields -->\ntext\n")
    assert problems(tmp_path, {"fields": ""}) == [("output.marker-unclosed", "docs/page.md:1:1")]
    page.write_text("a\n<!-- /generated:fields -->\n<!-- generated:fields -->\n<!-- generated:other -->\n")
    assert problems(tmp_path, {"fields": ""}) == [
        ("output.marker-unclosed", "docs/page.md:2:1"),
        ("output.marker-unclosed", "docs/page.md:3:1"),
        ("output.marker-unclosed", "docs/page.md:4:1"),
    ]


def test_a_check_shows_a_unified_diff_and_writes_nothing(tmp_path: Path) -> None:
    generate(tmp_path, {"generated/a.py": "x = 1\ny = 2\n", "generated/gone.py": "z\n"})
    snapshot = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    findings = Findings()
    plan = make_plan(
        tmp_path, Products({"generated/a.py": "x = 1\ny = 3\n", "generated/new.py": "n\n"}), findings
    )
    diff = report_stale(tmp_path, plan, findings)
    assert "--- a/generated/a.py\n+++ b/generated/a.py\n@@ -1,2 +1,2 @@\n x = 1\n-y = 2\n+y = 3\n" in diff
    assert "--- a/generated/gone.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-z\n" in diff
    assert "--- /dev/null\n+++ b/generated/new.py\n@@ -0,0 +1 @@\n+n\n" in diff
    assert [(f.rule, str(f.location), f.message) for f in findings if f.location.file != MANIFEST] == [
        ("output.stale", "generated/a.py:2:1", "the file is not current"),
        ("output.stale", "generated/gone.py:1:1", "no target makes this file any more"),
        ("output.stale", "generated/new.py:1:1", "the file does not exist"),
    ]
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == snapshot
