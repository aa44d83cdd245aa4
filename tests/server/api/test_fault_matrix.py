"""What a client sees when the engine fails: fault by phase by form (http.md §2, §13; bugs B08, B24).

Each cell asserts the exact result and that the next request works.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import socket
from collections.abc import Callable
from typing import Any

import pytest

ACCEPT = "ACCEPT <id> 7"
DONE = "DONE <id> STAT 1 2.5 0 1.0 7 0"

PHASES = {
    "before ACCEPT": [],
    "after ACCEPT": [ACCEPT],
    "between DATA and DONE": [ACCEPT, "DATA <id> <n> => ab"],
}
FAULTS = {
    "exit": ["@exit 3"],
    "truncated payload": ["@raw DATA <id> 10\\x0aabc", "@exit 0"],
    "truncated line": ["@raw DATA <id", "@exit 0"],
    "oversized": ["DATA <id> 70000"],
    "unknown kind": ["LOGPROB <id> 0.5"],
    "bad word": ["DATA <id> many"],
    "bad terminator": ["@raw DATA <id> 2\\x0aokX"],
    "bad DONE": ["DONE <id> XXXX 1 2.5 0 1.0 7 0"],
    "named error": ["ERROR <id> SLOT_BUSY"],
}
FORMS = ("JSON", "SSE chat", "SSE completions", "SSE messages")
QUIET = {"reasoning_content": ""}  # the delta of a keepalive
STALL = "3"  # seconds; a pause of the machine that is shorter fails nothing


def ask(form: str, prompt: str = "hi") -> tuple[str, dict[str, Any]]:
    if form == "JSON" or form == "SSE completions":
        return "/v1/completions", {"model": "test-model", "prompt": prompt, "stream": form != "JSON"}
    body = {"model": "test-model", "messages": [{"role": "user", "content": prompt}], "stream": True}
    return (
        ("/v1/chat/completions", body) if form == "SSE chat" else ("/v1/messages", body | {"max_tokens": 8})
    )


def text(answer: Any, form: str) -> str:
    """The text that reached the client before the stream was cut."""
    if form == "SSE messages":
        return "".join(event["delta"]["text"] for event in answer.events if "delta" in event)
    choices = [event["choices"][0] for event in answer.events]
    if form == "SSE completions":
        return "".join(choice["text"] for choice in choices)
    return "".join(choice["delta"]["content"] for choice in choices if choice["delta"] != QUIET)


def await_text(gateway: Any, connection: Any, form: str) -> None:
    """Wait until the client of a committed stream has got "ab", which stays to be read."""
    if form != "JSON":
        gateway.eventually(lambda: b'"ab"' in connection.sock.recv(1 << 16, socket.MSG_PEEK), "the text")


def assert_failed(answer: Any, form: str, *, committed: bool, seen: str) -> None:
    if form == "JSON" or not committed:
        assert answer.status == 500
        assert answer.headers["content-type"] == "application/json"
        if form == "SSE messages":
            assert answer.json["error"]["type"] == "api_error"
        else:
            assert answer.error == (500, None, "engine_error")
        return
    assert (answer.status, answer.complete) == (200, False)
    assert text(answer, form) == seen
    for end in (b"[DONE]", b"message_stop", b"error"):
        assert end not in answer.body


def assert_serves(gateway: Any) -> None:
    gateway.plan()
    assert gateway.complete().json["choices"][0]["text"] == "Héllo"
    assert gateway.counters()["active"] == 0


@pytest.fixture(scope="module")
def faulty(open_gateway: Callable[..., Any]) -> Any:
    return open_gateway(fresh=True)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("fault", FAULTS)
def test_an_engine_fault_is_a_500_before_the_commit_and_a_cut_stream_after_it(
    faulty: Any, fault: str, phase: str, form: str
) -> None:
    faulty.plan([*PHASES[phase], *FAULTS[fault]])
    answer = faulty.post(*ask(form))
    seen = "ab" if phase == "between DATA and DONE" else ""
    assert_failed(answer, form, committed=phase != "before ACCEPT", seen=seen)
    assert_serves(faulty)


@pytest.mark.parametrize("form", FORMS)
def test_a_second_accept_is_a_fault_of_that_request_only(faulty: Any, form: str) -> None:
    pid = faulty.get("/health").json["engine"]["pid"]
    faulty.plan([ACCEPT, "DATA <id> <n> => ab", ACCEPT, "DATA <id> <n> => cd", DONE])
    assert_failed(faulty.post(*ask(form)), form, committed=True, seen="ab")
    assert_serves(faulty)
    assert faulty.get("/health").json["engine"]["pid"] == pid


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("phase", PHASES)
def test_an_engine_killed_from_outside(faulty: Any, phase: str, form: str) -> None:
    faulty.plan([*PHASES[phase], "@hold", DONE])
    with contextlib.closing(faulty.connect()) as connection:
        faulty.send(connection, *ask(form))
        faulty.eventually(lambda: faulty.submits(), "submitted")
        if phase == "after ACCEPT" and form != "JSON":
            connection.sock.recv(1, socket.MSG_PEEK)  # the acceptance has reached the client
        if phase == "between DATA and DONE":
            await_text(faulty, connection, form)
        os.kill(faulty.get("/health").json["engine"]["pid"], signal.SIGKILL)
        answer = faulty.read(connection)
    seen = "ab" if phase == "between DATA and DONE" else ""
    assert_failed(answer, form, committed=phase != "before ACCEPT", seen=seen)
    assert_serves(faulty)


def test_b08_and_b24_an_engine_that_stands_still(open_gateway: Callable[..., Any]) -> None:
    """All cells at once, so that they share one stall; keepalives hide it from no stream."""
    environ = {"COLI_ENGINE_STALL_TIMEOUT": STALL, "COLI_KEEPALIVE_SECONDS": "0.05"}
    gateway = open_gateway(environ=environ, kv_slots="12")
    gateway.plan(match={phase: [*frames, "@sleep 60"] for phase, frames in PHASES.items()})
    answers = {}
    with contextlib.ExitStack() as stack:
        connections = {
            cell: stack.enter_context(contextlib.closing(gateway.connect()))
            for cell in itertools.product(PHASES, FORMS)
        }
        for slot, ((phase, form), connection) in enumerate(connections.items()):
            path, body = ask(form, phase)
            gateway.send(connection, path, body | {"cache_slot": slot})
        for cell, connection in connections.items():
            answers[cell] = gateway.read(connection)
    for (phase, form), answer in answers.items():
        seen = "ab" if phase == "between DATA and DONE" else ""
        assert_failed(answer, form, committed=phase != "before ACCEPT", seen=seen)
    assert len(gateway.submits()) == len(answers)
    assert any(b"event: ping" in answer.body for answer in answers.values())
    assert_serves(gateway)


def test_a_stopped_engine_fails_requests_and_serves_when_it_goes_on(open_gateway: Callable[..., Any]) -> None:
    gateway = open_gateway(environ={"COLI_ENGINE_STALL_TIMEOUT": STALL, "COLI_KEEPALIVE_SECONDS": "60"})
    assert_serves(gateway)
    pid = gateway.get("/health").json["engine"]["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        assert gateway.complete().error == (500, None, "engine_error")
    finally:
        with contextlib.suppress(ProcessLookupError):  # silent altogether, it may have been killed by now
            os.kill(pid, signal.SIGCONT)
    assert_serves(gateway)


@pytest.mark.parametrize("form", FORMS)
def test_every_request_in_flight_gets_its_own_failure(open_gateway: Callable[..., Any], form: str) -> None:
    gateway = open_gateway(kv_slots="2")
    gateway.plan([ACCEPT, "DATA <id> <n> => ab", "@hold", DONE], ["@exit 3"])
    path, body = ask(form)
    with contextlib.closing(gateway.connect()) as connection:
        gateway.send(connection, path, body | {"cache_slot": 0})
        gateway.eventually(lambda: gateway.submits(), "the first is submitted")
        await_text(gateway, connection, form)
        second = gateway.complete("second", cache_slot=1)
        first = gateway.read(connection)
    assert second.error == (500, None, "engine_error")
    assert_failed(first, form, committed=True, seen="ab")
    assert_serves(gateway)


@pytest.mark.parametrize("form", FORMS)
def test_a_request_that_waits_gets_the_new_engine(faulty: Any, form: str) -> None:
    faulty.plan([ACCEPT, "DATA <id> <n> => new", DONE], match={"first": [ACCEPT, "@hold", "@exit 3"]})
    path, body = ask(form)
    with contextlib.closing(faulty.connect()) as first, contextlib.closing(faulty.connect()) as second:
        faulty.send(first, "/v1/completions", {"model": "test-model", "prompt": "first"})
        faulty.eventually(lambda: faulty.submits(), "the first is submitted")
        faulty.send(second, path, body)
        faulty.eventually(lambda: faulty.counters()["queued"] == 1, "the second waits")
        faulty.release()
        assert faulty.read(first).error == (500, None, "engine_error")
        answer = faulty.read(second)
    assert (answer.status, answer.complete) == (200, True)
    assert b"new" in answer.body


def test_section_2_a_command_that_cannot_be_written_ends_the_committed_stream(faulty: Any) -> None:
    faulty.plan(["@close_stdin", ACCEPT, "DATA <id> <n> => hello STOP!"])
    answer = faulty.complete(stream=True, stop="STOP!")
    assert (answer.status, answer.complete) == (200, False)
    assert text(answer, "SSE completions") == "hello "
    assert_serves(faulty)


def test_section_2_a_command_that_cannot_be_written_is_a_500_before_the_commit(faulty: Any) -> None:
    faulty.plan(["@close_stdin", ACCEPT, "DATA <id> <n> => hello STOP!"])
    assert faulty.complete(stop="STOP!").error == (500, None, "engine_error")
    assert_serves(faulty)
