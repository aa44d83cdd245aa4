"""Scenarios of http.md section 12: order, bounds, refusals, counters, and the blocking form with threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import asdict

import pytest

from generated import errors
from server.scheduler import (
    Admission,
    ClientLeft,
    Scheduler,
    SchedulerCore,
    TicketState,
)
from server.wire.events import Availability


class FakeClock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def in_thread(work: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    """Run ``work`` in a thread; the list gets its result or its exception."""
    outcome: list[object] = []

    def run() -> None:
        try:
            outcome.append(work())
        except Exception as error:
            outcome.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, outcome


def blocked(scheduler: Scheduler, admission: Admission) -> tuple[threading.Thread, list[object]]:
    """A thread that waits for ``admission``, once it is really blocked."""
    thread, outcome = in_thread(admission.wait)
    entered = threading.Event()
    while not entered.wait(0.001):
        with scheduler._lock:
            if admission._ticket in scheduler._blocked or admission._ticket.state is not TicketState.WAITING:
                entered.set()
    return thread, outcome


def finish(thread: threading.Thread) -> None:
    thread.join(10)
    assert not thread.is_alive()


def test_the_lowest_free_slot_goes_to_an_unpinned_request() -> None:
    core = SchedulerCore(3, 0, 10)
    first, _ = core.enter(0.0)
    second, _ = core.enter(0.0)
    core.release(1.0, first)
    third, _ = core.enter(1.0)
    assert [first.slot, second.slot, third.slot] == [0, 1, 0]


def test_a_waiter_for_another_slot_holds_nobody_back() -> None:
    core = SchedulerCore(2, 4, 10)
    holder, _ = core.enter(0.0, pinned=0)
    waiter, _ = core.enter(0.0, pinned=0)
    other, _ = core.enter(0.0, pinned=1)
    assert (waiter.state, other.state) == (TicketState.WAITING, TicketState.ADMITTED)
    assert core.release(1.0, holder) == [waiter]
    assert waiter.slot == 0


def test_one_slot_serves_in_arrival_order_pinned_or_not() -> None:
    core = SchedulerCore(1, 8, 10)
    tickets = [core.enter(0.0, pinned)[0] for pinned in (None, 0, None, 0)]
    served = []
    for _ in tickets:
        (current,) = [ticket for ticket in tickets if ticket.state is TicketState.ADMITTED]
        served.append(current)
        core.release(1.0, current)
    assert served == tickets


def test_a_full_room_refuses_at_once_even_a_request_whose_slot_is_free() -> None:
    """The contract's words: "all slots busy or somebody waiting and the room full"."""
    core = SchedulerCore(2, 1, 10)
    core.enter(0.0, pinned=0)
    core.enter(0.0, pinned=0)
    refused, _ = core.enter(0.0, pinned=1)
    assert refused.state is TicketState.QUEUE_FULL
    assert core.counters().rejected == 1


def test_without_a_waiting_room_a_free_slot_is_still_given_out() -> None:
    core = SchedulerCore(2, 0, 10)
    core.enter(0.0, pinned=0)
    assert core.enter(0.0, pinned=0)[0].state is TicketState.QUEUE_FULL
    assert core.enter(0.0)[0].slot == 1
    assert core.enter(0.0)[0].state is TicketState.QUEUE_FULL


def test_the_deadline_counts_from_arrival_and_not_from_the_front_of_the_queue() -> None:
    core = SchedulerCore(1, 4, 10)
    core.enter(0.0)
    early, _ = core.enter(1.0)
    late, _ = core.enter(5.0)
    assert core.expire(10.9) == []
    assert core.expire(11.0) == [early]
    assert core.expire(14.9) == []
    assert core.expire(15.0) == [late]
    assert (early.state, core.counters().timed_out) == (TicketState.QUEUE_TIMEOUT, 2)


def test_an_overdue_waiter_is_not_admitted_by_a_release_that_comes_too_late() -> None:
    core = SchedulerCore(1, 4, 10)
    holder, _ = core.enter(0.0)
    waiter, _ = core.enter(0.0)
    assert core.release(10.0, holder) == [waiter]
    assert waiter.state is TicketState.QUEUE_TIMEOUT
    assert core.free == [0]


def test_a_slot_outside_the_range_is_a_programming_error() -> None:
    core = SchedulerCore(2, 4, 10)
    for slot in (-1, 2):
        with pytest.raises(ValueError, match="is not one of the 2 slots"):
            core.enter(0.0, slot)


@pytest.mark.parametrize(
    ("prepare", "expected"),
    [
        (lambda s: None, errors.queue_full),
        (lambda s: s.set_availability(Availability.DOWN), errors.engine_unavailable),
        (lambda s: s.set_availability(Availability.PAUSED), errors.engine_unavailable),
        (lambda s: s.shut_down(), errors.shutting_down),
    ],
)
def test_refusals_at_the_door(
    prepare: Callable[[Scheduler], None], expected: Callable[[], errors.ApiError]
) -> None:
    scheduler = Scheduler(capacity=1, max_queue=0, queue_timeout=10)
    scheduler.enter().wait()
    prepare(scheduler)
    with pytest.raises(errors.ApiError) as caught:
        scheduler.enter().wait()
    assert caught.value.name == expected().name


def test_a_blocked_waiter_is_woken_by_the_release_before_it() -> None:
    scheduler = Scheduler(capacity=1, max_queue=4, queue_timeout=60)
    holder = scheduler.enter()
    assert holder.wait() == 0
    waiter = scheduler.enter()
    thread, outcome = blocked(scheduler, waiter)
    holder.release()
    finish(thread)
    assert outcome == [0]


