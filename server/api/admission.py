"""From a checked request to a KV slot: waiting its turn, and giving up when the client does (http.md §12)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from server.http.exchange import ClientGone, Exchange
from server.scheduler import Admission, ClientLeft, Scheduler


def admitted(scheduler: Scheduler, exchange: Exchange, pinned: int | None) -> tuple[Admission, int]:
    """Wait for a slot; returns the admission and its slot. The caller releases it.

    Raises the ApiError of a refusal, or ClientGone when the client left before its turn: then nothing is
    submitted.
    """
    admission = scheduler.enter(pinned)
    exchange.client.on_gone(admission.leave)
    try:
        slot = admission.wait()
    except ClientLeft:
        raise ClientGone from None
    finally:
        exchange.note(queue_wait_ms=wait_ms(admission))
    if exchange.client.gone.is_set():
        admission.release()
        raise ClientGone
    return admission, slot


@contextmanager
def holding_slot(
    scheduler: Scheduler, exchange: Exchange, pinned: int | None
) -> Iterator[tuple[Admission, int]]:
    """The same for the length of a with statement; the slot is free afterwards."""
    admission, slot = admitted(scheduler, exchange, pinned)
    try:
        yield admission, slot
    finally:
        admission.release()


def wait_ms(admission: Admission) -> int:
    """Whole milliseconds the request waited for its slot."""
    return round(admission.queue_wait * 1000)
