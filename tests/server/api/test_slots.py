"""Slots are given back whatever becomes of the request they were granted to (http.md §12)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

DONE = "DONE <id> STAT 1 2.5 0 1.0 7 0"
BODY = {"model": "test-model", "prompt": "a"}


def test_a_client_that_leaves_between_its_grant_and_its_worker_takes_no_slot_with_it(
    gateway: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway.plan(["ACCEPT <id> 7", "@hold", "DATA <id> <n> => hi", DONE])
    counters = gateway.parts.scheduler.counters
    admitted = counters().admitted
    with contextlib.closing(gateway.connect()) as first, contextlib.closing(gateway.connect()) as second:
        gateway.send(first, "/v1/completions", BODY)
        gateway.eventually(lambda: counters().active == 1, "the first has the slot")
        kept: list[Any] = []
        monkeypatch.setattr(gateway.server.shared.workers, "add_task", kept.append)  # no worker is free
        gateway.send(second, "/v1/completions", BODY)
        gateway.eventually(lambda: kept, "the second wants a worker")
        assert counters().queued == 1
        gateway.release()
        assert gateway.read(first).status == 200
        gateway.eventually(lambda: counters().admitted == admitted + 2, "the second has the slot")
    gateway.eventually(lambda: gateway.server.connections == 0, "both have left")
    kept[0].service()  # now a worker is free
    assert counters().active == 0
    monkeypatch.undo()
    gateway.plan()
    assert gateway.complete().status == 200


FAILING = {
    "the run": ("server.api.completions.CompletionEvents", lambda gateway: gateway.complete(stream=True)),
    "the submission": ("server.api.options.Options.submission", lambda gateway: gateway.complete()),
    "the note": ("server.api.admission.wait_ms", lambda gateway: gateway.complete()),
    "the note of one that waits": (
        "server.api.admission.wait_ms",
        lambda gateway: gateway.complete(logprobs=1),
    ),
    "the watch": ("server.http.exchange.ClientWatch.on_gone", lambda gateway: gateway.complete()),
}


@pytest.mark.parametrize("what", FAILING)
def test_whatever_fails_between_the_grant_and_the_engine_is_a_500_and_the_slot_is_free(
    gateway: Any, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    target: str
    ask: Callable[[Any], Any]
    target, ask = FAILING[what]

    def fail(*_: object, **__: object) -> None:
        monkeypatch.undo()
        raise MemoryError

    monkeypatch.setattr(target, fail)
    assert ask(gateway).error == (500, None, "engine_error")
    counters = gateway.parts.scheduler.counters()
    assert (counters.active, counters.queued) == (0, 0)
    assert gateway.complete().status == 200


def test_one_that_fails_after_it_had_to_wait_leaves_its_slot_to_the_next(
    gateway: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway.plan(["ACCEPT <id> 7", "@hold", "DATA <id> <n> => hi", DONE])
    counters = gateway.parts.scheduler.counters
    with contextlib.closing(gateway.connect()) as first, contextlib.closing(gateway.connect()) as second:
        gateway.send(first, "/v1/completions", BODY)
        gateway.eventually(lambda: counters().active == 1, "the first has the slot")

        def fail(*_: object, **__: object) -> None:
            raise MemoryError

        monkeypatch.setattr("server.api.completions.CompletionEvents", fail)
        gateway.send(second, "/v1/completions", {**BODY, "stream": True})
        gateway.eventually(lambda: counters().queued == 1, "the second waits")
        gateway.release()
        assert gateway.read(first).status == 200
        assert gateway.read(second).error == (500, None, "engine_error")
    assert counters().active == 0
