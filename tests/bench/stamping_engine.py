#!/usr/bin/env python3
"""An engine for the gateway benchmark whose every text is the time at which it was written.

A request is accepted at once. One of a single token is answered and done at once too; of longer ones, all
that are open advance together: every BENCH_PERIOD_MS one DATA frame each, in one write, with the monotonic
clock in nanoseconds as its text. One thread, no log, only the standard library.
"""

from __future__ import annotations

import os
import select
import time

PERIOD = float(os.environ.get("BENCH_PERIOD_MS", "20")) / 1000


def write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def data_frame(identifier: bytes) -> bytes:
    text = b"%d" % time.monotonic_ns()
    return b"DATA %s %d\n%s\n" % (identifier, len(text), text)


def done_frame(identifier: bytes, tokens: int) -> bytes:
    return b"DONE %s STAT %d 50.0 0 1.0 7 0\n" % (identifier, tokens)


class Engine:
    """The open requests: id → tokens produced, tokens wanted."""

    def __init__(self) -> None:
        self.open: dict[bytes, list[int]] = {}
        self.received = b""

    def receive(self, data: bytes) -> None:
        """Run every whole command."""
        self.received += data
        while True:
            line, found, rest = self.received.partition(b"\n")
            words = line.split()
            if not found:
                return
            if words[0] == b"SUBMIT":
                size = int(words[3]) + (int(words[7]) if len(words) > 7 else 0)
                if len(rest) < size + 1:
                    return
                self.submit(words[1], int(words[4]))
                rest = rest[size + 1 :]
            elif words[0] == b"CANCEL" and self.open.pop(words[1], None):
                write(b"ERROR %s CANCELLED\n" % words[1])
            elif words[0] == b"STOP" and words[1] in self.open:
                write(done_frame(words[1], self.open.pop(words[1])[0]))
            self.received = rest

    def submit(self, identifier: bytes, tokens: int) -> None:
        accept = b"ACCEPT %s 7\n" % identifier
        if tokens == 1:
            write(accept + data_frame(identifier) + done_frame(identifier, 1))
        else:
            write(accept)
            self.open[identifier] = [0, tokens]

    def advance(self) -> None:
        """One token for every open request."""
        out = []
        for identifier, progress in list(self.open.items()):
            out.append(data_frame(identifier))
            progress[0] += 1
            if progress[0] == progress[1]:
                out.append(done_frame(identifier, progress[1]))
                del self.open[identifier]
        write(b"".join(out))


def main() -> None:
    engine = Engine()
    write(b"\x01\x01READY\x01\x01\nSTAT 0 0.0 0.0 1.0\n")
    due = time.monotonic()
    while True:
        wait = max(0.0, due - time.monotonic()) if engine.open else None
        ready, _, _ = select.select([0], [], [], wait)
        if ready:
            data = os.read(0, 1 << 16)
            if not data:
                return
            engine.receive(data)
        if engine.open and time.monotonic() >= due:
            engine.advance()
            due = max(due + PERIOD, time.monotonic())


if __name__ == "__main__":
    main()
