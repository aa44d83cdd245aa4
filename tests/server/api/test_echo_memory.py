"""The gateway's memory while it echoes a long prompt with log probabilities (http.md §9.3, last clause)."""

from __future__ import annotations

import http.client
import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
POSITIONS, TOP = 32_768, 32

ENGINE = f"""#!{sys.executable}
import sys
commands, out = sys.stdin.buffer, sys.stdout.buffer
out.write(b"\\1\\1READY\\1\\1\\nSTAT 0 0.0 0.0 1.0\\n")
out.flush()
table = b" ".join(b"%d %.6f" % (100000 + place, -0.1 - place * 0.37) for place in range({TOP}))
while words := commands.readline().split():
    commands.read(int(words[3]) + 1)
    count = {POSITIONS} if words[4] == b"2" else 1
    out.write(b"ACCEPT %s %d\\n" % (words[1], count))
    for place in range(count):
        out.write(b"ECHO %s 4 %d -0.470000 {TOP} %s\\n tok\\n" % (words[1], place, table))
    out.write(b"DATA %s 2 -0.100000 {TOP} %s\\nok\\n" % (words[1], table))
    out.write(b"DONE %s STAT 1 1.0 0 1.0 %d 1\\n" % (words[1], count))
    out.flush()
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[int, int]]:
    """Process id and port of a gateway whose engine reads long prompts out."""
    model, engine = tmp_path / "model", tmp_path / "engine"
    model.mkdir()
    (model / "config.json").write_text('{"model_type": "glm4"}')
    engine.write_text(ENGINE)
    engine.chmod(engine.stat().st_mode | stat.S_IXUSR)
    command = [
        sys.executable, "-m", "server.cli", "serve", "--port", "0", "--model", str(model), "--model-id", "m",
        "--engine", str(engine),
    ]  # fmt: skip
    process = subprocess.Popen(
        command, cwd=ROOT, env=os.environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        match = re.search(r":(\d+),", process.stdout.readline())
        assert match is not None
        assert process.stdout.readline().startswith("ready")
        yield process.pid, int(match[1])
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()


def megabytes(pid: int, field: str) -> float:
    match = re.search(rf"{field}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert match is not None
    return int(match[1]) * 1024 / 1e6


def echo(port: int, max_tokens: int) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    body = {"model": "m", "prompt": "x", "max_tokens": max_tokens, "logprobs": TOP, "echo": True}
    connection.request("POST", "/v1/completions", json.dumps(body))
    answer = connection.getresponse().read()
    connection.close()
    return answer


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_section_9_3_half_of_a_65536_position_echo_takes_less_than_half_of_100_mb(
    server: tuple[int, int],
) -> None:
    pid, port = server
    echo(port, 1)
    before = megabytes(pid, "VmRSS")
    answer = echo(port, 2)
    taken = megabytes(pid, "VmHWM") - before
    assert taken < 100 * POSITIONS / 65_536
    assert answer.count(b"<token_id:100031>") == POSITIONS + 1
    assert answer.count(b'{"<token_id:100000>":-0.1,') == POSITIONS
    assert answer.count(b'{"ok":-0.1,') == 1
