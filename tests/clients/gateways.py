"""Real gateways for the client tests: `coli serve` as a process, with a scripted or the real engine."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from tests.scripted import SCRIPTED_ENGINE, ScriptedEngineFiles

ROOT = Path(__file__).parents[2]
START_SECONDS = 60


class Gateway:
    """One running `coli serve`. ``url`` is where it listens."""

    def __init__(self, *arguments: str, environment: dict[str, str] | None = None, root: Path = ROOT) -> None:
        """``root``: the checkout whose build is run."""
        command = [sys.executable, "-m", "server.cli", "serve", "--port", "0", *arguments]
        self.process = subprocess.Popen(
            command,
            cwd=root,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._ready = threading.Event()
        self.lines: list[str] = []
        self.url = ""
        self._reading = threading.Thread(target=self._read)
        self._reading.start()
        if not self._ready.wait(START_SECONDS) or not self.url:
            self.close()
            raise RuntimeError("the gateway did not start:\n" + "".join(self.lines))

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            found = re.search(r"listening on (http://[0-9.:]+)", line)
            if found:
                self.url = found[1]
            if line.startswith("ready:"):
                self._ready.set()
        self._ready.set()

    def close(self) -> int:
        """SIGTERM, and the exit code."""
        self.process.terminate()
        code = self.process.wait(30)
        self._reading.join()
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


class ScriptedGateway(Gateway):
    """A gateway before the scripted engine; ``plan`` says what it answers to each SUBMIT from now on."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        self._files = ScriptedEngineFiles(directory)
        self._count = 0
        model = directory / "served"
        model.mkdir()
        config = {"model_type": "glm", "max_position_embeddings": 4096}
        (model / "config.json").write_text(json.dumps(config))
        super().__init__(
            *("--model", str(model), "--model-id", "served", "--kv-slots", "2"),
            *("--engine", str(SCRIPTED_ENGINE)),
            *arguments,
            environment=self._files.environment,
        )

    def plan(self, *scripts: list[str]) -> None:
        """One script per SUBMIT, the last one for all that follow."""
        self._count += 1
        plan: dict[str, Any] = {"seq": self._count, "repeat_last": True, "script": list(scripts)}
        self._files.plan(plan)

    def prompts(self) -> list[str]:
        """The prompts of the SUBMITs under the present plan."""
        whole = self._files.submits(self._count)
        return [frame.partition(b"\n")[2].rstrip(b"\n").decode("utf-8") for frame in whole]

    def cancelled(self) -> bool:
        """Whether the engine was told to cancel a request, under any plan."""
        return any(record["kind"] == "CANCEL" for record in self._files.records())


def ask_program(program: str, *arguments: str, home: Path, directory: Path, **variables: str) -> str:
    """What a client program prints: one question without a terminal, and no settings but ``variables``.

    It runs in ``directory`` and takes ``home`` for the user's own. Raises CalledProcessError when it fails.
    """
    done = subprocess.run(
        [program, *arguments],
        cwd=directory,
        env={"PATH": os.environ["PATH"], "HOME": str(home), **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    return done.stdout


def answering(*pieces: str, prompt_tokens: int = 7, length: bool = False) -> list[str]:
    """A script that answers with the pieces, one DATA frame each."""
    frames = [f"DATA <id> <n> => {piece}" for piece in pieces]
    done = f"DONE <id> STAT {len(pieces)} 2.5 0 1.0 {prompt_tokens} {int(length)}"
    return [f"ACCEPT <id> {prompt_tokens}", *frames, done]
