"""Writing commands: short writes, no room, no progress, failure; with a scripted write and a real pipe."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest

from server.wire.outbox import Outbox, OutboxFailure
from server.wire.outgoing import Outgoing


class Pipe:
    """Takes at most the given number of bytes per write; an exception in the list is raised."""

    def __init__(self, takes: Sequence[int | OSError]) -> None:
        self.takes = list(takes)
        self.written = b""

    def write(self, data: memoryview) -> int:
        step = self.takes.pop(0) if self.takes else len(data)
        if isinstance(step, OSError):
            raise step
        self.written += bytes(data[:step])
        return min(step, len(data))


def message(kind: str, data: bytes) -> Outgoing:
    return Outgoing(kind, None, data)


def test_messages_go_out_whole_and_in_order() -> None:
    pipe = Pipe([])
    outbox = Outbox(pipe.write, 10)
    outbox.send([message("IMAGE", b"abc"), message("SUBMIT", b"def")], 0.0)
    assert (pipe.written, bool(outbox), outbox.deadline) == (b"abcdef", False, None)


def test_a_short_write_is_continued_where_it_ended() -> None:
    pipe = Pipe([2, 0, 1, 3, 0])
    outbox = Outbox(pipe.write, 10)
    outbox.send([message("SUBMIT", b"abcdefgh")], 0.0)
    assert (pipe.written, bool(outbox)) == (b"ab", True)
    outbox.send([message("CANCEL", b"XY")], 0.0)
    assert pipe.written == b"ab", "nothing may overtake a message that is half written"
    outbox.flush(0.0)
    assert pipe.written == b"abcdef"
    outbox.flush(0.0)
    assert (pipe.written, bool(outbox)) == (b"abcdefghXY", False)


def test_progress_moves_the_deadline_and_silence_is_the_named_message() -> None:
    pipe = Pipe([1, 0, 1, 0, 0])
    outbox = Outbox(pipe.write, 10)
    outbox.send([message("SUBMIT", b"abc"), message("STOP", b"d")], 0.0)
    assert outbox.deadline == 10.0
    outbox.flush(9.0)
    assert outbox.deadline == 19.0
    outbox.flush(18.0)
    outbox.check(18.9)
    with pytest.raises(OutboxFailure, match="no progress for 10 s") as caught:
        outbox.check(19.0)
    assert caught.value.outgoing.kind == "SUBMIT"


def test_a_failure_names_the_message_that_is_not_completely_written() -> None:
    pipe = Pipe([3, 1, BrokenPipeError(32, "Broken pipe")])
    outbox = Outbox(pipe.write, 10)
    with pytest.raises(OutboxFailure, match="Broken pipe") as caught:
        outbox.send([message("SUBMIT", b"abc"), message("STOP", b"de"), message("CANCEL", b"f")], 0.0)
    assert caught.value.outgoing.kind == "STOP"


def test_a_message_larger_than_the_pipe_arrives_unchanged() -> None:
    read_end, write_end = os.pipe()
    for fd in (read_end, write_end):
        os.set_blocking(fd, False)

    def write(data: memoryview) -> int:
        try:
            return os.write(write_end, data)
        except BlockingIOError:
            return 0

    outbox = Outbox(write, 10)
    sent = bytes(range(256)) * 8192
    outbox.send([message("SUBMIT", sent)], 0.0)
    assert outbox, "two MiB do not fit into a pipe"
    received = b""
    while len(received) < len(sent):
        received += os.read(read_end, 30_000)
        outbox.flush(0.0)
    assert (received == sent, bool(outbox)) == (True, False)
    os.close(read_end)
    os.close(write_end)
