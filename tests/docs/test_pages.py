"""Every fenced block of every page is run: here, by a named other test, or it is listed with the reason why
not.

A new block that is in none of the three makes the test fail.
"""

from __future__ import annotations

import doctest
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

from generated.settings import SETTINGS

from ..clients.gateways import Gateway
from ..engine.engines import native
from .console import fits, run, run_page, scratch_copy

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "spec" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^( *)```([a-z]*)([^\n]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
PARROT = str(ROOT / "docs" / "examples" / "parrot.py")
NATIVE_BUILD = "python -m engine.native.build"
ENGINE_CHECK = "python -m tests.engine.check"
SHOWN_ONLY = {"text", "mermaid", ""}
"""Languages of blocks that show something and ask for nothing."""

RUN_ELSEWHERE = {  # start of a block -> the test that runs it
    "cc -std=c11": "tests/docs/test_examples.py::test_example_engine_is_served",
    "lm_eval run": "tests/lm_eval/test_lm_eval.py::test_a_whole_evaluation",
    "location / {": "tests/docs/test_nginx.py::test_an_answer_and_a_refused_key_pass_through",
    "ANTHROPIC_BASE_URL=": "tests/clients/test_claude_code.py::test_an_answer_arrives_whole",
    "OPENAI_API_BASE=": "tests/clients/test_aider.py::test_a_streamed_answer_becomes_a_file",
    "make demo": "tests/evidence/check_wheel.py::demo_outside_the_checkout",
}

NOT_RUN = {  # start of a block -> why no test of this project can run it
    "git clone . /tmp/tutorial": "the test of the page works in a scratch copy of its own",
    "FROM python:3.11-slim": "needs a container engine; its command is run with the arguments of the next",
    "git archive HEAD | docker build": "needs a container engine",
    'pip install ".[lm-eval]"': "needs the package index",
}


class Block(NamedTuple):
    """One fenced block of a page."""

    page: str
    language: str
    text: str

    def starts_with_any(self, starts: dict[str, str]) -> bool:
        return any(self.text.startswith(start) for start in starts)


def blocks(*languages: str) -> list[Block]:
    found = [
        Block(page.name, language, textwrap.dedent(text))
        for page in PAGES
        for _, language, _, text in FENCE.findall(page.read_text(encoding="utf-8"))
    ]
    return [block for block in found if not languages or block.language in languages]


def serve_lines() -> list[tuple[str, str]]:
    """Every `coli serve …` of every page, with variables set before it."""
    found = []
    for block in blocks("sh", "ini"):
        for line in block.text.splitlines():
            command = line.partition("ExecStart=/opt/colibri/.venv/bin/")[2] or line
            if re.match(r"(\w+=.* )?coli serve", command):
                found.append((block.page, command))
    return [*found, ("operators.md", container_line())]


def container_line() -> str:
    """What runs in the container of the page: its entry point with the arguments of `docker run`."""
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", blocks("dockerfile")[0].text, re.MULTILINE)
    ((key, arguments),) = [
        found
        for block in blocks("sh")
        for found in re.findall(r"docker run .*-e (\w+) .* colibri (.*)", block.text)
    ]
    return " ".join([f"{key}=a-key", *json.loads(entry), arguments])


def is_run_here(block: Block) -> bool:
    if block.page == "tutorial.md" and block.language in ("console", "diff"):
        return True
    if block.language == "sh" and (NATIVE_BUILD in block.text or block.text.startswith(ENGINE_CHECK)):
        return True
    return block.language in ("pycon", "python", "ini") or "coli serve" in block.text or is_curl(block)


def is_curl(block: Block) -> bool:
    return block.language == "sh" and block.text.startswith("curl ")


def test_every_block_is_run_or_has_a_reason():
    left = [
        f"{block.page}: {block.text.splitlines()[0]}"
        for block in blocks()
        if block.language not in SHOWN_ONLY
        and not is_run_here(block)
        and not block.starts_with_any(RUN_ELSEWHERE)
        and not block.starts_with_any(NOT_RUN)
    ]
    assert left == []


def test_no_entry_is_left_over_and_every_named_test_exists():
    for start in (*RUN_ELSEWHERE, *NOT_RUN):
        assert any(block.text.startswith(start) for block in blocks()), start
    for test in RUN_ELSEWHERE.values():
        path, _, function = test.partition("::")
        assert f"def {function}" in (ROOT / path).read_text(encoding="utf-8"), test


@pytest.mark.parametrize("page", ["behaviour.md"])
def test_python_sessions(page):
    text = re.sub(r"^```.*$", "", (ROOT / "docs" / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    session = doctest.DocTestParser().get_doctest(text, {}, page, page, 0)
    written: list[str] = []
    outcome = doctest.DocTestRunner().run(session, out=written.append)
    assert outcome.attempted > 10
    assert outcome.failed == 0, "".join(written)


