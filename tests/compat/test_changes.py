"""Baselines, acknowledgements and releases, through the command line on a project of their own."""

from __future__ import annotations

import copy
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from codegen.__main__ import main

ROOT = Path(__file__).resolve().parents[2]
BASE = (ROOT / "tests/spec/base.yaml").read_text(encoding="utf-8")
LOWERED = "top: {value: 4, unit", "top: {value: 3, unit"


def codegen(*arguments: str) -> tuple[int, str]:
    """Exit code and standard output of the command line, run in this process."""
    done = CliRunner().invoke(main, arguments)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
    return done.exit_code, done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose spec is the tiny one, released as 1.0.0."""
    write_spec(tmp_path, BASE)
    assert codegen("release", "1.0.0", "--root", str(tmp_path)) == (0, "froze spec/released/1.0.json\n")
    return tmp_path


def write_spec(project: Path, text: str) -> None:
    (project / "spec").mkdir(exist_ok=True)
    (project / "spec/protocol.yaml").write_text(text, encoding="utf-8")


def edit(project: Path, *edits: tuple[str, str]) -> None:
    text = BASE
    for old, new in edits:
        assert text.count(old) == 1
        text = text.replace(old, new)
    write_spec(project, text)


def version(text: str) -> tuple[str, str]:
    return "version: 1.0.0", f"version: {text}"


def acknowledge(project: Path, *entries: str) -> None:
    lines = "".join(f"  - {{{entry}}}\n" for entry in entries)
    (project / "spec/acknowledged.yaml").write_text(f"acknowledged:\n{lines}", encoding="utf-8")


def diff(project: Path, *arguments: str) -> tuple[int, list[tuple[str, str, str]]]:
    """Exit code, and (rule, level, place) of every finding."""
    code, told = codegen("diff", "--root", str(project), "--format", "json", *arguments)
    findings = json.loads(told)["findings"]
    return code, [(f["rule"], f["level"], f"{f['file']}:{f['line']}:{f['column']}") for f in findings]


def test_nothing_released_nothing_to_compare(tmp_path: Path) -> None:
    write_spec(tmp_path, BASE)
    code, told = codegen("diff", "--root", str(tmp_path))
    assert (code, told) == (
        0,
        "compared with nothing, because no release is frozen yet: 0 change(s), none in need of a decision\n",
    )


def test_no_change_is_no_finding(project: Path) -> None:
    assert diff(project) == (0, [])


def test_a_change_points_at_the_spec_and_a_removal_at_the_frozen_file(project: Path) -> None:
    edit(
        project,
        version("2.0.0"),
        LOWERED,
        (", top: 3}}", "}}"),
        ("top=3", ""),
        ("    keys: {top: {type: top, doc: Entries wanted.}}\n", ""),
    )
    frozen = (project / "spec/released/1.0.json").read_text().splitlines()
    line = next(n for n, text in enumerate(frozen, 1) if '"path": "commands.ASK.keys.top"' in text)
    column = len(frozen[line - 1]) - len(frozen[line - 1].lstrip()) + 1
    code, findings = diff(project)
    assert code == 1
    assert ("limit.lowered", "error", "spec/protocol.yaml:9:3") in findings
    assert ("key.removed", "error", f"spec/released/1.0.json:{line}:{column}") in findings


def test_breaking_without_a_major_version_cannot_be_accepted(project: Path) -> None:
    edit(project, version("1.1.0"), LOWERED)
    acknowledge(
        project,
        "rule: limit.lowered, item: limits.top, reason: nobody used more, version: 1.1.0",
        "rule: version.not-bumped, item: protocol, reason: please, version: 1.1.0",
    )
    assert diff(project) == (
        1,
        [
            ("ack.never", "error", "spec/acknowledged.yaml:3:12"),
            ("version.not-bumped", "error", "spec/protocol.yaml:3:1"),
            ("limit.lowered", "note", "spec/protocol.yaml:9:3"),
        ],
    )


def test_an_acknowledgement_accepts_exactly_its_change_until_the_release(project: Path) -> None:
    edit(project, version("2.0.0"), LOWERED, ("payload_bytes: {value: 100", "payload_bytes: {value: 90"))
    acknowledge(project, "rule: limit.lowered, item: limits.top, reason: nobody used more, version: 2.0.0")
    assert diff(project) == (
        1,
        [
            ("limit.lowered", "error", "spec/protocol.yaml:8:3"),
            ("limit.lowered", "note", "spec/protocol.yaml:9:3"),
        ],
    )
    refused, _ = codegen("release", "2.0.0", "--root", str(project))
    assert refused == 1
    assert not (project / "spec/released/2.0.json").exists()
    edit(project, version("2.0.0"), LOWERED)
    assert codegen("release", "2.0.0", "--root", str(project))[0] == 0
    assert diff(project) == (1, [("ack.expired", "error", "spec/acknowledged.yaml:2:12")])


def test_unused_and_misspelt_acknowledgements_are_errors(project: Path) -> None:
    acknowledge(
        project,
        "rule: limit.lowered, item: limits.top, reason: nobody used more, version: 2.0.0",
        "rule: limit.lowred, item: limits.top, reason: nobody used more, version: 2.0.0",
    )
    assert diff(project) == (
        1,
        [
            ("ack.unused", "error", "spec/acknowledged.yaml:2:12"),
            ("ack.unknown-rule", "error", "spec/acknowledged.yaml:3:12"),
        ],
    )


def test_an_acknowledgement_without_a_reason_is_refused(project: Path) -> None:
    acknowledge(project, 'rule: limit.lowered, item: limits.top, reason: " ", version: 2.0.0')
    assert diff(project) == (1, [("shape.value", "error", "spec/acknowledged.yaml:2:53")])


def test_a_release_has_the_version_of_the_spec_and_is_never_rewritten(project: Path) -> None:
    frozen = (project / "spec/released/1.0.json").read_bytes()
    code, told = codegen("release", "1.0.0", "--root", str(project))
    assert (code, "error[release.frozen]: 1.0.0 is frozen already" in told) == (1, True)
    code, told = codegen("release", "1.1.0", "--root", str(project))
    assert (code, "error[release.version]: the spec is at 1.0.0, not at 1.1.0" in told) == (1, True)
    assert (project / "spec/released/1.0.json").read_bytes() == frozen


def test_the_newest_release_is_the_baseline_and_another_can_be_named(project: Path) -> None:
    edit(project, version("1.10.0"), ("doc: Port.", "doc: The port."))
    assert codegen("release", "1.10.0", "--root", str(project))[0] == 0
    assert diff(project) == (0, [])
    code, findings = diff(project, "--against", "released/1.0.json")
    assert (code, [rule for rule, _, _ in findings]) == (0, ["doc.text-changed"])


def test_a_git_revision_is_a_baseline(project: Path) -> None:
    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        subprocess.run(["git", "-C", str(project), *identity, *arguments], check=True, capture_output=True)

    git("init", "-q")
    git("add", "spec")
    git("commit", "-q", "-m", "first")
    edit(
        project,
        version("2.0.0"),
        (
            "  GET /state: {doc: How it goes., answer: text}\n",
            "  GET /now: {doc: How it goes., since: 2.0.0, answer: text}\n",
        ),
    )
    assert diff(project, "--against", "HEAD") == (
        1,
        [
            ("http.route-removed", "error", "HEAD:spec/protocol.yaml:52:3"),
            ("http.route-added", "note", "spec/protocol.yaml:52:3"),
        ],
    )
    code, findings = diff(project, "--against", "nonsense")
    assert (code, findings) == (1, [("release.baseline", "error", "nonsense:spec/protocol.yaml:1:1")])


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[1]", '{"protocol": 1}', '{"protocol": {}, "frames": []}', '{"protocol": 1, "frames": 2}'],
)
def test_a_broken_frozen_file_is_a_finding(project: Path, text: str) -> None:
    (project / "spec/released/1.0.json").write_text(text)
    assert diff(project) == (1, [("release.baseline", "error", "spec/released/1.0.json:1:1")])


def test_the_real_spec_against_itself_is_silent() -> None:
    from codegen.changes import items_of, snapshot_of_release
    from codegen.compare import compare
    from codegen.fingerprint import model_json
    from codegen.resolve import load_model

    frozen = snapshot_of_release(model_json(load_model(ROOT / "spec/protocol.yaml")), "old.json")
    assert compare(frozen, frozen) == []
    assert sum(1 for _ in items_of(frozen.data)) > 300


def attributes(value: Any, trail: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Trails of all attributes of all items inside ``value``."""
    if isinstance(value, dict):
        for key, part in value.items():
            if "path" in value and not isinstance(part, dict):
                yield (*trail, key)
            yield from attributes(part, (*trail, key))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from attributes(part, (*trail, index))


