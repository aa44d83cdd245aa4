"""From a checked request to a KV slot: waiting its turn, and giving up when the client does (http.md §12)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from server.http.exchange import ClientGone, Exchange
from server.http.shared import Work
from server.scheduler import Admission, ClientLeft, Scheduler


def when_admitted(
    scheduler: Scheduler, exchange: Exchange, pinned: int | None, then: Callable[[Admission, int], None]
) -> Work | None:
    """Call ``then(admission, slot)``, which releases the slot: here and now where there is a free one, else
    in the work that is returned, which waits for it.

    Either raises the ApiError of a refusal, or ClientGone when the client left before its turn: then nothing
    is submitted.
    """
    admission = _entered(scheduler, exchange, pinned)
    if admission.is_waiting:
        return lambda: then(admission, _granted(admission, exchange))
    then(admission, _granted(admission, exchange))
    return None


def _entered(scheduler: Scheduler, exchange: Exchange, pinned: int | None) -> Admission:
    admission = scheduler.enter(pinned)
    exchange.client.on_gone(admission.leave)
    return admission


def _granted(admission: Admission, exchange: Exchange) -> int:
    try:
        slot = admission.wait()
    except ClientLeft:
        raise ClientGone from None
    finally:
        exchange.note(queue_wait_ms=wait_ms(admission))
    if exchange.client.is_gone:
        admission.release()
        raise ClientGone
    return slot


@contextmanager
def holding_slot(
    scheduler: Scheduler, exchange: Exchange, pinned: int | None
) -> Iterator[tuple[Admission, int]]:
    """Wait for a slot and hold it for the length of a with statement; raises the same."""
    admission = _entered(scheduler, exchange, pinned)
    slot = _granted(admission, exchange)
    try:
        yield admission, slot
    finally:
        admission.release()


def wait_ms(admission: Admission) -> int:
    """Whole milliseconds the request waited for its slot."""
    return round(admission.queue_wait * 1000)