@pytest.mark.timeout(300)
def test_tutorial_from_top_to_bottom(tmp_path):
    _, faults = run_page((ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8"), scratch_copy(tmp_path))
    assert faults == [], "\n\n".join(faults)


def test_pins_of_a_clone_look_at_the_clone(tmp_path):
    """Not at the checkout that is installed: a limit that is wrong in the clone alone fails there."""
    directory = scratch_copy(tmp_path)
    assert "failed" not in run("pytest tests/pins", directory)
    path = directory / "generated" / "limits.py"
    text = path.read_text(encoding="utf-8")
    assert text.count("TOP_K: Final = 32\n") == 1
    path.write_text(text.replace("TOP_K: Final = 32\n", "TOP_K: Final = 31\n"), encoding="utf-8")
    assert "test_wire_pins.py::test_limits" in run("pytest tests/pins", directory)


@pytest.mark.parametrize(("page", "line"), serve_lines())
def test_serve_commands_start_a_gateway(page, line, monkeypatch):
    """With the embedded model and the example engine in place of the reader's, and a free port."""
    words = shlex.split(
        line.replace('"$(openssl rand -hex 32)"', "0123456789abcdef").replace("$KEY", "a-key")
    )
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        monkeypatch.setenv(name, value)
    options = words[2:]
    if "--model" in options:
        options[options.index("--model") + 1] = str(ROOT / "engine" / "nano" / "model")
    if "--engine" not in options:
        options += ["--engine", PARROT]
    elif "reference" not in options:
        options[options.index("--engine") + 1] = PARROT
    gateway = Gateway(*options)
    assert gateway.close() == 0


def test_every_build_command_builds_the_native_engine_where_the_service_takes_it_from():
    """Into the directory of the engine tests, where it may be built already."""
    program = native()
    if isinstance(program, str):
        pytest.skip(program)
    directory = Path(program[0]).parent
    lines = [line for block in blocks("sh") for line in block.text.splitlines() if NATIVE_BUILD in line]
    assert len(lines) > 1
    services = []
    for line in lines:
        _, _, place = line.partition(" --directory ")
        services += [f"--engine {place}/{Path(program[0]).name}"] if place else []
        command = [sys.executable, *NATIVE_BUILD.split()[1:], "--directory", str(directory)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=True)
        assert done.stdout.strip() == program[0]
    (unit,) = blocks("ini")
    assert any(service in unit.text for service in services)


def test_container_file_is_the_one_the_page_shows():
    (shown,) = blocks("dockerfile")
    assert (ROOT / "docs" / "examples" / "Dockerfile").read_text(encoding="utf-8") == shown.text


def test_check_of_an_engine_prints_what_the_page_shows():
    page = (ROOT / "docs" / "engines.md").read_text(encoding="utf-8")
    ((line, shown),) = re.findall(rf"```sh\n({ENGINE_CHECK} .*)\n```\n\n```text\n(.*?)```", page, re.DOTALL)
    command = [sys.executable, *line.split()[1:]]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=True)
    assert fits(shown, done.stdout), done.stdout


def test_demo_prints_what_the_first_page_shows():
    (shown,) = [block.text for block in blocks("text") if block.text.startswith("gateway: ")]
    command = [sys.executable, "-m", "server.cli", "demo"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=True)
    port = r"127\.0\.0\.1:\d+"
    assert re.sub(port, "PORT", done.stdout).strip() == re.sub(port, "PORT", shown).strip()


def test_systemd_unit_is_valid_and_gives_the_gateway_its_grace(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze on this machine")
    (unit,) = blocks("ini")
    path = tmp_path / "coli.service"
    path.write_text(unit.text.replace("/opt/colibri/.venv/bin/coli", sys.executable))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(path)], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    (stop,) = re.findall(r"^TimeoutStopSec=(\d+)$", unit.text, re.MULTILINE)
    grace = SETTINGS["shutdown_timeout"].default + SETTINGS["engine_kill_timeout"].default
    assert float(stop) > grace


@pytest.fixture(scope="module")
def gateway():
    """What the client examples talk to: the embedded model behind a key."""
    running = Gateway("--engine", "reference", "--api-key", "KEY", environment={"COLI_TEMP": "0"})
    yield running
    assert running.close() == 0


@pytest.mark.parametrize("block", [pytest.param(block, id=block.text[:24]) for block in blocks("python")])
def test_client_snippets(block, gateway):
    if find_spec("openai") is None:  # asked for, not imported: the snippet imports it in its own process
        pytest.skip("the extra `clients` is not installed")
    code = block.text.replace("http://127.0.0.1:8000", gateway.url)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "2 + 2 = 4."), done.stderr


@pytest.mark.parametrize(
    "block", [pytest.param(block, id=block.page) for block in blocks() if is_curl(block)]
)
def test_curl_snippets(block, gateway):
    script = block.text.replace("http://127.0.0.1:8000", gateway.url)
    done = subprocess.run(
        ["bash", "-ec", script],
        env={**os.environ, "KEY": "KEY"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert '"content":"2 + 2 = 4."' in done.stdout, done.stderr
