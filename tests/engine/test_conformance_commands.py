"""Conformance of every engine: what it makes of commands, right and wrong, and of the ends of its pipes."""

from __future__ import annotations

import select
import signal
from pathlib import Path

import pytest

from tests.engine.checkpoints import build_tokenizer
from tests.engine.conformance import ENDURING, LONG_PROMPT, PROMPT, Number, Start, kinds
from tests.engine.engine_process import EngineProcess, submit


def test_errors_of_requests(engine: EngineProcess, number: Number) -> None:
    running, other = number(), number()
    start = submit(running, PROMPT, ENDURING)
    engine.send(start + submit(other, "x", 2) + submit(running, "x", 2, slot=1) + b"CANCEL %d\n" % running)
    engine.wait_for(lambda frame: frame.KIND == "ERROR" and frame.words == ("CANCELLED",))
    assert engine.error(other) == ("SLOT_BUSY",)
    assert [frame.words for frame in engine.of(running) if frame.KIND == "ERROR"] == [
        ("DUPLICATE_ID",),
        ("CANCELLED",),
    ]
    for command in (b"CANCEL", b"STOP"):
        unknown = number()
        engine.send(b"%s %d\n" % (command, unknown))
        engine.wait_ends([unknown])
        assert engine.error(unknown) == ("NOT_FOUND",)
    for prompt, fields in (("", {}), (b"", {"ids": 1})):
        empty = number()
        engine.ask(empty, prompt, 2, **fields)
        assert engine.error(empty) == ("EMPTY_PROMPT",)
    beyond = number()
    engine.ask(beyond, "x", 2, slot=4)
    assert engine.error(beyond) == ("BAD_REQUEST",)


def test_order_of_the_checks_of_a_request(start: Start) -> None:
    """Of several things wrong with a SUBMIT the answer names the first."""
    engine = start(CTX="600")
    broken = {"extra": b"root ::= ("}
    long = "!" * 600
    sent = (
        (1, "x", {}, None),
        (1, "", {"slot": 9}, "DUPLICATE_ID"),
        (2, "", {"slot": 9}, "BAD_REQUEST"),
        (3, "", {"slot": 0}, "SLOT_BUSY"),
        (4, "", {"slot": 1, **broken}, "EMPTY_PROMPT"),
        (5, long, {"slot": 1, **broken}, "CONTEXT_EXCEEDED"),
        (6, "x", {"slot": 1, **broken}, "BAD_REQUEST"),
    )
    data = b"".join(submit(request, prompt, 1, **fields) for request, prompt, fields, _ in sent)
    assert len(data) <= select.PIPE_BUF, "must arrive at once, so that all is answered before request 1 ends"
    engine.send(data)
    engine.wait_ends(range(1, 7))
    errors = [(frame.id, frame.words[0]) for frame in engine.received if frame.KIND == "ERROR"]
    assert errors == [(request, code) for request, _, _, code in sent if code is not None]
    assert engine.of(1)[-1].KIND == "DONE"


def test_an_ended_request_is_unknown_and_its_id_is_free(engine: EngineProcess, number: Number) -> None:
    request = number()
    first = kinds(engine.ask(request, PROMPT, 3))
    for command in (b"CANCEL", b"STOP"):
        before = len(engine.received)
        engine.send(b"%s %d\n" % (command, request))
        engine.wait_for(lambda frame: frame.KIND == "ERROR")
        assert [(frame.id, frame.words) for frame in engine.received[before:]] == [(request, ("NOT_FOUND",))]
    before = len(engine.received)
    engine.submit(request, PROMPT, 3)
    engine.wait_for(lambda frame: frame.KIND == "DONE")
    again = [frame for frame in engine.received[before:] if getattr(frame, "id", None) == request]
    assert kinds(again) == first == ["ACCEPT", "DATA", "DONE"]


def test_context_is_checked_before_prefill(start: Start) -> None:
    engine = start(CTX="64")
    for request, length in ((1, 62), (2, 63), (3, 64), (4, 500)):
        engine.ask(request, "!" * length, 30)
    assert [frame.KIND for frame in engine.of(1)] == ["ACCEPT", "DATA", "DATA", "DONE"]
    assert [frame.KIND for frame in engine.of(2)] == ["ACCEPT", "DATA", "DONE"]
    assert engine.of(1)[-1].length_limited == engine.of(2)[-1].length_limited == 1
    for request, used in ((3, 64), (4, 500)):
        code, least, limit = engine.error(request)
        assert (code, limit) == ("CONTEXT_EXCEEDED", "63")
        assert 63 < int(least) <= used


