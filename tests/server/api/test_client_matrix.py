"""Clients that leave, through the whole gateway: phase by form by manner (http.md §2, §12; bugs B21, B22).

Each cell: the engine's work is cancelled or never begun, the slot comes back, the next request works, and the
log has no error.
"""

from __future__ import annotations

import contextlib
import json
import logging
import socket
import struct
from collections.abc import Callable
from typing import Any

import pytest

FORMS = {
    "JSON": ("/v1/completions", {"prompt": "hi"}),
    "batch": ("/v1/completions", {"prompt": ["hi", "ho"]}),
    "SSE completions": ("/v1/completions", {"prompt": "hi", "stream": True}),
    "SSE chat": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}], "stream": True}),
    "SSE messages": (
        "/v1/messages",
        {"messages": [{"role": "user", "content": "hi"}], "stream": True, "max_tokens": 8},
    ),
}
LATE = ["@wait CANCEL", "DATA <id> <n> => late", "ERROR <id> CANCELLED"]
SCRIPTS = {
    "prefill": LATE,
    "mid stream": ["ACCEPT <id> 7", "DATA <id> <n> => ab", *LATE],
}


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


MANNERS: dict[str, Callable[[socket.socket], None]] = {
    "closed": socket.socket.close,
    "reset": reset,
    "half-closed": lambda connection: connection.shutdown(socket.SHUT_WR),
}


def request(form: str, **more: Any) -> bytes:
    path, fields = FORMS[form]
    body = json.dumps({"model": "test-model", **fields, **more}).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def connect(gateway: Any) -> socket.socket:
    return socket.create_connection(("127.0.0.1", gateway.port), timeout=15)


def at_rest(gateway: Any, submitted: int) -> None:
    """Every slot is free, so many SUBMITs were sent under the plan so far, and the next request works."""
    gateway.eventually(lambda: gateway.counters()["active"] == 0, "the slot is free")
    assert len(gateway.submits()) == submitted
    gateway.plan()
    assert gateway.complete().json["choices"][0]["text"] == "Héllo"


@pytest.fixture(autouse=True)
def no_errors_in_the_log(caplog: pytest.LogCaptureFixture) -> Any:
    yield
    assert [
        record.getMessage() for record in caplog.get_records("call") if record.levelno >= logging.ERROR
    ] == []


@pytest.mark.parametrize("manner", MANNERS)
@pytest.mark.parametrize("phase", SCRIPTS)
@pytest.mark.parametrize("form", FORMS)
def test_b22_a_client_that_leaves_a_running_request_is_cancelled(
    gateway: Any, monkeypatch: pytest.MonkeyPatch, form: str, phase: str, manner: str
) -> None:
    monkeypatch.setattr(gateway.server, "_wait", 600.0)  # the departure wakes the loop, and not the time
    gateway.plan(SCRIPTS[phase])
    with contextlib.closing(connect(gateway)) as connection:
        connection.sendall(request(form))
        gateway.eventually(lambda: gateway.submits(), "submitted")
        if phase == "mid stream" and form.startswith("SSE"):
            assert connection.recv(1) == b"H"
        MANNERS[manner](connection)
        gateway.eventually(lambda: gateway.records("CANCEL"), "cancelled")
    at_rest(gateway, submitted=1)  # also of a batch


@pytest.mark.parametrize("manner", MANNERS)
@pytest.mark.parametrize("form", FORMS)
def test_b21_a_client_that_leaves_the_queue_reaches_no_engine(gateway: Any, form: str, manner: str) -> None:
    gateway.plan(["ACCEPT <id> 7", "@sleep 60"])
    with contextlib.closing(connect(gateway)) as running, contextlib.closing(connect(gateway)) as waiting:
        running.sendall(request("SSE completions"))
        assert running.recv(1) == b"H"
        waiting.sendall(request(form))
        gateway.eventually(lambda: gateway.counters()["queued"] == 1, "queued")
        MANNERS[manner](waiting)
        gateway.eventually(lambda: gateway.counters()["queued"] == 0, "left the queue")
        reset(running)
    at_rest(gateway, submitted=1)  # the one that ran


@pytest.mark.parametrize("manner", MANNERS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("part", ["head", "body"])
def test_a_client_that_leaves_before_its_request_is_whole_starts_nothing(
    gateway: Any, form: str, part: str, manner: str
) -> None:
    whole = request(form)
    cut = whole.index(b"\r\n\r\n") - 5 if part == "head" else len(whole) - 3
    with contextlib.closing(connect(gateway)) as connection:
        connection.sendall(whole[:cut])
        MANNERS[manner](connection)
    gateway.eventually(lambda: gateway.server.connections == 0, "the connection is over")
    at_rest(gateway, submitted=0)


def test_two_hundred_clients_that_vanish_at_once_leave_nothing(open_gateway: Callable[..., Any]) -> None:
    gateway = open_gateway(
        kv_slots="64",
        max_queue="200",
        environ={"COLI_MAX_CONNECTIONS_PER_IP": "0"},
    )
    gateway.plan(["ACCEPT <id> 7", "DATA <id> <n> => ab", "@sleep 60"])
    forms = list(FORMS)
    clients = [connect(gateway) for _ in range(200)]
    for number, client in enumerate(clients):
        client.sendall(request(forms[number % len(forms)]))
    gateway.eventually(lambda: gateway.counters()["active"] == 64, "every slot is taken")
    gateway.eventually(lambda: gateway.counters()["queued"] == 136, "the others wait")
    for client in clients:
        reset(client)
    gateway.eventually(lambda: gateway.counters()["active"] == 0, "every slot is free")
    counters = gateway.counters()
    assert counters["queued"] == 0
    # A slot that comes free may go to one about to leave, and so again and again: only the sum is certain.
    assert counters["admitted"] + counters["cancelled"] == 200
    assert counters["admitted"] == counters["completed"]
    submitted = len(gateway.submits())  # one that was admitted may have left before its SUBMIT
    assert 64 <= submitted <= counters["admitted"]
    at_rest(gateway, submitted)
