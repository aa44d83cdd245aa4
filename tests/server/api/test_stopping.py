"""Stopping: whoever has no status yet when the time is over is told so, a committed stream is cut (http.md
§12, §13).
"""

from __future__ import annotations

import contextlib
import http.client
from collections.abc import Callable
from typing import Any

import pytest


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", ["complete", "chat", "message"])
def test_section_12_shutting_down_is_a_503_for_all_without_a_status(
    open_gateway: Callable[..., Any], dialect: str, stream: bool
) -> None:
    gateway = open_gateway(fresh=True)
    gateway.plan(["@sleep 600"])
    paths = {"complete": "/v1/completions", "chat": "/v1/chat/completions", "message": "/v1/messages"}
    content: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 8}
    if dialect == "complete":
        content = {"prompt": "hi"}
    body = {"model": "test-model", "stream": stream, **content}
    with contextlib.closing(gateway.connect()) as running, contextlib.closing(gateway.connect()) as waiting:
        gateway.send(running, paths[dialect], body)
        gateway.eventually(gateway.submits, "submitted")
        gateway.send(waiting, paths[dialect], body)
        gateway.eventually(lambda: gateway.counters()["queued"] == 1, "queued")
        gateway.server.shut_down(0.0)
        answers = [gateway.read(connection) for connection in (running, waiting)]
    for answer in answers:
        assert answer.status == 503
        assert "shutting down" in answer.json["error"]["message"]


def test_section_2_a_stream_is_cut_when_the_time_is_over(open_gateway: Callable[..., Any]) -> None:
    gateway = open_gateway(fresh=True)
    gateway.plan(["ACCEPT <id> 7", "DATA <id> <n> => ab", "@sleep 600"])
    with contextlib.closing(gateway.connect()) as connection:
        body = {"model": "test-model", "prompt": "hi", "stream": True}
        gateway.send(connection, "/v1/completions", body)
        response = connection.getresponse()
        assert response.status == 200 and response.read(1) == b"d"
        gateway.server.shut_down(0.0)
        with pytest.raises(http.client.IncompleteRead) as cut:
            response.read()
    assert b"ab" in cut.value.partial and b"[DONE]" not in cut.value.partial
