"""The nginx block of docs/operators.md in a real nginx before a real gateway."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from tests.scripted import SCRIPTED_ENGINE
from tests.waiting import eventually

from ..clients.gateways import ScriptedGateway, answering

PAGE = Path(__file__).parents[2] / "docs" / "operators.md"
NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/bin")
NAME = "api.example.net"
KEY = "a-key-for-nginx"
pytestmark = [
    pytest.mark.skipif(NGINX is None, reason="no nginx on this machine"),
    pytest.mark.skipif(not SCRIPTED_ENGINE.exists(), reason="no scripted engine on this machine"),
]
WHOLE = """daemon off;
pid {directory}/nginx.pid;
error_log {directory}/error.log;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    server {{
        listen unix:{directory}/front;
{block}
    }}
}}
"""


class Front(http.client.HTTPConnection):
    """A connection to nginx on its Unix socket: no port can be taken meanwhile."""

    def __init__(self, path: Path) -> None:
        super().__init__(NAME, timeout=30)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30)
        self.sock.connect(str(self._path))

    def ask(self, body: dict, key: str = KEY) -> http.client.HTTPResponse:
        """POST to the chat endpoint; the answer's head is there, its body not yet read."""
        text = json.dumps({"model": "served", "messages": [{"role": "user", "content": "hello"}], **body})
        self.request("POST", "/v1/chat/completions", text, {"Authorization": f"Bearer {key}"})
        return self.getresponse()


@pytest.fixture
def gateway(tmp_path: Path):
    running = ScriptedGateway(tmp_path, "--allowed-host", NAME, "--api-key", KEY)
    yield running
    assert running.close() == 0


def ended(process: subprocess.Popen[bytes]) -> bool:
    return process.poll() is not None


@pytest.fixture
def front(gateway: ScriptedGateway, tmp_path: Path):
    (block,) = re.findall(r"```nginx\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert block.count("http://127.0.0.1:8000") == 1
    directory = tmp_path / "nginx"
    directory.mkdir()
    text = WHOLE.format(directory=directory, block=block.replace("http://127.0.0.1:8000", gateway.url))
    (directory / "nginx.conf").write_text(text)
    command = [str(NGINX), "-p", str(directory), "-c", "nginx.conf", "-e", str(directory / "error.log")]
    assert subprocess.run([*command, "-t"], capture_output=True, timeout=30).returncode == 0
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        pid = directory / "nginx.pid"
        eventually(lambda: ended(server) or (pid.exists() and pid.read_text()), "nginx runs")
        assert not ended(server), (directory / "error.log").read_text()
        yield directory / "front"
    finally:
        server.terminate()
        server.wait(30)


def test_an_answer_and_a_refused_key_pass_through(gateway: ScriptedGateway, front: Path) -> None:
    gateway.plan(answering("<think></think>", "Hello."))
    answer = Front(front).ask({})
    assert (answer.status, json.loads(answer.read())["choices"][0]["message"]["content"]) == (200, "Hello.")
    refused = Front(front).ask({}, key="wrong")
    assert (refused.status, json.loads(refused.read())["error"]["code"]) == (401, "invalid_api_key")


def test_a_stream_is_not_held_back_and_a_client_that_leaves_is_noticed(
    gateway: ScriptedGateway, front: Path
) -> None:
    gateway.plan(["ACCEPT <id> 7", "DATA <id> <n> => first", "@sleep 60"])
    client = Front(front)
    answer = client.ask({"stream": True})
    read = b""
    while b"first" not in read:  # arrives while the engine is silent for a minute
        line = answer.readline()
        assert line, read
        read += line
    answer.close()
    client.close()
    eventually(gateway.cancelled, "the engine is told")


def test_a_cut_stream_is_cut_for_the_client_too(gateway: ScriptedGateway, front: Path) -> None:
    gateway.plan(["ACCEPT <id> 7", "DATA <id> <n> => first", "ERROR <id> INTERNAL"])
    answer = Front(front).ask({"stream": True})
    assert answer.status == 200, answer.read()
    with pytest.raises(http.client.IncompleteRead) as cut:
        answer.read()
    assert b"first" in cut.value.partial and b"[DONE]" not in cut.value.partial
