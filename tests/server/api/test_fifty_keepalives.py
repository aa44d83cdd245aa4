"""Fifty keepalives in one stream, counted by the client before the engine goes on (http.md §15, bug B06)."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest

FIFTY = 50
TURN = [{"role": "user", "content": "hi"}]
HELD = [
    "ACCEPT <id> 7",
    "DATA <id> <n> => why</th",
    "DATA <id> <n> => ink>Hé",
    "@hold",
    "DATA <id> <n> => llo \\xf0\\x9f",
    "DATA <id> <n> => \\x98\\x80",
    "DONE <id> STAT 4 2.5 0 1.0 7 0",
]
REQUESTS: dict[str, dict[str, Any]] = {
    "/v1/completions": {"prompt": "hi"},
    "/v1/chat/completions": {"messages": TURN, "enable_thinking": True},
    "/v1/messages": {"messages": TURN, "max_tokens": 8, "thinking": {"type": "adaptive"}},
}


def kept_alive(path: str, line: bytes) -> bool:
    """Whether a line of a stream is a keepalive."""
    if path == "/v1/messages":
        return line.startswith(b"event: ping")
    if not line.startswith(b"data: {"):
        return False
    choice = json.loads(line[6:])["choices"][0]
    if choice["finish_reason"] is not None:
        return False
    return choice.get("text") == "" or choice.get("delta") == {"reasoning_content": ""}


def without_ids(body: bytes) -> list[Any]:
    """The events of a stream that say something, without what differs from request to request."""
    events: list[Any] = []
    for line in body.splitlines():
        if line.startswith(b"data: {"):
            event = json.loads(line[6:])
            for holder in (event, event.get("message", {})):
                holder.pop("id", None)
                holder.pop("created", None)
            events.append(event)
        elif line.startswith(b"data: "):
            events.append(line)
    return events


@pytest.mark.parametrize("path", REQUESTS)
def test_b06_a_stream_with_fifty_keepalives_says_what_one_with_none_says(
    open_gateway: Callable[..., Any], path: str
) -> None:
    gateway = open_gateway(environ={"COLI_KEEPALIVE_SECONDS": "0.02"})
    gateway.plan(HELD)
    request = {"model": "test-model", "stream": True, **REQUESTS[path]}
    with contextlib.closing(gateway.connect()) as connection:
        gateway.send(connection, path, request)
        response = connection.getresponse()
        assert response.status == 200
        lines: list[bytes] = []
        while sum(kept_alive(path, line) for line in lines) < FIFTY:
            line = response.readline()
            assert line, "the stream ended while the engine was silent"
            lines.append(line)
        gateway.release()
        lines += response.read().splitlines(keepends=True)
    spoken = [line for line in lines if not kept_alive(path, line) and line != b'data: {"type":"ping"}\n']

    calm = open_gateway()
    calm.plan(HELD)
    calm.release()
    alone = calm.post(path, request)
    assert not any(kept_alive(path, line) for line in alone.body.splitlines())
    assert without_ids(b"".join(spoken)) == without_ids(alone.body)
    assert "Hé" in b"".join(spoken).decode()