def test_a_blocked_waiter_whose_client_leaves_raises_and_is_counted_once() -> None:
    scheduler = Scheduler(capacity=1, max_queue=4, queue_timeout=60)
    scheduler.enter().wait()
    waiter = scheduler.enter()
    thread, outcome = blocked(scheduler, waiter)
    waiter.leave()
    waiter.leave()
    finish(thread)
    assert [type(item) for item in outcome] == [ClientLeft]
    assert scheduler.counters().cancelled == 1


def test_a_slot_that_nobody_waited_for_is_given_back_when_the_client_leaves() -> None:
    """It was granted while the request waited for a worker, which will find the client gone."""
    scheduler = Scheduler(capacity=1, max_queue=4, queue_timeout=60)
    holder, granted, behind = scheduler.enter(), scheduler.enter(), scheduler.enter()
    assert holder.wait() == 0
    holder.release()
    granted.leave()
    granted.leave()
    assert behind.wait() == 0
    with pytest.raises(ClientLeft):
        granted.wait()
    behind.release()
    counters = scheduler.counters()
    assert (counters.active, counters.admitted, counters.completed, counters.cancelled) == (0, 3, 3, 0)


def test_a_slot_that_was_waited_for_stays_with_its_holder_when_the_client_leaves() -> None:
    """The engine may be at work on it: whoever waited for it gives it back."""
    scheduler = Scheduler(capacity=1, max_queue=4, queue_timeout=60)
    holder = scheduler.enter()
    assert holder.wait() == 0
    holder.leave()
    assert scheduler.counters().active == 1
    holder.release()
    assert scheduler.counters().active == 0


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (lambda s: s.shut_down(), errors.shutting_down),
        (lambda s: s.set_availability(Availability.DOWN), errors.engine_unavailable),
    ],
)
def test_blocked_waiters_hear_that_nobody_will_serve_them(
    event: Callable[[Scheduler], None], expected: Callable[[], errors.ApiError]
) -> None:
    scheduler = Scheduler(capacity=1, max_queue=4, queue_timeout=60)
    scheduler.enter().wait()
    thread, outcome = blocked(scheduler, scheduler.enter())
    event(scheduler)
    finish(thread)
    (error,) = outcome
    assert isinstance(error, errors.ApiError)
    assert error.name == expected().name


def test_the_waiter_notices_its_own_deadline() -> None:
    scheduler = Scheduler(capacity=1, max_queue=4, queue_timeout=0.02)
    scheduler.enter().wait()
    with pytest.raises(errors.ApiError) as caught:
        scheduler.enter().wait()
    assert (caught.value.status, caught.value.name) == (429, "queue_timeout")


def test_a_deadline_that_passes_while_the_engine_restarts_is_a_503() -> None:
    scheduler = Scheduler(capacity=1, max_queue=4, queue_timeout=0.02)
    scheduler.set_availability(Availability.PAUSED)
    with pytest.raises(errors.ApiError) as caught:
        scheduler.enter().wait()
    assert (caught.value.status, caught.value.name) == (503, "engine_unavailable")


def test_waiters_survive_a_restart_in_order() -> None:
    clock = FakeClock()
    scheduler = Scheduler(capacity=1, max_queue=4, queue_timeout=60, clock=clock)
    scheduler.set_availability(Availability.PAUSED)
    first, second = scheduler.enter(), scheduler.enter()
    scheduler.set_availability(Availability.READY)
    assert first.wait() == 0
    assert scheduler.counters().queued == 1
    first.release()
    assert second.wait() == 0


def test_queue_wait_is_the_time_until_the_slot() -> None:
    clock = FakeClock()
    scheduler = Scheduler(capacity=1, max_queue=4, queue_timeout=60, clock=clock)
    holder, waiter = scheduler.enter(), scheduler.enter()
    clock.now += 1.5
    assert waiter.queue_wait == 1.5
    holder.release()
    clock.now += 7
    assert (holder.queue_wait, waiter.queue_wait) == (0.0, 1.5)


def test_a_slot_that_was_given_back_is_counted_as_completed() -> None:
    scheduler = Scheduler(capacity=1, max_queue=0, queue_timeout=60)
    admission = scheduler.enter(0)
    assert admission.wait() == 0
    admission.release()
    counters = asdict(scheduler.counters())
    assert counters == {
        "active": 0,
        "queued": 0,
        "capacity": 1,
        "max_queue": 0,
        "queue_timeout_seconds": 60,
        "admitted": 1,
        "completed": 1,
        "rejected": 0,
        "timed_out": 0,
        "cancelled": 0,
    }


def test_many_threads_never_share_a_slot_and_none_is_lost() -> None:
    scheduler = Scheduler(capacity=3, max_queue=1000, queue_timeout=60)
    holders: list[set[int]] = [set(), set(), set()]

    def work(number: int) -> None:
        for turn in range(20):
            admission = scheduler.enter(None if turn % 2 else number % 3)
            slot = admission.wait()
            holders[slot].add(number)
            assert holders[slot] == {number}
            holders[slot].remove(number)
            admission.release()

    threads = [in_thread(lambda number=number: work(number)) for number in range(12)]
    for thread, outcome in threads:
        finish(thread)
        assert outcome == [None]
    counters = scheduler.counters()
    assert (counters.active, counters.queued, counters.completed) == (0, 0, 240)
