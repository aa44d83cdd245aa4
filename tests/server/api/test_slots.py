"""Slots are given back whatever becomes of the request they were granted to (http.md §12)."""

from __future__ import annotations

import contextlib
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
