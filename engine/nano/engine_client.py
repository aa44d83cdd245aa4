"""Ask a real engine process for greedy answers over the serve protocol.

Starts any engine that keeps the launch contract (wire contract, section 1), keeps all its slots busy, and
returns the text of each answer as the engine sent it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final

from generated import launch
from generated.commands import write_submit
from generated.frames import Data, Done, Error, FrameReader, Ready
from generated.wire import ProtocolFault

REFERENCE_ENGINE: Final = (sys.executable, "-m", "engine.reference")
MOST_TOKENS: Final = "2048"
SEED: Final = "1"  # of answers that are sampled: the same ones each time
_READ_BYTES: Final = 1 << 16


@dataclass(frozen=True)
class Answer:
    """The text of one answer; ``ended`` is True when the model itself ended it, not the token limit."""

    text: str
    ended: bool
    tokens: int


class EngineFailure(RuntimeError):
    """The engine refused a request, broke the protocol or died."""


class EngineProcess:
    """An engine child; use as a context manager."""

    def __init__(self, model: Path, slots: int = 8, command: Sequence[str] = REFERENCE_ENGINE) -> None:
        environment = {
            **os.environ,
            **launch.FIXED,
            launch.SNAP: str(model),
            launch.KV_SLOTS: str(slots),
            launch.NGEN: MOST_TOKENS,
            launch.SEED: SEED,
        }
        self._slots = slots
        self._identity = 0
        self._reader = FrameReader()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the child; closed by close)
        self._process = subprocess.Popen(
            [*command, "0"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        self._wait_until_ready()

    def __enter__(self) -> EngineProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End of input is the orderly shutdown; an engine that does not follow it is killed."""
        if self._process.stdin:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()
        self._log.close()

    def _frames(self) -> list[object]:
        if self._process.stdout is None:
            raise EngineFailure("the engine has no output")
        data = os.read(self._process.stdout.fileno(), _READ_BYTES)
        if not data:
            self._log.seek(0)
            lines = self._log.read().decode("utf-8", "replace").splitlines() or ["no log"]
            raise EngineFailure(f"the engine ended: {lines[-1]}")
        frames: list[object] = list(self._reader.feed(data))
        for frame in frames:
            if isinstance(frame, ProtocolFault):
                raise EngineFailure(str(frame))
        return frames

    def _wait_until_ready(self) -> None:
        while not any(isinstance(frame, Ready) for frame in self._frames()):
            pass

    def answer(
        self,
        prompts: Sequence[tuple[str, int]],
        report: Callable[[int], None] = lambda count: None,
        temperature: float = 0.0,
    ) -> list[Answer]:
        """The answers to ``(prompt, max_tokens)`` pairs, in their order; raises EngineFailure."""
        answers: list[Answer | None] = [None] * len(prompts)
        running: dict[int, tuple[int, int, bytearray]] = {}
        free, next_position, finished = list(range(self._slots)), 0, 0
        while finished < len(prompts):
            while free and next_position < len(prompts):
                self._submit(*prompts[next_position], next_position, free.pop(), running, temperature)
                next_position += 1
            for frame in self._frames():
                if isinstance(frame, Data):
                    running[frame.id][2].extend(frame.payload)
                elif isinstance(frame, Error):
                    raise EngineFailure(f"ERROR {' '.join(frame.words)}")
                elif isinstance(frame, Done):
                    position, slot, text = running.pop(frame.id)
                    free.append(slot)
                    finished += 1
                    answers[position] = Answer(
                        text.decode("utf-8", "replace"), not frame.length_limited, frame.completion_tokens
                    )
                    report(finished)
        return [answer for answer in answers if answer is not None]

    def _submit(
        self,
        prompt: str,
        max_tokens: int,
        position: int,
        slot: int,
        running: dict[int, tuple[int, int, bytearray]],
        temperature: float,
    ) -> None:
        if self._process.stdin is None:
            raise EngineFailure("the engine has no input")
        self._identity += 1
        running[self._identity] = (position, slot, bytearray())
        self._process.stdin.write(
            write_submit(self._identity, slot, prompt.encode("utf-8"), max_tokens, temperature, 1.0)
        )
        self._process.stdin.flush()
