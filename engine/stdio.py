"""The pipes of an engine process: commands from stdin, frames to stdout, one thread, no busy waiting.

Guarantees (wire.md section 1): the default SIGPIPE disposition, so that an engine whose reader went away dies
of signal 13 at its next write; EOF on stdin lets requests in flight finish; every write consists of whole
frames and is complete before the next step is computed.
"""

from __future__ import annotations

import os
import select
import signal

from engine.loop import EngineLoop

_READ_BYTES = 1 << 20


def restore_default_signals() -> None:
    """Die of SIGPIPE and SIGINT like any program instead of raising Python exceptions."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def serve(loop: EngineLoop, commands: int, frames: int) -> int:
    """Run `loop` between two file descriptors until it ends; returns the exit code."""
    _write_all(frames, loop.greeting())
    poll = select.poll()
    poll.register(commands, select.POLLIN | select.POLLHUP)
    open_input = True
    while (open_input or loop.busy) and not loop.broken:
        output = b""
        if open_input and poll.poll(0 if loop.busy else None):
            data = os.read(commands, _READ_BYTES)
            if data:
                output = loop.receive(data)
            else:
                loop.end_of_input()
                open_input = False
        if loop.busy and not loop.broken:
            output += loop.step()
        if output:
            _write_all(frames, output)
    return 1 if loop.broken else 0


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
