"""A whole gateway in the test's process, with the scripted engine behind it, and a client that reads
answers raw.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from server.app import build_gateway, create_server
from server.model import embedded_model, load_model
from server.settings import resolve
from tests.engine.engines import native
from tests.scripted import SCRIPTED_ENGINE, ScriptedEngineFiles

PATIENCE = 15.0  # seconds after which something that must happen is a failure

MODEL_TYPES = {"glm": "glm_moe_dsa", "olmoe": "olmoe", "llama": "llama"}
DONE = "DONE <id> STAT 1 2.5 0 1.0 7 0"


@dataclass
class Answer:
    """One HTTP answer, read to its end; ``complete`` is false when it was cut."""

    status: int
    headers: dict[str, str]
    body: bytes
    complete: bool

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> tuple[int, str | None, str | None]:
        """Status, param and code; the envelope must be whole."""
        body = self.json
        assert list(body) == ["error"]
        assert list(body["error"]) == ["message", "type", "param", "code"]
        return self.status, body["error"]["param"], body["error"]["code"]

    @property
    def message(self) -> str:
        message: str = self.json["error"]["message"]
        return message

    @property
    def events(self) -> list[Any]:
        """The data of every event, ``[DONE]`` as text; no other field but ``event`` may occur."""
        found = []
        for block in self.body.decode("utf-8").split("\n\n"):
            for line in block.splitlines():
                assert line.startswith(("data: ", "event: ")), line
                if line.startswith("data: "):
                    data = line.removeprefix("data: ")
                    found.append(data if data == "[DONE]" else json.loads(data))
        return found

    @property
    def event_names(self) -> list[str]:
        lines = self.body.decode("utf-8").splitlines()
        return [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]


class Gateway:
    """One running gateway. ``plan`` says what the engine answers from now on."""

    def __init__(
        self,
        directory: Path,
        model: Path,
        *,
        environ: dict[str, str],
        model_id: str = "test-model",
        **flags: str,
    ) -> None:
        self._files = ScriptedEngineFiles(directory)
        self._seq = 0
        self._scripts: list[list[str]] = []
        self._match: list[list[Any]] = []
        environment = {
            **os.environ,
            **environ,
            **self._files.environment,
        }
        given = {"engine": str(SCRIPTED_ENGINE), "port": "0", **flags}
        # one second of pause before a restart is for operators; nothing of the contract hangs on it
        settings = replace(resolve(given, environment), restart_backoff_first=0.01)
        served = load_model(str(model), model_id=model_id, arch=settings.arch, context=None)
        self.parts = build_gateway(settings, served, environment)
        self.server = create_server(self.parts)
        self.port = self.server.effective_port
        self._thread = threading.Thread(target=self.server.run)
        self.parts.engine.start()
        self._thread.start()
        self.parts.engine.wait_ready()

    def close(self) -> None:
        self.server.shut_down(2.0)
        self._thread.join()
        self.parts.engine.shut_down()
        self.parts.keepalive.close()

    # -- the engine ------------------------------------------------------------------------------------------

    def plan(self, *scripts: list[str], match: dict[str, list[str]] | None = None, release: int = 0) -> None:
        """One script per SUBMIT, the last one again and again; without scripts the engine's own default.

        ``match``: scripts for prompts that contain a text, tried first.
        """
        if not release:
            self._seq += 1
            self._scripts = list(scripts)
            self._match = [[text, script] for text, script in (match or {}).items()]
        plan: dict[str, Any] = {
            "seq": self._seq,
            "release": release,
            "repeat_last": True,
            "match": self._match,
        }
        if self._scripts:
            plan["script"] = self._scripts
        self._files.plan(plan)

    def release(self) -> None:
        """Let go of ``@hold``."""
        self.plan(release=1)

    def records(self, *kinds: str) -> list[dict[str, Any]]:
        """What the engine logged under the current plan."""
        found = self._files.records()
        return [record for record in found if record.get("seq") == self._seq and record["kind"] in kinds]

    def submits(self) -> list[bytes]:
        """The exact bytes of every SUBMIT under the current plan, without its id."""
        whole = self._files.submits(self._seq)
        return [b" ".join([b"SUBMIT", *frame.split(b" ", 2)[2:]]) for frame in whole]

    def eventually(self, condition: Callable[[], object], what: str) -> None:
        limit = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < limit, what
            time.sleep(0.002)

    # -- clients ---------------------------------------------------------------------------------------------

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def send(
        self,
        connection: http.client.HTTPConnection,
        path: str,
        body: Any,
        headers: dict[str, str] | None = None,
    ) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request("POST", path, data, {"Content-Type": "application/json", **(headers or {})})

    def read(self, connection: http.client.HTTPConnection) -> Answer:
        response = connection.getresponse()
        try:
            body, complete = response.read(), True
        except http.client.IncompleteRead as cut:
            body, complete = cut.partial, False
        headers = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, headers, body, complete)

    def post(self, path: str, body: Any, headers: dict[str, str] | None = None) -> Answer:
        with contextlib.closing(self.connect()) as connection:
            self.send(connection, path, body, headers)
            return self.read(connection)

    def get(self, path: str, headers: dict[str, str] | None = None, method: str = "GET") -> Answer:
        with contextlib.closing(self.connect()) as connection:
            connection.request(method, path, headers=headers or {})
            return self.read(connection)

    def complete(self, prompt: Any = "hi", **fields: Any) -> Answer:
        return self.post("/v1/completions", {"model": "test-model", "prompt": prompt, **fields})

    def chat(self, content: Any = "Hi", **fields: Any) -> Answer:
        messages = [{"role": "user", "content": content}]
        return self.post("/v1/chat/completions", {"model": "test-model", "messages": messages, **fields})

    def message(self, content: Any = "Hi", **fields: Any) -> Answer:
        messages = [{"role": "user", "content": content}]
        body = {"model": "test-model", "max_tokens": 8, "messages": messages, **fields}
        return self.post("/v1/messages", body)

    def counters(self) -> dict[str, int]:
        counters: dict[str, int] = self.get("/health").json["scheduler"]
        return counters


def scripted_model(directory: Path, family: str) -> Path:
    """A model directory with nothing but a config.json, which is all the gateway reads."""
    model = directory / "served"
    model.mkdir()
    config = {"model_type": MODEL_TYPES[family], "max_position_embeddings": 4096}
    (model / "config.json").write_text(json.dumps(config))
    return model


@pytest.fixture(scope="module")
def open_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Gateway]]:
    """Start a gateway, or take the running one with the same settings unless a ``fresh`` one is asked for;
    closed after the module.
    """
    if not SCRIPTED_ENGINE.exists():
        pytest.skip("the scripted engine of ../shared is not here")
    running: dict[str, Gateway] = {}

    def start(
        *, family: str = "glm", environ: dict[str, str] | None = None, fresh: bool = False, **flags: str
    ) -> Gateway:
        key = f"fresh {len(running)}" if fresh else json.dumps([family, environ, flags], sort_keys=True)
        if key not in running:
            directory = tmp_path_factory.mktemp("gateway")
            given = {"max_tokens": "16", **flags}
            running[key] = Gateway(
                directory, scripted_model(directory, family), environ=environ or {}, **given
            )
        running[key].plan()
        return running[key]

    yield start
    for gateway in running.values():
        gateway.close()


@pytest.fixture
def gateway(open_gateway: Callable[..., Gateway]) -> Gateway:
    """A gateway with one slot and every capability; the engine's default script is in force."""
    return open_gateway()


@pytest.fixture
def old_gateway(open_gateway: Callable[..., Gateway]) -> Gateway:
    """A gateway whose engine's family can nothing beyond text."""
    return open_gateway(family="olmoe")


@pytest.fixture(scope="session", params=["reference", "native"])
def real_gateway(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Gateway]:
    """A gateway with a real engine on the embedded model, two slots; it serves test-model."""
    engine = request.param
    if engine == "native":
        command = native()
        if isinstance(command, str):
            pytest.skip(command)
        (engine,) = command
    directory = tmp_path_factory.mktemp(request.param)
    gateway = Gateway(directory, embedded_model(), environ={}, engine=engine, kv_slots="2")
    yield gateway
    gateway.close()
