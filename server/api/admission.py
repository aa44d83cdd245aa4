"""From a checked request to a KV slot: waiting its turn, and giving up when the client does (http.md §12)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from server.api.gateway import Gateway
from server.api.views import perform
from server.http.exchange import ClientGone, Exchange
from server.http.shared import Work
from server.scheduler import Admission, ClientLeft, Scheduler
from server.wire.events import Submission
from server.wire.requests import EngineClient


class Run(Protocol):
    """A generation that is answered by the engine's reader thread and releases its slot when it ends."""

    def launch(self, engine: EngineClient, submission: Submission) -> None:
        """Detach the exchange from its worker and submit."""


def when_rendered(gateway: Gateway, answer: Callable[[], Work | None]) -> Work | None:
    """Call ``answer``, which renders a prompt: here and now, but in the work that is returned where the model
    has a template of its own, whose patience is unknown.
    """
    return (lambda: perform(answer())) if gateway.renderer.own_template else answer()


def launch_when_admitted(
    gateway: Gateway,
    exchange: Exchange,
    pinned: int | None,
    run: Callable[[Admission], Run],
    submission: Callable[[int], Submission],
) -> Work | None:
    """Launch ``run(admission)`` with ``submission(slot)``: here and now where there is a free slot, else in
    the work that is returned, which waits for it.

    Either raises the ApiError of a refusal, or ClientGone when the client left before its turn: then nothing
    is submitted.
    """
    admission = _entered(gateway.scheduler, exchange, pinned)

    def launch() -> None:
        with _given_back_on_failure(admission):
            slot = _granted(admission, exchange)
            started, submitted = run(admission), submission(slot)
        started.launch(gateway.engine, submitted)  # gives it back itself

    if admission.is_waiting:
        return launch
    launch()
    return None


def _entered(scheduler: Scheduler, exchange: Exchange, pinned: int | None) -> Admission:
    admission = scheduler.enter(pinned)
    with _given_back_on_failure(admission):
        exchange.client.on_gone(admission.leave)
    return admission


@contextmanager
def _given_back_on_failure(admission: Admission) -> Iterator[None]:
    """What is not launched takes nothing with it, whatever it failed of: neither a place nor a slot."""
    try:
        yield
    except BaseException:
        admission.leave()
        admission.release()
        raise


def _granted(admission: Admission, exchange: Exchange) -> int:
    try:
        slot = admission.wait()
    except ClientLeft:
        raise ClientGone from None
    finally:
        exchange.note(queue_wait_ms=wait_ms(admission))
    if exchange.client.is_gone:
        raise ClientGone  # both callers give the slot back
    return slot


@contextmanager
def holding_slot(
    scheduler: Scheduler, exchange: Exchange, pinned: int | None
) -> Iterator[tuple[Admission, int]]:
    """Wait for a slot and hold it for the length of a with statement; raises the same."""
    admission = _entered(scheduler, exchange, pinned)
    try:
        yield admission, _granted(admission, exchange)
    finally:
        admission.release()


def wait_ms(admission: Admission) -> int:
    """Whole milliseconds the request waited for its slot."""
    return round(admission.queue_wait * 1000)
