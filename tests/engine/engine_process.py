"""A real engine process on real pipes, driven through the generated writer and reader."""

from __future__ import annotations

import os
import select
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from generated import commands, frames

ROOT = Path(__file__).parents[2]
DEADLINE_SECONDS = 60.0
LAUNCH_NAMES = ("SNAP", "SERVE", "SERVE_BATCH", "NGEN", "KV_SLOTS", "CTX", "SEED")


class EngineProcess:
    """An engine, started as the gateway starts it; `received` holds every frame so far."""

    def __init__(
        self,
        command: list[str],
        directory: Path,
        settings: Mapping[str, str] | None = None,
        restore_signals: bool = True,
    ) -> None:
        environment = {name: value for name, value in os.environ.items() if name not in LAUNCH_NAMES}
        environment |= {
            "SNAP": str(directory),
            "SERVE": "1",
            "SERVE_BATCH": "1",
            "NGEN": "1024",
            "KV_SLOTS": "4",
        }
        environment |= {"SEED": "1", "OMP_NUM_THREADS": "1", **(settings or {})}
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (closed in __exit__)
        self.process = subprocess.Popen(
            [*command, "0"],
            env=environment,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            bufsize=0,
            restore_signals=restore_signals,
        )
        self._reader = frames.FrameReader()
        self.received: list[Any] = []
        self.raw = bytearray()
        self.ended = False

    def __enter__(self) -> EngineProcess:
        self.wait_for(lambda frame: isinstance(frame, frames.Ready))
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(DEADLINE_SECONDS)
        for pipe in (self.process.stdin, self.process.stdout, self._log):
            if pipe is not None:
                pipe.close()

    @property
    def log(self) -> str:
        """Everything on the engine's stderr so far."""
        self._log.seek(0)
        return self._log.read().decode()

    def send(self, data: bytes) -> None:
        """Write commands, all of them."""
        assert self.process.stdin is not None
        view = memoryview(data)
        while view:
            view = view[self.process.stdin.write(view) :]

    def submit(self, request: int, prompt: str | bytes, max_tokens: int = 8, **fields: Any) -> None:
        """Send a SUBMIT; slot 0, greedy and top_p 1 unless said otherwise."""
        self.send(submit(request, prompt, max_tokens, **fields))

    def read_once(self, deadline: float) -> list[Any]:
        """Frames of the next bytes that arrive; sets `ended` at EOF."""
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, (
            f"no frame within {DEADLINE_SECONDS} s; so far {self.received[-5:]}; log: {self.log[-2000:]}"
        )
        data = os.read(self.process.stdout.fileno(), 1 << 16)
        self.raw += data
        if not data:
            self.ended = True
            return []
        new = self._reader.feed(data)
        for frame in new:
            assert not isinstance(frame, frames.ProtocolFault), f"{frame} in {bytes(self.raw[-300:])!r}"
        self.received += new
        return new

    def wait_for(self, wanted: Callable[[Any], bool]) -> Any:
        """The first frame from now on that is `wanted`."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            for frame in self.read_once(deadline):
                if wanted(frame):
                    return frame
            if self.ended:
                code = self.process.wait(DEADLINE_SECONDS)
                raise AssertionError(f"engine ended early with {code}; log: {self.log[-2000:]}")

    def wait_ends(self, requests: Iterable[int]) -> None:
        """Read until each request has its DONE or ERROR."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        missing = set(requests) - {frame.id for frame in self.received if is_end(frame)}
        while missing:
            missing -= {frame.id for frame in self.read_once(deadline) if is_end(frame)}
            assert not (missing and self.ended), f"engine ended without {missing}; log: {self.log[-2000:]}"

    def finish(self) -> int:
        """Close stdin, read to EOF, return the exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.drain()

    def drain(self) -> int:
        """Read to EOF, return the exit code."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not self.ended:
            self.read_once(deadline)
        return self.process.wait(DEADLINE_SECONDS)

    def of(self, request: int) -> list[Any]:
        """Frames of one request in order."""
        return [frame for frame in self.received if getattr(frame, "id", None) == request]

    def text(self, request: int) -> bytes:
        """The generated bytes of a request."""
        return b"".join(frame.payload for frame in self.of(request) if isinstance(frame, frames.Data))

    def error(self, request: int) -> tuple[str, ...]:
        """Words of the only frame of a request, which must be an ERROR."""
        (frame,) = self.of(request)
        assert isinstance(frame, frames.Error), frame
        return tuple(frame.words)

    def ask(self, request: int, prompt: str | bytes, max_tokens: int = 8, **fields: Any) -> list[Any]:
        """Submit, wait for the end, return the request's frames."""
        self.submit(request, prompt, max_tokens, **fields)
        self.wait_ends([request])
        return self.of(request)


def is_end(frame: object) -> bool:
    """DONE or ERROR."""
    return isinstance(frame, frames.Done | frames.Error)


def submit(request: int, prompt: str | bytes, max_tokens: int = 8, **fields: Any) -> bytes:
    """The bytes of a SUBMIT; slot 0, greedy and top_p 1 unless said otherwise."""
    text = prompt.encode() if isinstance(prompt, str) else prompt
    values = {"slot": 0, "temperature": 0.0, "top_p": 1.0, **fields}
    return commands.write_submit(id=request, prompt=text, max_tokens=max_tokens, **values)