def test_token_ids(engine: EngineProcess, number: Number) -> None:
    text, ids = number(), number()
    prompt = build_tokenizer().encode(PROMPT, add_special_tokens=False).ids
    engine.ask(text, PROMPT, 10)
    engine.ask(ids, " ".join(map(str, prompt)).encode(), 10, ids=1)
    padded = number()
    engine.ask(padded, " ".join(f"{token:06000}" for token in prompt).encode(), 10, ids=1)
    assert engine.text(ids) == engine.text(padded) == engine.text(text)
    for malformed in (
        b"1  2",
        b" 1",
        b"1 ",
        b"a",
        b"-1",
        b"1.0",
        b"+1",
        b"288",
        b"99999999999999999999",
        b"1\n2",
    ):
        request = number()
        engine.ask(request, malformed, 2, ids=1)
        assert engine.error(request) == ("BAD_REQUEST",), malformed


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (b"HELLO\n", (0, "BAD_REQUEST")),
        (b"CANCEL\n", (0, "BAD_REQUEST")),
        (b"CANCEL 0\n", (0, "BAD_REQUEST")),
        (b"STOP seven\n", (0, "BAD_REQUEST")),
        (b"SUBMIT 0 0 5 4 0 1\nHello\n", (0, "BAD_REQUEST")),
        (b"SUBMIT 900001 0 5 4 2.5 1\nHello\n", (900001, "BAD_REQUEST")),
        (b"SUBMIT 900002 0 5 4 0 0\nHello\n", (900002, "BAD_REQUEST")),
        (b"SUBMIT 900003 0 5 4 0 1e-50\nHello\n", (900003, "BAD_REQUEST")),
        (b"SUBMIT 900004 0 5 4 nan 1\nHello\n", (900004, "BAD_REQUEST")),
        (b"SUBMIT 900005 0 5 4 0 1 0 logprobs=33\nHello\n", (900005, "BAD_REQUEST")),
        (b"SUBMIT 900006 0 5 4 0 1 0 ids=1 ids=1\nHello\n", (900006, "BAD_REQUEST")),
        (b"SUBMIT 900007 0 5 4 0 1 0 wish=1\nHello\n", (900007, "BAD_REQUEST")),
        (b"SUBMIT 900008 0 5 0 0 1\nHello\n", (900008, "BAD_REQUEST")),
        (b"SUBMIT 900009 0 4 4 0 1\n\xff\xfe\xc0\x80\n", (900009, "BAD_REQUEST")),
    ],
)
def test_refused_commands_keep_the_stream_in_step(
    sent: bytes, answer: tuple[int, str], engine: EngineProcess, number: Number
) -> None:
    after = number()
    before = len(engine.received)
    engine.send(sent + submit(after, "x", 1))
    engine.wait_ends([after])
    errors = [frame for frame in engine.received[before:] if frame.KIND == "ERROR"]
    assert [(frame.id, *frame.words) for frame in errors] == [answer]
    assert kinds(engine.of(after)) == ["ACCEPT", "DATA", "DONE"]


def test_payload_lines_are_never_commands(engine: EngineProcess, number: Number) -> None:
    victim, hostile = number(), number()
    engine.submit(victim, PROMPT, 200, slot=1)
    payload = b"\nCANCEL %d\nSTOP %d\n" % (victim, victim)
    engine.send(b"SUBMIT %d 0 %d 4 9 1\n%s\n" % (hostile, len(payload), payload))
    engine.wait_ends([victim, hostile])
    assert engine.error(hostile) == ("BAD_REQUEST",)
    assert engine.of(victim)[-1].completion_tokens == 200


def test_image_is_refused_once(engine: EngineProcess, number: Number) -> None:
    request, after = number(), number()
    engine.send(
        b"IMAGE %d 10 2 2\n0123456789\n" % request + submit(request, PROMPT, 4) + submit(after, "x", 1)
    )
    engine.wait_ends([request, after])
    assert engine.error(request) == ("BAD_REQUEST",)
    assert kinds(engine.of(after)) == ["ACCEPT", "DATA", "DONE"]


def test_commands_in_any_split(start: Start) -> None:
    whole, pieces = start(), start()
    data = submit(1, PROMPT, 6, logprobs=1) + submit(2, LONG_PROMPT, 3, slot=1)
    whole.send(data)
    whole.wait_ends([1, 2])
    for index in range(len(data)):
        pieces.send(data[index : index + 1])
    pieces.wait_ends([1, 2])
    for request in (1, 2):
        assert pieces.text(request) == whole.text(request)
        assert kinds(pieces.of(request)) == kinds(whole.of(request))


def test_missing_terminator_ends_the_engine(start: Start) -> None:
    engine = start()
    engine.send(b"SUBMIT 1 0 5 4 0 1\nHelloX\nSUBMIT 2 0 5 4 0 1\nHello\n")
    code = engine.drain()
    assert engine.error(1) == ("BAD_FRAME",)
    assert engine.of(2) == []
    assert code > 0


def test_end_of_input_finishes_what_runs(start: Start) -> None:
    engine = start()
    engine.send(submit(1, PROMPT, 60) + submit(2, LONG_PROMPT, 30, slot=1))
    assert engine.finish() == 0
    assert [engine.of(request)[-1].KIND for request in (1, 2)] == ["DONE", "DONE"]
    assert [engine.of(request)[-1].completion_tokens for request in (1, 2)] == [60, 30]


def test_end_of_input_inside_a_command(start: Start) -> None:
    engine = start()
    engine.send(submit(1, PROMPT, 5) + b"SUBMIT 2 1 50 4 0 1\nHello")
    assert engine.finish() == 0
    assert kinds(engine.of(1)) == ["ACCEPT", "DATA", "DONE"]
    assert engine.of(2) == []


@pytest.mark.parametrize("inherited", ["default", "ignored"])
def test_reader_gone_is_death_by_sigpipe(inherited: str, command: list[str], models: dict[str, Path]) -> None:
    """Even when the parent ignored SIGPIPE, as Python does unless told to restore signals."""
    with EngineProcess(command, models["endless"], restore_signals=inherited == "default") as engine:
        assert engine.process.stdout is not None
        engine.process.stdout.close()
        engine.submit(1, PROMPT, 400)
        assert engine.process.wait(60) == -signal.SIGPIPE
