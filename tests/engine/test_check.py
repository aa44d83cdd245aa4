"""`python -m tests.engine.check`: the engines here and on the pages pass, a faulty one does not."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from generated.families import CAPABILITIES
from server.model import embedded_model
from tests.engine import check, contract, engine_process

ROOT = Path(__file__).parents[2]
PARROT = ROOT / "docs" / "examples" / "parrot.py"
PARROT_CAN = ("--can", "accept", "stop", "slots")


@pytest.fixture(autouse=True)
def usual_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command sets it for the process it runs in; here that is this one."""
    monkeypatch.setattr(engine_process, "DEADLINE_SECONDS", engine_process.DEADLINE_SECONDS)


def test_engines_of_this_project_keep_every_promise(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert check.report(contract.outcomes(command, embedded_model(), CAPABILITIES)) == 0
    assert capsys.readouterr().out.endswith(f"\n{len(contract.CHECKS)} held, 0 did not, 0 not asked for\n")


def test_named_engines_are_those_of_the_gateway(capsys: pytest.CaptureFixture[str]) -> None:
    assert check.main(["/nonexistent/engine"]) == 2
    assert capsys.readouterr().err == "the engine /nonexistent/engine does not exist\n"


def test_the_example_engine_keeps_what_it_promises(capsys: pytest.CaptureFixture[str]) -> None:
    assert check.main([str(PARROT), *PARROT_CAN]) == 0
    shown = capsys.readouterr().out
    assert shown.count("\nok ") + shown.startswith("ok ") == 17
    assert shown.endswith("17 held, 0 did not, 6 not asked for\n")


def test_the_example_engine_in_c_keeps_what_it_promises(tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler on this machine")
    program = tmp_path / "parrot"
    sources = ["-std=c11", "-Igenerated/c", "docs/examples/parrot.c", "-o", str(program), "-lm"]
    subprocess.run(["cc", *sources], cwd=ROOT, check=True)
    assert check.main([str(program), "--can", "accept", "stop"]) == 0


FAULTS = [
    ("item.max_tokens],", "item.max_tokens + 1],", "max tokens", "2 tokens, 1 was allowed"),
    ("frames.write_accept(item.id, len(words))", "b''", "plain request", "got DATA, DATA, DATA, DATA, DONE"),
    ("frames.write_data(", "b'NOISE 1\\n' + frames.write_data(", "plain request", "NOISE"),
    ("words.pop(0))", "words.pop(0) + b'!' * request)", "one after the other", "one! two! three! four!"),
    ("frames.write_error(item.id, item.code)", "b''", "refused commands", "was answered by nothing"),
    ("not count", "False", "empty prompt", "expected ERROR EMPTY_PROMPT, got ACCEPT, DONE"),
    ("count >= CONTEXT", "False", "context exceeded", "expected ERROR CONTEXT_EXCEEDED, got ACCEPT"),
    ("WireError.NOT_FOUND", "WireError.CANCELLED", "unknown ids", "got ERROR CANCELLED"),
    ("WireError.SLOT_BUSY", "WireError.BAD_REQUEST", "taken slot and id", "request 2 got ERROR BAD_REQUEST"),
    ("WireError.CANCELLED", "'GONE'", "cancel", "CANCEL was answered by ERROR GONE"),
    ("return  # orderly end: nothing in flight", "sys.exit(3)", "orderly end", "exit code 3, not 0"),
    ("sys.exit(1)", "pass", "broken terminator", "no frame within"),
    ("signal.SIG_DFL", "signal.SIG_IGN", "reader gone", "not by SIGPIPE"),
]
"""What the example engine says, what a faulty one says instead, the check that finds it and its words."""


@pytest.mark.parametrize(("right", "wrong", "name", "says"), FAULTS, ids=[fault[2] for fault in FAULTS])
def test_a_faulty_engine_fails_the_check_of_what_it_breaks(
    right: str, wrong: str, name: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_process, "DEADLINE_SECONDS", 60.0 if "no frame" not in says else 2.0)
    (one,) = [found for found in contract.CHECKS if found.name == name]
    command = [sys.executable, faulty(tmp_path, right, wrong)]
    (outcome,) = contract.outcomes(command, tmp_path, frozenset(PARROT_CAN[1:]), [one])
    assert outcome.fault is not None and says in outcome.fault


def faulty(directory: Path, right: str, wrong: str) -> str:
    """The example engine with one thing changed; its path."""
    text = PARROT.read_text(encoding="utf-8")
    assert text.count(right) == 1, right
    path = directory / "faulty.py"
    path.write_text(text.replace(right, wrong), encoding="utf-8")
    return str(path)


def test_a_faulty_engine_is_told_in_the_table_and_by_the_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = faulty(tmp_path, "WireError.CANCELLED", "'GONE'")
    assert check.main([path, *PARROT_CAN]) == 1
    shown = capsys.readouterr().out
    assert re.findall(r"^FAIL +(.*?)  +.*\n +(.*)$", shown, re.MULTILINE) == [
        ("cancel", "CANCEL was answered by ERROR GONE")
    ]
    assert shown.endswith("16 held, 1 did not, 6 not asked for\n")


def test_an_engine_that_does_not_start_shows_the_end_of_its_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "engine"
    program.write_text("#!/bin/sh\necho no such weights >&2\nexit 7\n")
    program.chmod(0o755)
    assert check.main([str(program), "--can"]) == 1
    shown = capsys.readouterr().out
    assert shown.startswith("FAIL  start and end ")
    assert "      engine ended early with 7\n      log: no such weights\n" in shown
