"""``coli demo``: the whole road once, as a newcomer sees it.

Starts the gateway with the embedded model in a process of its own on a free port, streams one chat answer,
asks for one text completion, and stops everything.
"""

from __future__ import annotations

import http.client
import json
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, Final, TextIO
from urllib.parse import urlsplit

from server.model import embedded_model
from server.serving import LISTENING, READY

START_SECONDS: Final = 90.0
ANSWER_SECONDS: Final = 60.0
STOP_SECONDS: Final = 15.0
TEXT_PROMPT: Final = "The capital of France is"


class DemoError(Exception):
    """The demonstration did not work; the text is one line."""


def run_demo(out: TextIO, *, engine: str | None, question: str) -> None:
    """Run the demonstration and print it to ``out``. Raises DemoError."""
    with _gateway(engine) as address:
        model = embedded_model().parent.name
        print(f"gateway: http://{address[0]}:{address[1]}   model: {model}", file=out)
        print(f"\nPOST /v1/chat/completions (stream)\n> {question}\n< ", end="", file=out, flush=True)
        body: dict[str, Any] = {"model": model, "stream": True, "temperature": 0, "max_tokens": 64}
        body["messages"] = [{"role": "user", "content": question}]
        for piece in _stream(address, "/v1/chat/completions", body):
            print(piece, end="", file=out, flush=True)
        body = {"model": model, "prompt": TEXT_PROMPT, "temperature": 0, "max_tokens": 16}
        text = _answer(address, "/v1/completions", body)["choices"][0]["text"]
        print(f"\n\nPOST /v1/completions\n> {TEXT_PROMPT}\n< {text}\n", file=out, flush=True)


@contextmanager
def _gateway(engine: str | None) -> Iterator[tuple[str, int]]:
    command = [sys.executable, "-m", "server.cli", "serve", "--port", "0"]
    if engine is not None:
        command += ["--engine", engine]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True
        )
        try:
            yield _address(process, log)
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()


def _address(process: subprocess.Popen[str], log: IO[bytes]) -> tuple[str, int]:
    """Wait until the gateway says that it is ready; where it listens."""
    assert process.stdout is not None
    lines: queue.Queue[str | None] = queue.Queue()
    threading.Thread(target=_read_lines, args=(process.stdout, lines), daemon=True).start()
    url = ""
    try:
        while (line := lines.get(timeout=START_SECONDS)) is not None:
            if line.startswith(LISTENING):
                url = line.removeprefix(LISTENING).split(",")[0]
            if line.startswith(READY):
                found = urlsplit(url)
                assert found.hostname is not None and found.port is not None
                return found.hostname, found.port
    except queue.Empty:
        raise DemoError(f"the gateway was not ready after {START_SECONDS:.0f} seconds") from None
    process.wait()
    log.seek(0)
    reason = log.read().decode("utf-8", "replace").strip() or f"it ended with code {process.returncode}"
    raise DemoError(f"the gateway did not start: {reason}")


def _read_lines(pipe: IO[str], lines: queue.Queue[str | None]) -> None:
    for line in pipe:
        lines.put(line.rstrip("\n"))
    lines.put(None)


def _post(address: tuple[str, int], path: str, body: dict[str, Any]) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(*address, timeout=ANSWER_SECONDS)
    try:
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
    except OSError as fault:
        raise DemoError(f"{path} was not answered: {fault}") from None
    if response.status != http.client.OK:
        raise DemoError(
            f"{path} was answered with {response.status}: {response.read().decode('utf-8', 'replace')}"
        )
    return response


def _answer(address: tuple[str, int], path: str, body: dict[str, Any]) -> Any:
    try:
        return json.loads(_post(address, path, body).read())
    except (OSError, ValueError, http.client.HTTPException) as fault:
        raise DemoError(f"the answer of {path} is broken: {fault}") from None


def _stream(address: tuple[str, int], path: str, body: dict[str, Any]) -> Iterator[str]:
    response = _post(address, path, body)
    try:
        while line := response.readline():
            data = line.removeprefix(b"data: ").strip()
            if data == b"[DONE]":
                return
            if data:
                for choice in json.loads(data)["choices"]:
                    yield choice["delta"].get("content") or ""
    except (OSError, ValueError, KeyError, http.client.HTTPException) as fault:
        raise DemoError(f"the stream of {path} is broken: {fault}") from None
    raise DemoError(f"the stream of {path} ended early")
