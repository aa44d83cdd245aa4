"""`coli serve` as a process: bad input, start-up, signals (http.md §4, §13, §17)."""

from __future__ import annotations

import http.client
import json
import logging
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from server.cli import main
from tests.commands import only_line, refused
from tests.scripted import SCRIPTED_ENGINE, ScriptedEngineFiles

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0

needs_scripted_engine = pytest.mark.skipif(
    not SCRIPTED_ENGINE.exists(), reason="the scripted engine of ../shared is not here"
)


@pytest.fixture
def refused_here(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """`refused` for what is found wrong before anything is opened or started: in this process, which is
    thirty times as quick.
    """

    def line_of(*arguments: str) -> str:
        log = list(logging.getLogger().handlers)
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2
        assert logging.getLogger().handlers == log, "it came as far as a log: a process of its own is needed"
        said = capsys.readouterr()
        assert said.out == ""
        return only_line(said.err)

    return line_of


@pytest.fixture
def model(tmp_path: Path) -> Path:
    directory = tmp_path / "model"
    directory.mkdir()
    (directory / "config.json").write_text('{"model_type": "glm_moe_dsa"}')
    return directory


def program(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["frobnicate"], "No such command"),
        (["serve", "--nope"], "No such option"),
        (["serve", "--port"], "requires an argument"),
        (["serve", "--port", "x"], "--port: 'x' is not a whole number"),
        (["serve", "--port", "65536"], "--port: '65536' is out of range"),
        (["serve", "--kv-slots", "0"], "--kv-slots: '0' is out of range"),
        (["serve", "--arch", "wonder"], "--arch: 'wonder' is not one of auto, glm"),
        (["serve", "--log-format", "xml"], "--log-format"),
        (["serve", "--model", "/nonexistent/model"], "the model directory /nonexistent/model does not exist"),
        (["serve", "--host", "0.0.0.0"], "without a key"),
        (["serve", "--host", "::"], "without a key"),
        (["serve", "--arch", "olmoe", "--kv-slots", "2"], "have one KV slot"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_section_17_bad_flags_are_one_line_and_exit_2(
    refused_here: Callable[..., str], arguments: list[str], says: str
) -> None:
    assert says in refused_here(*arguments)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["serve", "--port"], "requires an argument"),
        (["serve", "--port", "x"], "--port: 'x' is not a whole number"),
        (["serve", "--engine", "/nonexistent/engine"], "the engine /nonexistent/engine does not exist"),
        (["serve", "--engine", "/etc/passwd"], "is not executable"),
        (["serve", "--host", "192.0.2.1", "--api-key", "k", "--port", "0"], "cannot listen on 192.0.2.1"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_section_17_a_process_with_bad_flags_says_one_line_and_exits_2(
    arguments: list[str], says: str
) -> None:
    assert says in refused(*arguments)


def test_a_bad_variable_is_one_line_and_names_it(
    refused_here: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLI_READ_DEADLINE", "soon")
    assert "COLI_READ_DEADLINE: 'soon' is not a number" in refused_here("serve")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--model-id", ""], "--model-id: the name is empty"),
        (["--allowed-host", ""], "--allowed-host / COLI_ALLOWED_HOSTS: the name is empty"),
        (["--allowed-host", "a b"], "--allowed-host / COLI_ALLOWED_HOSTS: the name 'a b' holds a blank"),
        (["--cors-origin", ""], "--cors-origin: the origin is empty"),
        (["--cors-origin", "http://a b"], "--cors-origin: the origin 'http://a b' holds a blank"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_section_17_a_name_that_no_request_could_match_ends_the_start(
    refused_here: Callable[..., str], arguments: list[str], line: str
) -> None:
    assert refused_here("serve", *arguments) == line


def test_section_17_so_does_one_from_the_variable(
    refused_here: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLI_ALLOWED_HOSTS", "a,b c")
    line = "--allowed-host / COLI_ALLOWED_HOSTS: the name 'b c' holds a blank"
    assert refused_here("serve") == line


@pytest.mark.parametrize(
    ("config", "says"),
    [
        (None, "has no config.json"),
        ("{", "cannot be read"),
        ("[]", "not a JSON object"),
        ('{"model_type": 5}', "5"),
    ],
)
def test_a_directory_that_is_no_model_is_one_line(
    refused_here: Callable[..., str], tmp_path: Path, config: str | None, says: str
) -> None:
    if config is not None:
        (tmp_path / "config.json").write_text(config)
    assert says in refused_here("serve", "--model", str(tmp_path))


def test_a_pipe_in_the_place_of_the_configuration_is_one_line(
    refused_here: Callable[..., str], tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "config.json")
    assert "not a regular file" in refused_here("serve", "--model", str(tmp_path))


def test_an_unknown_model_type_is_named_with_the_families(
    refused_here: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "wonder"}')
    line = refused_here("serve", "--model", str(tmp_path))
    assert "'wonder'" in line and "--arch" in line and "glm" in line


def test_section_13_a_busy_port_fails_before_the_engine_is_started(model: Path, tmp_path: Path) -> None:
    engine = program(tmp_path / "engine", f"#!/bin/sh\ntouch {tmp_path}/started\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        line = refused("serve", "--model", str(model), "--engine", engine, "--port", port)
    assert f"cannot listen on 127.0.0.1:{port}" in line
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize(
    ("script", "patience", "says"),
    [
        ("echo no such weights >&2; exit 7", "60", "exit code 7; no such weights"),
        ("kill -9 $$", "60", "SIGKILL"),
        ("printf '\\001\\001READY\\001\\001\\nSTAT 0\\n'; exec sleep 600", "60", "STAT"),
        ("exec sleep 600", "5", "in time"),
    ],
)
def test_section_13_an_engine_that_does_not_get_ready_is_one_line_and_no_child_is_left(
    model: Path, tmp_path: Path, script: str, patience: str, says: str
) -> None:
    whole = f"echo $$ > {tmp_path}/new && mv {tmp_path}/new {tmp_path}/pid"
    engine = program(tmp_path / "engine", f"#!/bin/sh\n{whole}\n{script}\n")
    line = refused(
        "serve", "--model", str(model), "--engine", engine, "--port", "0", "--ready-timeout", patience
    )  # fmt: skip
    assert says in line
    assert not psutil.pid_exists(int((tmp_path / "pid").read_text()))


class Serving:
    """A running `coli serve`; its stdout is read by a thread."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._changed:
                self.lines.append(line.rstrip("\n"))
                self._changed.notify_all()

    def wait_for(self, start: str) -> str:
        with self._changed:
            found = self._changed.wait_for(lambda: self._line(start), PATIENCE)
        assert found, self.lines
        return found

    def _line(self, start: str) -> str | None:
        return next((line for line in self.lines if line.startswith(start)), None)

    @property
    def port(self) -> int:
        match = re.search(r":(\d+),", self.wait_for("listening on "))
        assert match is not None
        return int(match[1])

    def get(self, path: str, **headers: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return response.status, body

    def stop(self, number: signal.Signals) -> None:
        """Send a signal and wait until it is dealt with: no new connection is accepted then."""
        self.process.send_signal(number)
        limit = time.monotonic() + PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                break
            assert time.monotonic() < limit
            time.sleep(0.01)

    def end(self) -> str:
        """Wait for the end; what was on stderr."""
        self.process.wait(PATIENCE)
        self._reader.join()
        assert self.process.stderr is not None
        return self.process.stderr.read()


@contextmanager
def serving(*arguments: str, engine: str = str(SCRIPTED_ENGINE), **environ: str) -> Iterator[Serving]:
    process = subprocess.Popen(
        [sys.executable, "-m", "server.cli", "serve", "--port", "0", "--engine", engine, *arguments],
        cwd=ROOT, env=os.environ | environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    server = Serving(process)
    try:
        yield server
    finally:
        process.kill()
        process.wait()
        server._reader.join()
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()


@needs_scripted_engine
def test_the_start_message_has_a_curl_line_that_works(model: Path) -> None:
    with serving("--model", str(model), "--model-id", "m 1") as server:
        server.wait_for("ready: m 1 (glm)")
        line = server.wait_for("  curl ")
        body = re.search(r"-d '(.*)'$", line)
        url = re.search(r"curl http://127\.0\.0\.1:(\d+)(/\S+)", line)
        assert body is not None and url is not None
        connection = http.client.HTTPConnection("127.0.0.1", int(url[1]), timeout=PATIENCE)
        connection.request("POST", url[2], body[1], {"Content-Type": "application/json"})
        answer = json.loads(connection.getresponse().read())
        connection.close()
        assert answer["choices"][0]["message"]["content"] == "Héllo"


@needs_scripted_engine
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_section_13_a_signal_ends_gateway_and_engine_in_order(model: Path, number: signal.Signals) -> None:
    with serving("--model", str(model)) as server:
        server.wait_for("ready")
        (engine,) = psutil.Process(server.process.pid).children(recursive=True)
        server.process.send_signal(number)
        server.end()
        assert server.process.returncode == 0
        assert not engine.is_running()


@needs_scripted_engine
def test_section_13_requests_in_flight_finish_before_the_engine_is_ended(model: Path, tmp_path: Path) -> None:
    files = ScriptedEngineFiles(tmp_path)
    script = ["ACCEPT <id> 7", "@hold", "DATA <id> <n> => held", "DONE <id> STAT 1 2.5 0 1.0 7 0"]
    files.plan({"seq": 1, "release": 0, "script": script})
    with serving("--model", str(model), "--model-id", "m", **files.environment) as server:
        server.wait_for("ready")
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        connection.request("POST", "/v1/completions", '{"model":"m","prompt":"hi","stream":true}')
        response = connection.getresponse()
        assert response.status == 200
        server.stop(signal.SIGTERM)
        files.plan({"seq": 1, "release": 1, "script": script})
        assert response.read().endswith(b"data: [DONE]\n\n")
        connection.close()
        server.end()
        assert server.process.returncode == 0


def test_a_signal_during_the_start_ends_it_and_nothing_says_ready(model: Path, tmp_path: Path) -> None:
    engine = program(tmp_path / "engine", "#!/bin/sh\nexec sleep 600\n")
    with serving("--model", str(model), engine=engine) as server:
        server.wait_for("listening on ")
        server.stop(signal.SIGTERM)
        server.end()
        assert server.process.returncode == 0
        assert len(server.lines) == 1, "only where it listens"


@needs_scripted_engine
@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_the_process_at_once_whichever_was_the_first(
    model: Path, tmp_path: Path, first: signal.Signals, second: signal.Signals
) -> None:
    files = ScriptedEngineFiles(tmp_path)
    files.plan({"seq": 1, "release": 0, "script": ["ACCEPT <id> 7", "@hold"]})
    with serving("--model", str(model), "--model-id", "m", **files.environment) as server:
        server.wait_for("ready")
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        connection.request("POST", "/v1/completions", '{"model":"m","prompt":"hi","stream":true}')
        assert connection.getresponse().status == 200
        server.stop(first)
        server.process.send_signal(second)
        server.end()
        assert server.process.returncode == -second
        connection.close()


@needs_scripted_engine
def test_section_4_an_empty_key_says_that_no_key_is_asked_for(model: Path) -> None:
    with serving("--model", str(model), COLI_API_KEY="") as server:
        server.wait_for("the key is empty: no key is asked for")
        server.wait_for("ready")
        assert server.get("/v1/models")[0] == 200


@needs_scripted_engine
def test_section_4_the_key_of_the_variable_is_asked_for_and_never_logged(model: Path) -> None:
    with serving("--model", str(model), COLI_API_KEY="s3cret-key") as server:
        assert "$COLI_API_KEY" in server.wait_for("  curl ")
        assert server.get("/v1/models")[0] == 401
        assert server.get("/v1/models", Authorization="Bearer s3cret-key")[0] == 200
        assert server.get("/v1/s3cret-key")[0] == 401
        server.process.terminate()
        log = server.end()
        assert "s3cret-key" not in log + "\n".join(server.lines)
        assert "status=401" in log


@needs_scripted_engine
@pytest.mark.parametrize("by_flag", [False, True])
def test_the_start_message_shows_what_works_with_the_key_and_not_the_key(model: Path, by_flag: bool) -> None:
    given = ["--api-key", "s3cret key"] if by_flag else []
    with serving("--model", str(model), *given, COLI_API_KEY="other" if by_flag else "s3cret key") as server:
        curl = server.wait_for("  curl ")
        lines = server.lines[1 + server.lines.index(server.wait_for("ready: ")) :]
    assert lines[-1] == curl and len(lines) == 1 + by_flag
    script = "\n".join(["curl() { printf '%s\\n' \"$@\"; }", *lines])
    environ = os.environ | {"COLI_API_KEY": "other" if by_flag else "s3cret key"}
    done = subprocess.run(
        ["bash", "-c", script], env=environ, input="s3cret key\n", capture_output=True, text=True, timeout=60,
        check=True,
    )  # fmt: skip
    assert "Authorization: Bearer s3cret key" in done.stdout.splitlines()
    assert "s3cret" not in "\n".join(server.lines)


@needs_scripted_engine
def test_the_first_line_names_the_engine(model: Path) -> None:
    with serving("--model", str(model)) as server:
        assert server.wait_for("listening on ").endswith(f", starting the engine {SCRIPTED_ENGINE}")


@needs_scripted_engine
def test_section_4_switching_the_host_guard_off_is_warned_about(model: Path) -> None:
    with serving("--model", str(model), "--allowed-host", "*") as server:
        server.wait_for("warning: --allowed-host * switches the Host guard off")
        server.wait_for("ready")
        assert server.get("/health", Host="evil.example")[0] == 200


@needs_scripted_engine
def test_log_lines_as_json_are_json_every_one(model: Path) -> None:
    with serving("--model", str(model), "--log-format", "json") as server:
        server.wait_for("ready")
        server.get("/health")
        server.process.terminate()
        records = [json.loads(line) for line in server.end().splitlines()]
    requests = [record for record in records if record["event"] == "request"]
    assert [(record["path"], record["status"], record["outcome"]) for record in requests] == [
        ("/health", 200, "ok")
    ]


def test_section_17_the_engine_gets_the_launch_contract(model: Path, tmp_path: Path) -> None:
    engine = program(tmp_path / "engine", f"#!/bin/sh\nenv > {tmp_path}/env\necho $@ > {tmp_path}/argv\n")
    flags = ["--cap", "5", "--kv-slots", "3", "--max-tokens", "77", "--port", "0"]
    refused("serve", "--model", str(model), "--engine", engine, *flags, CTX="512", SEED="9")
    given = dict(line.split("=", 1) for line in (tmp_path / "env").read_text().splitlines() if "=" in line)
    wanted = {
        "SNAP": str(model), "SERVE": "1", "SERVE_BATCH": "1", "NGEN": "77", "KV_SLOTS": "3", "CTX": "512",
        "SEED": "9",
    }  # fmt: skip
    assert {name: given.get(name) for name in wanted} == wanted
    assert (tmp_path / "argv").read_text() == "5\n"


@needs_scripted_engine
def test_section_5_the_context_length_is_the_smaller_of_the_models_and_the_operators(model: Path) -> None:
    (model / "config.json").write_text('{"model_type": "glm4", "max_position_embeddings": 2048}')
    for given, shown in (("512", 512), ("4096", 2048)):
        with serving("--model", str(model), CTX=given) as server:
            server.wait_for("ready")
            (listed,) = json.loads(server.get("/v1/models")[1])["data"]
            assert listed["context_length"] == shown


@needs_scripted_engine
def test_an_idle_gateway_stays_small_and_loads_no_numpy(model: Path) -> None:
    with serving("--model", str(model)) as server:
        server.wait_for("ready")
        server.get("/health")
        process = psutil.Process(server.process.pid)
        libraries = {Path(region.path).name for region in process.memory_maps()}
        assert not [
            name for name in libraries if "numpy" in name or "multiarray" in name or "tokenizers" in name
        ]
        assert process.memory_info().rss < 60e6
