"""What the gateway takes away from an engine at one stream.

    python tests/bench/bench_engine_gateway.py [--model DIR] [--tokens 400] [--rounds 9]

Tokens/s of the engine alone over its pipes, from SUBMIT to DONE, and of the same engine behind `coli serve`,
from the request to the last byte of the answer's server-sent events. Both decode the same prompt greedily, a
token per event, and never end early; the texts must be equal. Rounds alternate between all parties and the
best of each counts, so that a busy machine hurts all alike. The client is a plain socket that collects bytes
and looks at them after the clock has stopped.
"""

from __future__ import annotations

import argparse
import json
import socket
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench.bench_reference import endless_copy  # noqa: E402
from tests.clients.gateways import Gateway  # noqa: E402
from tests.engine.engine_process import EngineProcess, submit  # noqa: E402
from tests.engine.engines import ENGINES  # noqa: E402

PROMPT = "the quick brown fox jumps over the lazy dog"
MODEL_ID = "m"
LOST_AT_MOST = 15.0
"""Percent of the engine's tokens/s."""
END = b"data: [DONE]\n\n"
LAST_CHUNK = b"0\r\n\r\n"


class Alone:
    """The engine over its pipes."""

    def __init__(self, engine: EngineProcess, tokens: int) -> None:
        self.best = 0.0
        self.text = ""
        self._engine = engine
        self._tokens = tokens
        self._next = 1

    def measure(self) -> None:
        """One answer. The prompt is in the KV slot from the second round on, as behind the gateway."""
        request, self._next = self._next, self._next + 1
        command = submit(request, PROMPT, self._tokens)
        start = perf_counter()
        self._engine.send(command)
        self._engine.wait_ends([request])
        elapsed = perf_counter() - start
        assert self._engine.of(request)[-1].completion_tokens == self._tokens
        self.text = self._engine.text(request).decode("utf-8", "replace")
        self.best = max(self.best, self._tokens / elapsed)
        self._engine.received.clear()
        self._engine.raw.clear()


class Behind:
    """The engine behind the gateway, which has one connection to this client."""

    def __init__(self, gateway: Gateway, tokens: int) -> None:
        self.best = 0.0
        self.text = ""
        self._tokens = tokens
        host, port = gateway.url.removeprefix("http://").split(":")
        self._socket = socket.create_connection((host, int(port)), timeout=120)
        body = json.dumps(
            {"model": MODEL_ID, "prompt": PROMPT, "max_tokens": tokens, "temperature": 0, "stream": True}
        ).encode()
        head = (
            f"POST /v1/completions HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        self._request = head.encode() + body

    def measure(self) -> None:
        """One answer, from the request to the end of its events."""
        pieces = []
        start = perf_counter()
        self._socket.sendall(self._request)
        tail = b""
        while not tail.endswith(LAST_CHUNK):
            pieces.append(self._socket.recv(1 << 16))
            assert pieces[-1], b"".join(pieces)[-500:]
            tail = (tail + pieces[-1])[-len(LAST_CHUNK) :]
        elapsed = perf_counter() - start
        answer = b"".join(pieces)
        assert answer.startswith(b"HTTP/1.1 200 "), answer[:500]
        assert END in answer, answer[-500:]
        events = [
            json.loads(line[len(b"data: ") :]) for line in answer.split(b"\n") if line.startswith(b"data: {")
        ]
        self.text = "".join(choice["text"] for event in events for choice in event["choices"])
        self.best = max(self.best, self._tokens / elapsed)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=Path, default=ROOT / "engine" / "nano" / "model")
    parser.add_argument("--tokens", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    environment = {"OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        directory = endless_copy(options.model, Path(scratch))
        parties: dict[str, tuple[Alone, Behind]] = {}
        for name, find in sorted(ENGINES.items(), reverse=True):
            command = find()
            if isinstance(command, str):
                print(f"{name}: absent, {command}")
                continue
            engine = stack.enter_context(EngineProcess(command, directory, {"KV_SLOTS": "1", **environment}))
            arguments = ("--model", str(directory), "--model-id", MODEL_ID, "--engine", name)
            gateway = Gateway(*arguments, environment=environment)
            stack.callback(gateway.close)
            parties[name] = Alone(engine, options.tokens), Behind(gateway, options.tokens)
        for _ in range(options.rounds):
            for pair in parties.values():
                for party in pair:
                    party.measure()
    print("| engine | alone, tokens/s | behind the gateway, tokens/s | lost | at most |")
    print("|---|---:|---:|---:|---:|")
    for name, (alone, behind) in parties.items():
        assert alone.text == behind.text, (alone.text[:200], behind.text[:200])
        lost = 100 * (1 - behind.best / alone.best)
        print(f"| {name} | {alone.best:,.0f} | {behind.best:,.0f} | {lost:.1f} % | {LOST_AT_MOST:.0f} % |")


if __name__ == "__main__":
    main()
