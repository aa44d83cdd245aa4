"""What a request was made of goes with it: nothing waits for the collector, whatever became of it."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from server.api.generation import EngineRun
from server.http.exchange import Exchange
from server.http.parser import RequestParser
from server.wire.inflight import Request

MADE_FOR_ONE_REQUEST = (Exchange, RequestParser, EngineRun, Request)

ASKS: dict[str, Callable[[Any], Any]] = {
    "completion": lambda gateway: gateway.complete(),
    "completion stream": lambda gateway: gateway.complete(stream=True),
    "chat": lambda gateway: gateway.chat(),
    "chat stream": lambda gateway: gateway.chat(stream=True),
    "message stream": lambda gateway: gateway.message(stream=True),
    "scored": lambda gateway: gateway.complete(logprobs=1),
    "refused": lambda gateway: gateway.complete(max_tokens="many"),
    "unknown path": lambda gateway: gateway.get("/nowhere"),
}


def in_memory() -> set[int]:
    return {id(made) for made in gc.get_objects() if isinstance(made, MADE_FOR_ONE_REQUEST)}


@pytest.fixture
def before() -> Iterator[set[int]]:
    """What other tests may have left; from here on the collector does not run."""
    gc.collect()
    gc.disable()
    yield in_memory()
    gc.enable()


@pytest.mark.parametrize("ask", ASKS)
def test_a_request_leaves_nothing_behind(gateway: Any, before: set[int], ask: str) -> None:
    for _ in range(3):
        assert ASKS[ask](gateway).complete
    gateway.eventually(lambda: in_memory() <= before, "everything is gone")
