"""The scheduler core against a naive model, under any sequence of events hypothesis finds, with a fake clock.

The model does not share the core's way of working: it keeps the arrival order in a list and states the rules
of http.md section 12 as predicates over it.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, precondition, rule

from server.scheduler import SchedulerCore, Ticket, TicketState
from server.wire.events import Availability

REFUSED = {
    TicketState.QUEUE_FULL,
    TicketState.QUEUE_TIMEOUT,
    TicketState.ENGINE_UNAVAILABLE,
    TicketState.SHUTTING_DOWN,
}


class SchedulerMachine(RuleBasedStateMachine):
    tickets = Bundle("tickets")

    @initialize(
        capacity=st.integers(1, 4),
        max_queue=st.integers(0, 4),
        queue_timeout=st.sampled_from([0.0, 1.0, 10.0]),
    )
    def start(self, capacity: int, max_queue: int, queue_timeout: float) -> None:
        self.core = SchedulerCore(capacity, max_queue, queue_timeout)
        self.now = 100.0
        self.arrived: list[Ticket] = []
        self.availability = Availability.READY
        self.closed = False
        self.reported: set[Ticket] = set()

    def waiting(self) -> list[Ticket]:
        return [ticket for ticket in self.arrived if ticket.state is TicketState.WAITING]

    def held(self) -> dict[int, Ticket]:
        return {t.slot: t for t in self.arrived if t.state is TicketState.ADMITTED and t.slot is not None}

    def observe(self, resolved: list[Ticket], before: list[Ticket]) -> None:
        """What every operation must keep: the report is exact, and admissions jumped over nobody."""
        left_waiting = [ticket for ticket in before if ticket.state is not TicketState.WAITING]
        assert {t for t in left_waiting if t.state is not TicketState.LEFT} == set(resolved)
        assert len(resolved) == len(set(resolved))
        assert not self.reported & set(resolved)
        self.reported |= set(resolved)
        for ticket in resolved:
            if ticket.state is TicketState.ADMITTED:
                for earlier in before[: before.index(ticket)]:
                    overtaken = earlier.state is TicketState.WAITING
                    assert not (overtaken and earlier.pinned in (None, ticket.slot)), "overtaken for its slot"

    @rule(target=tickets, pinned=st.none() | st.integers(0, 3))
    def enter(self, pinned: int | None) -> Ticket:
        if pinned is not None:
            pinned %= self.core.capacity
        before = self.waiting()
        expected_free = set(range(self.core.capacity)) - set(self.held())
        ticket, resolved = self.core.enter(self.now, pinned)
        self.observe(resolved, before)
        still = [other for other in before if other.state is TicketState.WAITING]
        held_now = set(self.held())
        self.arrived.append(ticket)
        room = len(still) < self.core.max_queue
        if self.closed:
            assert ticket.state is TicketState.SHUTTING_DOWN
        elif self.availability is Availability.DOWN:
            assert ticket.state is TicketState.ENGINE_UNAVAILABLE
        elif self.availability is Availability.PAUSED:
            assert ticket.state is (TicketState.WAITING if room else TicketState.ENGINE_UNAVAILABLE)
        else:
            free = expected_free - held_now
            wants = free if pinned is None else free & {pinned}
            if not room and (still or not wants):
                assert ticket.state is TicketState.QUEUE_FULL
            elif wants:
                assert ticket.state is TicketState.ADMITTED
                assert ticket.slot == min(wants)
            else:
                assert ticket.state is TicketState.WAITING
        return ticket

    @rule(ticket=tickets)
    def leave(self, ticket: Ticket) -> None:
        before, was, count = self.waiting(), ticket.state, self.core.cancelled
        overdue = ticket.deadline <= self.now
        resolved = self.core.leave(self.now, ticket)
        self.observe(resolved, before)
        if was is TicketState.WAITING and not overdue:
            assert ticket.state is TicketState.LEFT
            assert self.core.cancelled == count + 1
        elif was is not TicketState.WAITING:
            assert ticket.state is was
            assert self.core.cancelled == count

    @rule(ticket=tickets)
    def release(self, ticket: Ticket) -> None:
        before, was, count = self.waiting(), ticket.state, self.core.completed
        self.observe(self.core.release(self.now, ticket), before)
        if was is TicketState.ADMITTED:
            assert ticket.state is TicketState.RELEASED
            assert self.core.completed == count + 1
        else:
            assert self.core.completed == count
            assert ticket.state is was or was is TicketState.WAITING

    @rule(seconds=st.sampled_from([0.0, 0.4, 1.0, 9.6, 20.0]))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def expire(self) -> None:
        before = self.waiting()
        due = [ticket for ticket in before if ticket.deadline <= self.now]
        resolved = self.core.expire(self.now)
        self.observe(resolved, before)
        assert resolved == due
        late = TicketState.ENGINE_UNAVAILABLE
        if self.availability is Availability.READY:
            late = TicketState.QUEUE_TIMEOUT
        assert all(ticket.state is late for ticket in due)

    @rule(availability=st.sampled_from(Availability))
    def engine(self, availability: Availability) -> None:
        before = self.waiting()
        self.availability = availability
        self.observe(self.core.set_availability(self.now, availability), before)
        if availability is Availability.DOWN:
            assert not self.waiting()

    @precondition(lambda self: len(self.arrived) > 8)
    @rule()
    def shut_down(self) -> None:
        before = self.waiting()
        self.closed = True
        self.observe(self.core.shut_down(self.now), before)
        assert not self.waiting()

    @invariant()
    def slots_are_conserved(self) -> None:
        holders = [ticket for ticket in self.arrived if ticket.state is TicketState.ADMITTED]
        slots = [ticket.slot for ticket in holders]
        assert len(slots) == len(set(slots)), "two holders of one slot"
        assert sorted([*slots, *self.core.free]) == list(range(self.core.capacity)), "a slot leaked"
        assert all(t.slot == t.pinned for t in holders if t.pinned is not None)

    @invariant()
    def bounds_hold(self) -> None:
        assert len(self.waiting()) <= self.core.max_queue
        assert list(self.core.waiting) == self.waiting()

    @invariant()
    def nobody_waits_for_a_free_slot(self) -> None:
        if self.core.availability is Availability.READY and not self.core.closed:
            free = set(self.core.free)
            for ticket in self.waiting():
                assert not free if ticket.pinned is None else ticket.pinned not in free

    @invariant()
    def counters_add_up(self) -> None:
        counters = self.core.counters()
        by_state = {state: sum(t.state is state for t in self.arrived) for state in TicketState}
        assert counters.active == by_state[TicketState.ADMITTED]
        assert counters.queued == by_state[TicketState.WAITING]
        assert counters.completed == by_state[TicketState.RELEASED]
        assert counters.admitted == counters.active + counters.completed
        assert counters.cancelled == by_state[TicketState.LEFT]
        assert counters.rejected + counters.timed_out == sum(by_state[state] for state in REFUSED)
        assert len(self.arrived) == (
            counters.admitted + counters.queued + counters.rejected + counters.timed_out + counters.cancelled
        )


TestSchedulerMachine = SchedulerMachine.TestCase
TestSchedulerMachine.settings = settings(
    max_examples=120, stateful_step_count=40, deadline=None, derandomize=True
)
