"""Admission of generation requests to the KV slots of one engine (http.md section 12).

Guarantees:

* a slot has at most one holder, and a holder has exactly one slot;
* waiters that want the same slot get it in arrival order, and a waiter whose slot is free is never held
  back by an earlier waiter that wants another one (no head-of-line blocking);
* at most ``max_queue`` requests wait, none longer than ``queue_timeout`` seconds;
* a waiter that leaves takes nothing with it and is counted, never admitted.

:class:`SchedulerCore` is pure: no lock, no clock, time is passed in. :class:`Scheduler` adds a lock, a clock
and a blocking wait for worker threads; it has no thread of its own, a waiter's own timed wait is what
notices its deadline.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from heapq import heappop, heappush
from typing import Final

from generated import errors
from server.wire.events import Availability


class TicketState(Enum):
    """Where a ticket is. WAITING and ADMITTED are the only states it can still leave."""

    WAITING = "waiting"
    ADMITTED = "admitted"
    RELEASED = "released"
    QUEUE_FULL = "queue_full"
    QUEUE_TIMEOUT = "queue_timeout"
    ENGINE_UNAVAILABLE = "engine_unavailable"
    SHUTTING_DOWN = "shutting_down"
    LEFT = "left"


class Ticket:
    """One request's place in the scheduler.

    ``slot`` is set exactly while the state is ADMITTED or RELEASED. Times are in the clock of the scheduler,
    seconds.
    """

    __slots__ = ("deadline", "entered_at", "pinned", "resolved_at", "slot", "state")

    def __init__(self, pinned: int | None, entered_at: float, deadline: float) -> None:
        self.pinned = pinned
        self.entered_at = entered_at
        self.deadline = deadline
        self.resolved_at: float | None = None
        self.slot: int | None = None
        self.state = TicketState.WAITING


@dataclass(frozen=True)
class Counters:
    """The ``scheduler`` object of GET /health (http.md section 5).

    ``active`` holders and ``queued`` waiters are of this moment, the last five are totals since start:
    ``admitted`` got a slot, ``completed`` gave it back, ``rejected`` were refused without waiting or because
    the gateway or the engine went away, ``timed_out`` waited for ``queue_timeout_seconds``, ``cancelled``
    left while waiting.
    """

    active: int
    queued: int
    capacity: int
    max_queue: int
    queue_timeout_seconds: float
    admitted: int
    completed: int
    rejected: int
    timed_out: int
    cancelled: int


TOTALS: Final = ("admitted", "completed", "rejected", "timed_out", "cancelled")
"""The counters that only ever grow: what became of requests for a slot."""


class SchedulerCore:
    """The admission rules as a pure state machine.

    Every method takes ``now`` and returns the tickets it moved out of WAITING (admitted or refused), so that
    the caller can wake their owners. ``now`` must not go backwards.
    """

    def __init__(self, capacity: int, max_queue: int, queue_timeout: float) -> None:
        """``capacity`` slots, at most ``max_queue`` waiters, each for at most ``queue_timeout`` seconds."""
        self.capacity = capacity
        self.max_queue = max_queue
        self.queue_timeout = queue_timeout
        self.availability = Availability.READY
        self.closed = False
        self.free: list[int] = list(range(capacity))  # a heap: the lowest free slot comes first
        self.holders: dict[int, Ticket] = {}
        self.waiting: dict[Ticket, None] = {}  # in arrival order
        self.admitted = self.completed = self.rejected = self.timed_out = self.cancelled = 0

    def enter(self, now: float, pinned: int | None = None) -> tuple[Ticket, list[Ticket]]:
        """A request arrives, wanting slot ``pinned`` or, with None, the lowest free one.

        The returned ticket is ADMITTED, WAITING, or refused with QUEUE_FULL, ENGINE_UNAVAILABLE or
        SHUTTING_DOWN. Raises ValueError if ``pinned`` is not a slot.
        """
        if pinned is not None and not 0 <= pinned < self.capacity:
            raise ValueError(f"slot {pinned} is not one of the {self.capacity} slots")
        resolved = self.expire(now)
        ticket = Ticket(pinned, now, now + self.queue_timeout)
        refusal = self._refusal_on_arrival(pinned)
        if refusal is not None:
            self._resolve(ticket, refusal, now)
            self.rejected += 1
            return ticket, resolved
        self.waiting[ticket] = None
        admitted = self._admit(now)
        return ticket, resolved + [other for other in admitted if other is not ticket]

    def leave(self, now: float, ticket: Ticket) -> list[Ticket]:
        """The client of a waiting ticket is gone. Does nothing for a ticket that no longer waits."""
        resolved = self.expire(now)
        if ticket.state is TicketState.WAITING:
            self._drop(ticket, TicketState.LEFT, now)
            self.cancelled += 1  # nobody becomes admissible: only a busy slot ever holds a waiter back
        return resolved

    def release(self, now: float, ticket: Ticket) -> list[Ticket]:
        """The holder gives its slot back.

        Does nothing for a ticket that holds none, so it may be called twice.
        """
        resolved = self.expire(now)
        if ticket.state is TicketState.ADMITTED:
            assert ticket.slot is not None
            ticket.state = TicketState.RELEASED
            del self.holders[ticket.slot]
            heappush(self.free, ticket.slot)
            self.completed += 1
            resolved += self._admit(now)
        return resolved

    def expire(self, now: float) -> list[Ticket]:
        """Refuse every waiter whose deadline has come.

        QUEUE_TIMEOUT, or ENGINE_UNAVAILABLE while there is no engine.
        """
        if not self.waiting:
            return []
        due = [ticket for ticket in self.waiting if ticket.deadline <= now]
        state = (
            TicketState.QUEUE_TIMEOUT
            if self.availability is Availability.READY
            else TicketState.ENGINE_UNAVAILABLE
        )
        for ticket in due:
            self._drop(ticket, state, now)
            self.timed_out += 1
        return due

    def set_availability(self, now: float, availability: Availability) -> list[Ticket]:
        """The engine came or went.

        READY admits whoever can run, PAUSED lets waiters wait, DOWN refuses them all.
        """
        resolved = self.expire(now)
        self.availability = availability
        if availability is Availability.DOWN:
            return resolved + self._refuse_waiting(TicketState.ENGINE_UNAVAILABLE, now)
        return resolved + self._admit(now)

    def shut_down(self, now: float) -> list[Ticket]:
        """Refuse everybody who waits and everybody who comes.

        Holders keep their slots until they release them.
        """
        resolved = self.expire(now)
        self.closed = True
        return resolved + self._refuse_waiting(TicketState.SHUTTING_DOWN, now)

    def counters(self) -> Counters:
        """A snapshot for /health and /metrics."""
        return Counters(
            active=len(self.holders),
            queued=len(self.waiting),
            capacity=self.capacity,
            max_queue=self.max_queue,
            queue_timeout_seconds=self.queue_timeout,
            admitted=self.admitted,
            completed=self.completed,
            rejected=self.rejected,
            timed_out=self.timed_out,
            cancelled=self.cancelled,
        )

    def _refusal_on_arrival(self, pinned: int | None) -> TicketState | None:
        """Why an arriving request can neither run nor wait, or None."""
        if self.closed:
            return TicketState.SHUTTING_DOWN
        if self.availability is Availability.DOWN:
            return TicketState.ENGINE_UNAVAILABLE
        if len(self.waiting) < self.max_queue:
            return None
        if self.availability is Availability.PAUSED:
            return TicketState.ENGINE_UNAVAILABLE
        # "All slots busy or somebody waiting and the room full". A pinned request whose own slot is busy
        # would have to wait as well, and with max_queue 0 there is nowhere to wait.
        own_slot_busy = not self.free if pinned is None else pinned in self.holders
        return TicketState.QUEUE_FULL if own_slot_busy or self.waiting else None

    def _admit(self, now: float) -> list[Ticket]:
        """Give free slots to waiters in arrival order; each gets its own slot or the lowest one left."""
        admitted: list[Ticket] = []
        if not self.waiting or self.availability is not Availability.READY or self.closed:
            return admitted
        for ticket in list(self.waiting):
            if not self.free:
                break
            if ticket.pinned is None:
                slot = heappop(self.free)
            elif ticket.pinned in self.holders:
                continue
            else:
                slot = ticket.pinned
                self.free.remove(slot)
                self.free.sort()  # a sorted list is a heap
            ticket.slot = slot
            self.holders[slot] = ticket
            self._drop(ticket, TicketState.ADMITTED, now)
            self.admitted += 1
            admitted.append(ticket)
        return admitted

    def _refuse_waiting(self, state: TicketState, now: float) -> list[Ticket]:
        refused = list(self.waiting)
        for ticket in refused:
            self._drop(ticket, state, now)
            self.rejected += 1
        return refused

    def _drop(self, ticket: Ticket, state: TicketState, now: float) -> None:
        del self.waiting[ticket]
        self._resolve(ticket, state, now)

    @staticmethod
    def _resolve(ticket: Ticket, state: TicketState, now: float) -> None:
        ticket.state = state
        ticket.resolved_at = now


class ClientLeft(Exception):
    """The waiting client is gone: there is nobody to answer. Raised by :meth:`Admission.wait`."""


REFUSALS: Final[Mapping[TicketState, Callable[[], errors.ApiError]]] = {
    TicketState.QUEUE_FULL: errors.queue_full,
    TicketState.QUEUE_TIMEOUT: errors.queue_timeout,
    TicketState.ENGINE_UNAVAILABLE: errors.engine_unavailable,
    TicketState.SHUTTING_DOWN: errors.shutting_down,
}


class Admission:
    """One request's way through the scheduler, from :meth:`Scheduler.enter` to :meth:`release`.

    :meth:`wait` belongs to the worker thread; :meth:`leave` and :meth:`release` may be called from any
    thread, any number of times. From :meth:`wait` on the slot is its caller's to give back, before that it is
    nobody's: a client that leaves gives it back itself.
    """

    __slots__ = ("_claimed", "_scheduler", "_ticket", "_woken")

    def __init__(self, scheduler: Scheduler, ticket: Ticket) -> None:
        self._scheduler = scheduler
        self._ticket = ticket
        self._woken: threading.Event | None = None
        self._claimed = False  # under the scheduler's lock

    @property
    def is_waiting(self) -> bool:
        """Whether :meth:`wait` would block now."""
        return self._ticket.state is TicketState.WAITING

    def wait(self) -> int:
        """Block until admitted and return the KV slot.

        Raises the ApiError of the refusal (429 queue_full or queue_timeout, 503 engine_unavailable or
        shutting_down), or ClientLeft after :meth:`leave`.
        """
        ticket = self._ticket
        self._scheduler._await(self)
        if ticket.state in (TicketState.LEFT, TicketState.RELEASED):
            raise ClientLeft
        refusal = REFUSALS.get(ticket.state)
        if refusal is not None:
            raise refusal()
        assert ticket.slot is not None
        return ticket.slot

    def leave(self) -> None:
        """The client is gone. While waiting: drop the request and wake :meth:`wait`. With a slot that no
        :meth:`wait` was called for: give it back. Otherwise nothing.
        """
        self._scheduler._leave(self)

    def release(self) -> None:
        """Give the slot back; the next waiter for it is admitted. Nothing if no slot is held."""
        self._scheduler._release(self)

    @property
    def queue_wait(self) -> float:
        """Seconds between arrival and resolution; up to now while still waiting."""
        ticket = self._ticket
        end = ticket.resolved_at if ticket.resolved_at is not None else self._scheduler.clock()
        return end - ticket.entered_at


class Scheduler:
    """:class:`SchedulerCore` for threads.

    All methods may be called from any thread and none but ``wait`` blocks.
    """

    def __init__(
        self,
        *,
        capacity: int,
        max_queue: int,
        queue_timeout: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.clock = clock
        self._lock = threading.Lock()
        self._core = SchedulerCore(capacity, max_queue, queue_timeout)
        self._blocked: dict[Ticket, Admission] = {}

    def enter(self, pinned: int | None = None) -> Admission:
        """Queue a request for slot ``pinned`` (None: the lowest free one).

        Never blocks; a refusal shows in ``wait``.
        """
        with self._lock:
            ticket, resolved = self._core.enter(self.clock(), pinned)
            self._wake(resolved)
        return Admission(self, ticket)

    def set_availability(self, availability: Availability) -> None:
        """Tell the scheduler about the engine; see :meth:`SchedulerCore.set_availability`."""
        with self._lock:
            self._wake(self._core.set_availability(self.clock(), availability))

    def shut_down(self) -> None:
        """Refuse waiters and newcomers with 503 shutting_down."""
        with self._lock:
            self._wake(self._core.shut_down(self.clock()))

    def counters(self) -> Counters:
        """A consistent snapshot; overdue waiters are expired first."""
        with self._lock:
            self._wake(self._core.expire(self.clock()))
            return self._core.counters()

    def _await(self, admission: Admission) -> None:
        ticket = admission._ticket
        with self._lock:
            admission._claimed = True
            if ticket.state is not TicketState.WAITING:
                return
            admission._woken = woken = threading.Event()
            self._blocked[ticket] = admission
        while not woken.wait(max(0.0, ticket.deadline - self.clock())):
            with self._lock:
                self._wake(self._core.expire(self.clock()))

    def _leave(self, admission: Admission) -> None:
        with self._lock:
            self._wake(self._core.leave(self.clock(), admission._ticket))
            if not admission._claimed:  # a worker that finds its client gone may never call wait
                self._wake(self._core.release(self.clock(), admission._ticket))
            self._wake([admission._ticket] if admission._ticket.state is TicketState.LEFT else [])

    def _release(self, admission: Admission) -> None:
        with self._lock:
            self._wake(self._core.release(self.clock(), admission._ticket))

    def _wake(self, tickets: Iterable[Ticket]) -> None:
        for ticket in tickets:
            admission = self._blocked.pop(ticket, None)
            if admission is not None and admission._woken is not None:
                admission._woken.set()
