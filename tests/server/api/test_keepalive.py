"""The keepalive timer (http.md §15, bugs B07)."""

from __future__ import annotations

import threading

import pytest

from server.api.keepalive import KeepaliveTimer


class Stream:
    def __init__(self, last_write: float) -> None:
        self.last_write = last_write
        self.written: list[float] = []
        self.event = threading.Event()

    def write_keepalive(self, silent_since: float) -> None:
        self.written.append(silent_since)
        self.event.set()


def test_section_15_only_streams_silent_for_the_whole_interval_are_written_to() -> None:
    timer = KeepaliveTimer(10.0, clock=lambda: 100.0)
    silent, fresh, exact = Stream(80.0), Stream(90.001), Stream(90.0)
    timer.write_due([silent, fresh, exact])
    assert (silent.written, fresh.written, exact.written) == ([80.0], [], [90.0])


def test_one_stream_that_fails_does_not_keep_others_from_their_keepalive() -> None:
    class Broken(Stream):
        def write_keepalive(self, silent_since: float) -> None:
            raise RuntimeError("broken")

    timer = KeepaliveTimer(10.0, clock=lambda: 100.0)
    other = Stream(0.0)
    timer.write_due([Broken(0.0), other])
    assert other.written == [0.0]


def test_the_thread_writes_to_registered_streams_and_ends_on_close() -> None:
    timer = KeepaliveTimer(0.01, clock=lambda: 100.0)
    stream = Stream(0.0)
    timer.add(stream)
    assert stream.event.wait(10)
    timer.remove(stream)
    timer.close()
    assert "keepalive" not in {thread.name for thread in threading.enumerate()}
    late = Stream(0.0)
    timer.add(late)
    assert "keepalive" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize("fails", [False, True])
def test_a_stream_that_stays_due_does_not_keep_the_thread_awake(fails: bool) -> None:
    """One whose client does not read, or has left while the engine is still at it, or that fails: nothing is
    written, so its last write stays as old as it is.
    """
    rounds: list[str] = []

    class Due(Stream):
        def write_keepalive(self, silent_since: float) -> None:
            rounds.append("looked")
            if rounds.count("looked") == 3:
                timer.remove(self)
                self.event.set()
            if fails:
                raise RuntimeError("broken")

    class Changed(threading.Condition):
        """The thread's own waits do not take any time; how long they were to be is kept."""

        def wait(self, timeout: float | None = None) -> bool:
            if timeout is None:
                return super().wait()
            rounds.append(f"slept {timeout:g}")
            return False

    timer = KeepaliveTimer(10.0, clock=lambda: 100.0)
    timer._changed = Changed()
    stream = Due(0.0)
    timer.add(stream)
    assert stream.event.wait(30)
    timer.close()
    assert rounds[:6] == ["slept 0.5", "looked"] * 3


def test_a_thread_that_could_not_be_started_is_started_for_the_next_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    timer = KeepaliveTimer(0.01, clock=lambda: 100.0)
    first, second = Stream(0.0), Stream(0.0)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        timer.add(first)
    assert timer._thread is None
    timer.add(second)
    assert first.event.wait(30)
    assert second.event.wait(30)
    timer.close()


def test_without_a_thread_there_is_nothing_to_wait_for_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    timer = KeepaliveTimer(0.01, clock=lambda: 100.0)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    timer.add(Stream(0.0))
    timer.close()
