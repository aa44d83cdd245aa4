"""The I/O loop by itself: a call from another thread ends the wait, whenever it comes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator

import pytest

from server.http.eventloop import EventLoop


class Waker:
    """A pipe that makes the loop's wait end, and what happens when it is read out."""

    def __init__(self) -> None:
        self.read_end, self._write_end = os.pipe()
        os.set_blocking(self.read_end, False)
        self.before_reading: list[Callable[[], None]] = []

    def wake(self) -> None:
        os.write(self._write_end, b"x")

    def handle_events(self, events: int) -> None:
        while self.before_reading:
            self.before_reading.pop(0)()
        os.read(self.read_end, 8192)

    def close(self) -> None:
        os.close(self.read_end)
        os.close(self._write_end)


@pytest.fixture
def waker() -> Iterator[Waker]:
    waker = Waker()
    yield waker
    waker.close()


@pytest.fixture
def loop(waker: Waker) -> Iterator[EventLoop]:
    loop = EventLoop()
    loop.set_waker(waker.read_end, waker, waker.wake)
    loop.run_once(0)  # from now on this thread is the loop's
    yield loop
    loop.close()


def elsewhere(call: Callable[[], None]) -> None:
    """Run ``call()`` on another thread, to its end."""
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


WAIT = 60.0  # a wake-up that is lost costs a minute, so the test's own limit ends it


def test_a_call_from_another_thread_ends_the_wait(loop: EventLoop) -> None:
    ran: list[str] = []
    for name in ("first", "second"):
        elsewhere(lambda name=name: loop.call_soon(lambda: ran.append(name)))  # type: ignore[misc]
        loop.run_once(WAIT)
    assert ran == ["first", "second"]


def test_a_call_while_the_waker_is_read_out_does_not_silence_later_ones(
    loop: EventLoop, waker: Waker
) -> None:
    ran: list[str] = []
    waker.before_reading = [lambda: elsewhere(lambda: loop.call_soon(lambda: ran.append("in between")))]
    elsewhere(lambda: loop.call_soon(lambda: ran.append("first")))
    loop.run_once(WAIT)
    assert ran == ["first", "in between"]
    elsewhere(lambda: loop.call_soon(lambda: ran.append("later")))
    assert os.read(waker.read_end, 2) == b"x"  # the wait would end
    waker.wake()
    loop.run_once(WAIT)
    assert ran == ["first", "in between", "later"]


def test_calls_before_the_loop_comes_to_them_are_run_in_order_by_one_byte(
    loop: EventLoop, waker: Waker
) -> None:
    ran: list[int] = []
    for number in range(5):
        elsewhere(lambda number=number: loop.call_soon(lambda: ran.append(number)))  # type: ignore[misc]
    assert os.read(waker.read_end, 8) == b"x"
    loop.run_once(WAIT)  # nothing to read: calls that wait are not waited for
    assert ran == [0, 1, 2, 3, 4]


def test_a_call_of_the_loops_own_thread_needs_no_wake_up(loop: EventLoop, waker: Waker) -> None:
    ran: list[str] = []
    loop.call_soon(lambda: loop.call_soon(lambda: ran.append("inner")))
    loop.run_once(WAIT)
    assert ran == []
    loop.run_once(WAIT)
    assert ran == ["inner"]
    with pytest.raises(BlockingIOError):
        os.read(waker.read_end, 1)


def test_a_call_that_fails_is_logged_and_the_next_one_runs(
    loop: EventLoop, caplog: pytest.LogCaptureFixture
) -> None:
    ran: list[str] = []
    loop.call_soon(lambda: [].pop())
    loop.call_soon(lambda: ran.append("next"))
    loop.run_once(WAIT)
    assert ran == ["next"]
    assert [record.getMessage() for record in caplog.records] == ["a fault in the I/O loop"]


def test_after_close_nobody_is_woken(loop: EventLoop, waker: Waker) -> None:
    loop.close()
    loop.call_soon(lambda: None)
    elsewhere(loop.wake)
    with pytest.raises(BlockingIOError):
        os.read(waker.read_end, 1)