def another(value: Any) -> Any:
    """Some other value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return [] if isinstance(value, list) else "other"


def test_no_attribute_of_any_item_can_change_unseen() -> None:
    """Every attribute, changed alone, is told by some rule, if only as unclassified."""
    from codegen.changes import Snapshot, snapshot_of_release
    from codegen.compare import compare
    from codegen.fingerprint import PROSE, model_json
    from codegen.resolve import load_model

    spec = ROOT / "tests/compat/base.yaml"
    old = snapshot_of_release(model_json(load_model(spec)), "old.json")
    told_as_items = PROSE | {
        "path",
        "name",
        "since",
        "deprecated",
        "version",
        "promise",
        "size",
        "fields",
        "events",
    }
    told_by_their_limit = {"high", "high_limit", "stability"}
    tried = 0
    for trail in attributes(old.data):
        inside_type = "type" in trail and trail[-1] in told_by_their_limit
        if (
            trail[0] in ("types", "fingerprint")
            or trail[-1] in told_as_items
            or "layout" in trail
            or inside_type
        ):
            continue
        changed = copy.deepcopy(old.data)
        holder: Any = changed
        for step in trail[:-1]:
            holder = holder[step]
        before, holder[trail[-1]] = holder[trail[-1]], another(holder[trail[-1]])
        if before != holder[trail[-1]]:
            tried += 1
            assert compare(old, Snapshot("new.json", changed, {})), (trail, before)
    assert tried > 450
