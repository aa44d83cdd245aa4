"""Requests whose masks are heavy, so that some wait for theirs with their logits in hand."""

from __future__ import annotations

from collections.abc import Sequence

from generated import commands, frames
from tests.engine.engine_process import EngineProcess, submit

PROMPT = "<|user|>json<|assistant|>"
MASKS = b"root ::= (.{0,30}){0,30}"
"""Some of its masks take half of what a mask may take."""
_STEPS = 30
"""After so many steps most of these requests have come to such masks; the random model ended few before."""


def cancel_while_waiting(engine: EngineProcess, plain: int, heavy: Sequence[int]) -> list[int]:
    """Have requests of heavy masks beside one of light masks, cancel all, and return those that waited when
    they were cancelled.

    The light one, in the first slot, has the first token of the pass of every step: who waits has none behind
    its last one, though its prompt was done long before.
    """
    every = [plain, *heavy]
    engine.send(
        submit(plain, PROMPT, 400, extra=b"root ::= [a-z]{400}")
        + b"".join(
            submit(number, PROMPT, 400, slot=slot, temperature=1.0, extra=MASKS)
            for slot, number in enumerate(heavy, start=1)
        )
    )
    while len(engine.of(plain)) < _STEPS:
        engine.wait_for(lambda frame: getattr(frame, "id", None) == plain)
    engine.send(b"".join(map(commands.write_cancel, every)))
    engine.wait_ends(every)
    last = max(place for place, frame in enumerate(engine.received) if _is_token(frame, plain))
    behind = engine.received[last:]
    cancelled = {
        frame.id for frame in behind if isinstance(frame, frames.Error) and frame.words == ("CANCELLED",)
    }
    return [
        number
        for number in heavy
        if number in cancelled and not any(_is_token(frame, number) for frame in behind)
    ]


def _is_token(frame: object, number: int) -> bool:
    return isinstance(frame, frames.Data) and frame.id == number
