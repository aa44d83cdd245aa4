"""`coli` before it serves: where it cannot run, its help, the demo (http.md §17)."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import psutil
import pytest

from generated.settings import SETTINGS
from tests.commands import ROOT, coli, only_line

PATIENCE = 60.0


@pytest.mark.parametrize(
    ("elsewhere", "lacks"),
    [
        ("del select.epoll, os.pidfd_open; sys.modules['fcntl'] = None", "epoll and pidfd_open"),
        ("os.pidfd_open = lambda pid: os.close(-1)", "pidfd_open"),
    ],
)
def test_a_system_that_is_not_linux_or_too_old_is_one_line_and_exit_2(elsewhere: str, lacks: str) -> None:
    program = f"import os, platform, select, sys; {elsewhere}; platform.system = lambda: 'Plan9'; "
    program += "platform.release = lambda: '4'; from server.entry import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "serve"],
        cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert only_line(done.stderr) == f"Linux 5.3 or newer is needed; Plan9 4 lacks {lacks}"


def test_an_interrupt_while_the_commands_are_still_loaded_is_one_line() -> None:
    program = """
import sys

class Interrupting:
    def find_spec(self, name, *_):
        if name == "server.cli":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupting())
from server.entry import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", program, "serve"],
        cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (130, "")
    assert only_line(done.stderr) == "interrupted"


def test_the_script_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "server.entry", "serve", "--port", "nowhere"],
        cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "nowhere" in only_line(done.stderr)
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    assert scripts["coli"] == "server.entry:main"


def test_section_17_help_teaches_every_flag_with_its_default_variable_and_an_example() -> None:
    shown = coli("serve", "--help")
    assert shown.returncode == 0
    words = " ".join(shown.stdout.split())
    for setting in SETTINGS.values():
        if setting.flag is not None:
            assert f"{setting.flag} " in words
            if setting.env is not None:
                assert f"variable {setting.env}" in words
    for default in ("default 127.0.0.1", "default 8000", "default 1024", "default 240"):
        assert default in words
    assert "curl http://127.0.0.1:8000/v1/chat/completions" in words


def test_without_a_command_the_help_is_shown() -> None:
    shown = coli()
    assert shown.returncode == 0
    assert "serve" in shown.stdout and "demo" in shown.stdout


def test_the_help_says_who_can_read_the_flag_of_the_key() -> None:
    shown = " ".join(coli("serve", "--help").stdout.split())
    assert "every user of this machine can read the flag in the process list, not the variable" in shown
    assert '--api-key "' not in shown


def test_demo_asks_the_embedded_model_and_leaves_nothing_behind() -> None:
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    shown = coli("demo", "--engine", "reference")
    assert shown.returncode == 0, shown.stderr
    assert "> what is 2 + 2?\n< " in shown.stdout
    answer = shown.stdout.split("> what is 2 + 2?\n< ")[1].split("\n")[0]
    assert "4" in answer
    assert "POST /v1/completions\n> The capital of France is\n< " in shown.stdout
    assert {child.pid for child in psutil.Process().children(recursive=True)} <= before


def test_demo_that_cannot_start_is_one_line_and_exit_1() -> None:
    shown = coli("demo", "--engine", "/nonexistent/engine")
    assert shown.returncode == 1
    assert shown.stderr == (
        "coli: the gateway did not start: coli: the engine /nonexistent/engine does not exist\n"
    )
