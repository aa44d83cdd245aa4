"""The compiler as its users meet it: exit codes, output formats, nothing written on errors, the same bytes
everywhere.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from codegen.__main__ import main

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Done:
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


def codegen(*arguments: str) -> Done:
    """The command line, run in this process."""
    done = CliRunner().invoke(main, arguments, prog_name="python -m codegen")
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
    return Done(done.exit_code, done.stdout, done.stderr)


def codegen_process(*arguments: str, **environment: str) -> int:
    """Exit code of the command line in a process of its own."""
    command = [sys.executable, "-m", "codegen", *arguments]
    settings = {**os.environ, **environment}
    return subprocess.run(
        command, cwd=ROOT, env=settings, capture_output=True, timeout=60, check=False
    ).returncode


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of everything the compiler reads or writes."""
    shutil.copytree(ROOT / "spec", tmp_path / "spec")
    shutil.copytree(ROOT / "generated", tmp_path / "generated", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    return tmp_path


def contents(root: Path) -> dict[str, bytes]:
    files = (path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


def edit(project: Path, old: str, new: str) -> None:
    spec = project / "spec/protocol.yaml"
    text = spec.read_text(encoding="utf-8")
    assert text.count(old) >= 1
    spec.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_generate_is_idempotent_and_check_agrees(project: Path) -> None:
    first = codegen("generate", "--root", str(project))
    assert (first.returncode, first.stderr) == (0, "")
    before = contents(project)
    again = codegen("generate", "--root", str(project))
    assert again.returncode == 0
    assert "wrote" not in again.stdout
    assert contents(project) == before
    assert codegen("check", "--root", str(project)).returncode == 0


def test_the_same_bytes_whatever_the_machine(project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    shutil.copytree(project / "spec", other / "spec")
    shutil.copytree(project / "docs", other / "docs")
    shutil.rmtree(project / "generated")
    one = codegen_process("generate", "--root", str(project), PYTHONHASHSEED="1", LC_ALL="C", TZ="UTC")
    two = codegen_process(
        "generate", "--root", str(other), PYTHONHASHSEED="77", LC_ALL="C.UTF-8", TZ="Asia/Tokyo"
    )
    assert (one, two) == (0, 0)
    assert contents(project / "generated") == contents(other / "generated")
    assert contents(project / "docs") == contents(other / "docs")


def test_a_changed_limit_is_drift_until_generated(project: Path) -> None:
    codegen("generate", "--root", str(project))
    edit(project, "top_k:\n    {value: 32,", "top_k:\n    {value: 31,")
    edit(project, "0 logprobs=33\\nhi", "0 logprobs=32\\nhi")
    edit(project, "ECHO 7 2 0 nan 33\\nhi", "ECHO 7 2 0 nan 32\\nhi")
    before = contents(project)
    stale = codegen("check", "--root", str(project))
    assert stale.returncode == 1
    assert "error[output.stale]: the file is not current" in stale.stdout
    assert "--- a/generated/limits.py\n+++ b/generated/limits.py\n" in stale.stdout
    assert contents(project) == before
    assert codegen("generate", "--root", str(project)).returncode == 0
    assert codegen("check", "--root", str(project)).returncode == 0


def test_errors_are_all_told_and_nothing_is_written(project: Path) -> None:
    codegen("generate", "--root", str(project))
    edit(project, "{value: 32, unit: entries", "{value: many, unit: entries")
    edit(project, "layout: TOOL <id> <size>", "layout: TOOL <id> <size")
    edit(project, "http: engine_unavailable", "http: engine_unavailabel")
    before = contents(project)
    failed = codegen("generate", "--root", str(project))
    assert failed.returncode == 1
    rules = [
        line.split("[")[1].split("]")[0] for line in failed.stdout.splitlines() if line.startswith("spec/")
    ]
    assert rules == ["shape.value", "layout.syntax", "resolve.unknown-reference"]
    assert "3 error(s)" in failed.stderr
    assert "Traceback" not in failed.stdout + failed.stderr
    assert contents(project) == before


def test_json_and_github_formats(project: Path) -> None:
    edit(project, "{value: 32, unit: entries", "{value: many, unit: entries")
    told = json.loads(codegen("lint", "--root", str(project), "--format", "json").stdout)
    (finding,) = told["findings"]
    assert told["errors"] == 1
    assert (finding["rule"], finding["file"], finding["item"]) == (
        "shape.value",
        "spec/protocol.yaml",
        "limit top_k",
    )
    assert finding["message"] == "'many' is not an integer such as 12 or 2^64-1"
    annotation = codegen("lint", "--root", str(project), "--format", "github").stdout
    place = f"file=spec/protocol.yaml,line={finding['line']},col={finding['column']},title=shape.value"
    assert annotation == f"::error {place}::in limit top_k: {finding['message']}\n"


def test_a_stale_target_disappears(project: Path) -> None:
    codegen("generate", "--root", str(project))
    manifest = json.loads((project / "generated/MANIFEST.json").read_text())
    manifest["files"]["generated/old/target.py"] = "0"
    (project / "generated/MANIFEST.json").write_text(json.dumps(manifest))
    (project / "generated/old").mkdir()
    (project / "generated/old/target.py").write_text("")
    assert codegen("check", "--root", str(project)).returncode == 1
    done = codegen("generate", "--root", str(project))
    assert "removed generated/old/target.py\n" in done.stdout
    assert not (project / "generated/old").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["explain", "shape.unknwon-key"], 2, "did you mean 'shape.unknown-key'?"),
        (["lint", "--root", "/nonexistent"], 2, "does not exist"),
        (["generat"], 2, "No such command"),
        (["lint", "--spec", "spec/none.yaml"], 1, "cannot read the file: No such file or directory"),
    ],
)
def test_wrong_command_lines_are_one_clear_message(arguments: list[str], code: int, told: str) -> None:
    result = codegen(*arguments)
    assert result.returncode == code
    assert told in result.stdout + result.stderr
    assert "Traceback" not in result.stdout + result.stderr


def test_every_rule_is_printed_and_explained() -> None:
    from codegen.catalogue import all_rules

    rules = all_rules()
    assert len({rule.id for rule in rules}) == len(rules)
    printed = codegen("rules").stdout
    for rule in rules:
        assert rule.purpose and rule.advice, rule.id
        assert f"{rule.id} " in printed
    assert codegen("explain", "payload.no-limit").stdout == (
        "payload.no-limit (error)\n\nWhy: The size of a payload is bounded by a named limit.\n"
        "What to do: Write the size's range with $limits.NAME.\n"
    )


def test_help_teaches_the_round() -> None:
    told = codegen("--help").stdout
    assert "python -m codegen generate" in told
    assert all(f"  {name}" in told for name in ("check", "lint", "generate", "diff", "rules", "explain"))


def test_an_output_edited_by_hand_is_written_again(project: Path) -> None:
    assert codegen("generate", "--root", str(project)).returncode == 0
    assert (project / "build/codegen.stamp").exists()
    limits = project / "generated/limits.py"
    right = limits.read_bytes()
    limits.write_bytes(right + b"# by hand\n")
    assert codegen("check", "--root", str(project)).returncode == 1
    assert "wrote generated/limits.py\n" in codegen("generate", "--root", str(project)).stdout
    assert limits.read_bytes() == right
    (project / "generated/stray.py").write_text("")
    told = codegen("generate", "--root", str(project))
    assert "generated/stray.py:1:1: warning[output.stranger]: no target makes this file" in told.stdout
