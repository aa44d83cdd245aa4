"""The engines of docs/engines.md are real: built as the page says and served by a real gateway."""

from __future__ import annotations

import http.client
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from ..clients.gateways import Gateway

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"


def engine(name: str, directory: Path) -> Path:
    """The program of an example; the C one is built with the command of the page."""
    if name.endswith(".py"):
        return EXAMPLES / name
    if shutil.which("cc") is None:
        pytest.skip("no C compiler on this machine")
    program = directory / "parrot"
    command = "cc -std=c11 -O2 -Igenerated/c docs/examples/parrot.c"
    assert command in (ROOT / "docs" / "engines.md").read_text()
    subprocess.run(
        [*command.split(), "-Wall", "-Wextra", "-Werror", "-o", str(program), "-lm"], cwd=ROOT, check=True
    )
    return program


def post(gateway: Gateway, body: dict) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(gateway.url.removeprefix("http://"), timeout=20)
    connection.request("POST", "/v1/completions", json.dumps({"model": "nano", **body}))
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


@pytest.mark.parametrize("name", ["parrot.py", "parrot.c"])
def test_example_engine_is_served(name, tmp_path):
    gateway = Gateway("--engine", str(engine(name, tmp_path)))
    try:
        status, body = post(gateway, {"prompt": "say it again, please"})
        answer = json.loads(body)
        assert (status, answer["choices"][0]["text"]) == (200, "say it again, please")
        assert answer["usage"] == {"prompt_tokens": 4, "completion_tokens": 4, "total_tokens": 8}
        status, body = post(gateway, {"prompt": "one two three", "max_tokens": 2, "stream": True})
        events = [json.loads(line[6:]) for line in body.splitlines() if line.startswith(b"data: {")]
        assert "".join(event["choices"][0]["text"] for event in events) == "one two"
        assert events[-1]["choices"][0]["finish_reason"] == "length"
        status, body = post(gateway, {"prompt": " "})
        assert (status, json.loads(body)["error"]["param"]) == (400, "prompt")
    finally:
        assert gateway.close() == 0


def test_example_engines_are_as_short_as_the_page_says():
    lines = (EXAMPLES / "parrot.py").read_text().splitlines()
    code = [line for line in lines if line.strip() and not line.lstrip().startswith(("#", '"""'))]
    assert "in eighty lines" in (ROOT / "docs" / "engines.md").read_text()
    assert len(code) <= 80
