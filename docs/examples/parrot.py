#!/usr/bin/env python3
"""A whole engine in eighty lines: it says the prompt again, a word at a time.

coli serve --engine docs/examples/parrot.py
"""

from __future__ import annotations

import os
import select
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # an engine of your own just needs `generated` on its path

from generated import commands, frames, launch
from generated.errors import WireError

OUT = sys.stdout.buffer
SLOTS = int(os.environ.get(launch.KV_SLOTS, "1"))
CONTEXT = int(os.environ.get(launch.CTX, "2048"))


class Parrot:
    """Requests in flight: what is left to say, how many words were said, how many the prompt had."""

    def __init__(self) -> None:
        self.reader = commands.CommandReader()
        self.live: dict[int, list] = {}
        self.slots: dict[int, int] = {}

    def take(self, data: bytes) -> None:
        """Act on every command in ``data``."""
        for item in self.reader.feed(data):
            if isinstance(item, commands.Submit):
                words = item.prompt.split()
                if refusal := self.refusal(item, len(words)):
                    OUT.write(frames.write_error(item.id, *refusal))
                    continue
                OUT.write(frames.write_accept(item.id, len(words)))
                self.slots[item.slot] = item.id
                self.live[item.id] = [words[: item.max_tokens], 0, len(words), item.max_tokens < len(words)]
            elif isinstance(item, commands.Stop | commands.Cancel) and item.id not in self.live:
                OUT.write(frames.write_error(item.id, WireError.NOT_FOUND))
            elif isinstance(item, commands.Cancel):
                del self.live[item.id]
                OUT.write(frames.write_error(item.id, WireError.CANCELLED))
            elif isinstance(item, commands.Stop):
                self.live[item.id][0] = []
            elif isinstance(item, commands.Refusal):
                OUT.write(frames.write_error(item.id, item.code))
            elif isinstance(item, commands.ProtocolFault):
                OUT.write(frames.write_error(item.id, item.wire_code))
                OUT.flush()
                sys.exit(1)

    def refusal(self, item: commands.Submit, count: int) -> tuple[str, ...]:
        """Why a prompt of ``count`` words is not taken; the first reason counts."""
        if item.id in self.live:
            return (WireError.DUPLICATE_ID,)
        if item.slot >= SLOTS:
            return (WireError.BAD_REQUEST,)
        if self.slots.get(item.slot) in self.live:
            return (WireError.SLOT_BUSY,)
        if not count:
            return (WireError.EMPTY_PROMPT,)
        return (WireError.CONTEXT_EXCEEDED, str(count), str(CONTEXT - 1)) if count >= CONTEXT else ()

    def step(self) -> None:
        """One word for every request in flight."""
        for request, state in list(self.live.items()):
            words, said, prompt, cut = state
            if words:
                OUT.write(frames.write_data(request, (b" " if said else b"") + words.pop(0)))
                state[1] += 1
            else:
                OUT.write(frames.write_done(request, said, 100.0, 0.0, 0.0, prompt, int(cut)))
                del self.live[request]


def main() -> None:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it: the end of our reader is our end
    parrot = Parrot()
    OUT.write(frames.write_ready(0, 0.0, 0.0, 0.0))
    while True:
        OUT.flush()
        if select.select([0], [], [], 0 if parrot.live else None)[0]:
            data = os.read(0, 1 << 16)
            if not data and not parrot.live:
                return  # orderly end: nothing in flight
            parrot.take(data)
        parrot.step()


if __name__ == "__main__":
    main()
