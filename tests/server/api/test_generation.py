"""Faults of the gateway itself during a generation: half an answer never passes for a whole one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from server.text import Pipeline

DONE = "DONE <id> STAT 2 2.5 0 1.0 7 0"


@pytest.fixture(params=["feed", "finish"])
def broken_pipeline(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The text pipeline fails at the piece "b", or at its end."""
    original = getattr(Pipeline, request.param)

    def failing(self: Pipeline, *arguments: Any, **keywords: Any) -> Any:
        if request.param == "finish" or b"b" in arguments[0]:
            raise RuntimeError("a fault of our own")
        return original(self, *arguments, **keywords)

    monkeypatch.setattr(Pipeline, request.param, failing)
    return str(request.param)


ASKS: dict[str, Callable[[Any], Any]] = {
    "completion": lambda gateway: gateway.complete(),
    "scored completion": lambda gateway: gateway.complete(logprobs=1),
    "batch": lambda gateway: gateway.complete(["a", "b"]),
    "chat": lambda gateway: gateway.chat(),
    "scored chat": lambda gateway: gateway.chat(logprobs=True),
    "message": lambda gateway: gateway.message(),
}
STREAMS: dict[str, Callable[[Any], Any]] = {
    "completion": lambda gateway: gateway.complete(stream=True),
    "chat": lambda gateway: gateway.chat(stream=True),
    "message": lambda gateway: gateway.message(stream=True),
}


@pytest.mark.parametrize("ask", ASKS)
def test_a_whole_answer_becomes_a_500_and_the_slot_is_free(
    gateway: Any, broken_pipeline: str, ask: str
) -> None:
    gateway.plan(["ACCEPT <id> 7", "DATA <id> <n> => a", "DATA <id> <n> => b", DONE])
    answer = ASKS[ask](gateway)
    assert answer.status == 500
    assert b"fault of our own" not in answer.body
    gateway.eventually(lambda: gateway.counters()["active"] == 0, "the slot is free")


@pytest.mark.parametrize("ask", STREAMS)
def test_a_stream_is_cut_and_the_slot_is_free(gateway: Any, broken_pipeline: str, ask: str) -> None:
    gateway.plan(["ACCEPT <id> 7", "DATA <id> <n> => a", "@sleep 0.05", "DATA <id> <n> => b", DONE])
    answer = STREAMS[ask](gateway)
    assert (answer.status, answer.complete) == (200, False)
    assert b"[DONE]" not in answer.body and b"message_stop" not in answer.body
    gateway.eventually(lambda: gateway.counters()["active"] == 0, "the slot is free")


@pytest.mark.parametrize("ask", STREAMS)
def test_a_stream_that_cannot_be_opened_is_a_500_and_the_slot_is_free(
    gateway: Any, monkeypatch: pytest.MonkeyPatch, ask: str
) -> None:
    """Nobody else would answer: the exchange has long left its worker."""

    def fail(*_: Any, **__: Any) -> None:
        raise MemoryError

    monkeypatch.setattr("server.http.exchange.ResponseStream.__init__", fail)
    gateway.plan(["ACCEPT <id> 7", "DATA <id> <n> => a", DONE])
    assert STREAMS[ask](gateway).status == 500
    gateway.eventually(lambda: gateway.counters()["active"] == 0, "the slot is free")


@pytest.mark.parametrize("ask", ["chat", "message"])
def test_a_stream_whose_opening_fails_is_cut_and_the_slot_is_free(
    gateway: Any, monkeypatch: pytest.MonkeyPatch, ask: str
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise MemoryError

    monkeypatch.setattr("server.api.generation.Streamed._send", fail)
    gateway.plan(["ACCEPT <id> 7", "@hold", "DATA <id> <n> => a", DONE])
    answer = STREAMS[ask](gateway)  # at once, and not when the engine goes on
    assert (answer.status, answer.complete) == (200, False)
    gateway.release()
    gateway.eventually(lambda: gateway.counters()["active"] == 0, "the slot is free")
