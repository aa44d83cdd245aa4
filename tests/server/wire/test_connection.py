"""The sans-IO connection: bytes in, events and messages out, for every clause of wire.md sections 2 and 5.

What ends a request from our side is in test_connection_cancel.py and test_connection_deadlines.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from generated import frames
from server.wire.events import ConnectionLost, Failed, Image

READY = b"a banner\n\x01\x01READY\x01\x01\nSTAT 0 0.0 0.0 1.0\n"
PROF = b"PROF 2.5 7 12 0.4 0.1 0.9 0.6 0.2 15\n"


def one_of_each(sink: Any) -> list[tuple[str, Any]]:
    """Calls of a sink with frames reduced to their payloads."""
    return [
        (name, [frame.payload for frame in value] if name in ("data", "echo", "tool") else value)
        for name, value in sink.calls
    ]


# -- what is written -----------------------------------------------------------------------------------------


def test_a_plain_request_is_the_six_word_header_and_nothing_else(wire: Any) -> None:
    wire.submit(b"hi")
    assert wire.written() == b"SUBMIT 1 0 2 16 0.7 0.9\nhi\n"


def test_extension_keys_and_grammar_are_written_only_when_used(wire: Any) -> None:
    wire.submit(b"hi", extra=b"root", slot=3)
    wire.submit(b"1 2", ids=True, logprobs=2, pin=True, max_tokens=4, temperature=0, top_p=1)
    assert wire.written() == (
        b"SUBMIT 1 3 2 16 0.7 0.9 4\nhiroot\nSUBMIT 2 0 3 4 0 1 0 logprobs=2 ids=1 pin=1\n1 2\n"
    )


def test_an_image_travels_immediately_before_its_submit(wire: Any) -> None:
    wire.submit(b"hi", image=Image(b"abcd", 2, 3))
    assert [message.kind for message in wire.messages] == ["IMAGE", "SUBMIT"]
    assert wire.written() == b"IMAGE 1 4 2 3\nabcd\nSUBMIT 1 0 2 16 0.7 0.9\nhi\n"


def test_stop_and_cancel_are_written_once(wire: Any) -> None:
    request, _ = wire.submit()
    wire.feed(b"ACCEPT 1 2\n")
    wire.written()
    wire.stop(request)
    wire.stop(request)
    assert wire.written() == b"STOP 1\n"
    wire.cancel(request)
    wire.cancel(request)
    wire.stop(request)
    assert wire.written() == b"CANCEL 1\n"


# -- an ordinary life ----------------------------------------------------------------------------------------


def test_a_request_from_accept_to_done(wire: Any) -> None:
    _, sink = wire.submit()
    wire.feed(b"ACCEPT 1 7 extra words\nDATA 1 1\na\nDATA 1 1\nb\nTOOL 1 0\n\nDATA 1 1\nc\n")
    wire.feed(b"DONE 1 STAT 3 2.5 0 1.0 7 1\n")
    sink.wait()
    assert one_of_each(sink)[:-1] == [
        ("accept", 7),
        ("data", [b"a", b"b"]),
        ("tool", [b""]),
        ("data", [b"c"]),
    ]
    done = sink.calls[-1][1]
    assert (done.completion_tokens, done.prompt_tokens, done.length_limited) == (3, 7, 1)
    assert wire.connection.in_flight == 0


def test_requests_are_told_apart_within_one_buffer(wire: Any) -> None:
    _, first = wire.submit()
    _, second = wire.submit(slot=1)
    wire.feed(b"ACCEPT 1 1\nACCEPT 2 2\nDATA 1 1\na\nDATA 2 1\nx\nDATA 1 1\nb\nDATA 2 1\ny\n")
    assert one_of_each(first) == [("accept", 1), ("data", [b"a", b"b"])]
    assert one_of_each(second) == [("accept", 2), ("data", [b"x", b"y"])]


@pytest.mark.parametrize(
    ("frame", "call"),
    [
        (b"DATA 1 1\na\n", ("data", [b"a"])),
        (b"TOOL 1 1\na\n", ("tool", [b"a"])),
    ],
)
def test_an_engine_without_accept_accepts_by_its_first_frame(
    wire: Any, frame: bytes, call: tuple[str, list[bytes]]
) -> None:
    _, sink = wire.submit()
    wire.feed(frame)
    assert one_of_each(sink) == [("accept", None), call]


def test_done_alone_is_acceptance_too(wire: Any) -> None:
    _, sink = wire.submit()
    wire.feed(b"DONE 1 STAT 0 0 0 1.0 2 0\n")
    assert sink.wait().names == ["accept", "done"]


def test_echo_is_no_acceptance_and_waits_for_it(wire: Any) -> None:
    _, sink = wire.submit(logprobs=1)
    wire.feed(b"ECHO 1 1 0 nan 0\nh\nECHO 1 1 1 -0.5 0\ni\n")
    assert sink.calls == []
    wire.feed(b"ACCEPT 1 2\nECHO 1 1 2 -1.5 0\n!\n")
    assert one_of_each(sink) == [("accept", 2), ("echo", [b"h", b"i"]), ("echo", [b"!"])]


def test_frames_of_unknown_and_finished_requests_are_dropped(wire: Any) -> None:
    _, sink = wire.submit()
    wire.feed(b"ACCEPT 1 1\nDONE 1 STAT 0 0 0 1.0\n")
    calls = list(sink.calls)
    late = b"ACCEPT 1 1\nDATA 1 1\na\nECHO 1 1 0 nan 0\na\nTOOL 1 0\n\n"
    late += b"DONE 1 STAT 0 0 0 1.0\nERROR 1 CANCELLED\n"
    wire.feed(late + late.replace(b" 1 ", b" 99 ", 1))
    assert sink.calls == calls
    assert wire.connection.late_frames == 12
    assert wire.engine_events == []


def test_group_frames_have_no_effect_even_for_a_live_id(wire: Any) -> None:
    _, sink = wire.submit()
    wire.feed(b"ACCEPT 1 1\nGRPP 1 2 0 nan 0\nZZ\nGRPG 1 2 0 1 nan 0\nZZ\nGRPS 1 0 3 4\nGRPE 1 0 -1.5 2 1\n")
    wire.feed(b"DATA 1 1\na\nDONE 1 STAT 1 0 0 1.0\n")
    assert (sink.wait().names, sink.text) == (["accept", "data", "done"], b"a")


def test_telemetry_goes_to_the_owner_and_disturbs_nobody(wire: Any) -> None:
    _, sink = wire.submit()
    wire.feed(
        b"ACCEPT 1 7\nHWINFO 16 64.0 32.0 1 24.0 Some CPU|Some GPU\nTIERS 1 2 3 4.0 5.0\nEMAP 1 2 0a0b\n"
        b"HITS 1 2 03\nPROF 2.5 7 12 0.4 0.1 0.9 0.6 -0.000 15\nPERF fast\n\nDATA 1 1\nx\n"
    )
    assert [event.frame.KIND for event in wire.engine_events] == [
        "HWINFO", "TIERS", "EMAP", "HITS", "PROF", "PERF",
    ]  # fmt: skip
    assert one_of_each(sink) == [("accept", 7), ("data", [b"x"])]


# -- faults of one request -----------------------------------------------------------------------------------


@pytest.mark.parametrize("progress", [b"ACCEPT 1 1\n", b"DATA 1 1\na\n", b"TOOL 1 0\n\n"])
@pytest.mark.parametrize("end", [b"ERROR 1 CANCELLED\n", b"DONE 1 STAT 1 0 0 1.0\n"])
def test_a_second_or_late_accept_fails_that_request_only(wire: Any, progress: bytes, end: bytes) -> None:
    _, faulty = wire.submit()
    _, other = wire.submit(slot=1)
    wire.feed(b"ACCEPT 2 1\n" + progress)
    wire.written()
    delivered = list(faulty.calls)
    wire.feed(b"ACCEPT 1 1\nDATA 1 4\nlost\n")
    assert wire.written() == b"CANCEL 1\n", "the slot is the engine's until it lets go"
    assert faulty.calls == delivered
    wire.feed(end + b"DATA 2 1\nb\nDONE 2 STAT 1 0 0 1.0\n")
    assert faulty.wait().outcome == ("failure", 500, "engine_error")
    assert "accepted the request twice or too late" in faulty.cause
    assert (other.wait().outcome, other.text) == (("done", 1), b"b")


@pytest.mark.parametrize(
    ("words", "ids", "expected"),
    [
        (b"CONTEXT_EXCEEDED 8321 4094", False, (400, "context_length_exceeded", "prompt[3]")),
        (b"EMPTY_PROMPT", False, (400, "invalid_value", "prompt[3]")),
        (b"BAD_REQUEST", False, (500, "engine_error", None)),
        (b"BAD_REQUEST", True, (400, "invalid_value", "prompt[3]")),
        (b"CANCELLED", False, (500, "engine_error", None)),
        (b"queue full", False, (503, "engine_unavailable", None)),
        (b"", False, (500, "engine_error", None)),
        (b"some words of its own", False, (500, "engine_error", None)),
    ],
)
def test_errors_of_the_engine_become_errors_of_the_api(
    wire: Any, words: bytes, ids: bool, expected: tuple[int, str, str | None]
) -> None:
    _, sink = wire.submit(b"1", ids=ids, prompt_param="prompt[3]")
    wire.feed(b"ERROR 1 %s\n" % words)
    error = sink.wait().calls[-1][1]
    assert (error.status, error.name, error.param) == expected
    assert sink.cause == f"the engine answered ERROR {words.decode()}"
    assert sink.names == ["failure"]


@pytest.mark.parametrize(
    ("words", "ids", "expected"),
    [
        (b"BAD_REQUEST", False, (400, "invalid_value", "response_format")),
        (b"BAD_REQUEST", True, (400, "invalid_value", "prompt[3]")),
        (b"CONTEXT_EXCEEDED 8321 4094", False, (400, "context_length_exceeded", "prompt[3]")),
        (b"BAD_FRAME", False, (500, "engine_error", None)),
        (b"BAD_REQUESTS", False, (500, "engine_error", None)),
    ],
)
def test_a_bad_request_with_a_grammar_means_the_grammar_where_there_are_no_ids(
    wire: Any, words: bytes, ids: bool, expected: tuple[int, str, str | None]
) -> None:
    _, sink = wire.submit(b"1", ids=ids, extra=b"root", prompt_param="prompt[3]")
    wire.feed(b"ERROR 1 %s\n" % words)
    error = sink.wait().calls[-1][1]
    assert (error.status, error.name, error.param) == expected


def test_an_error_after_text_is_one_failure(wire: Any) -> None:
    _, sink = wire.submit()
    wire.feed(b"ACCEPT 1 1\nDATA 1 1\na\nERROR 1 SLOT_BUSY\nDATA 1 1\nb\n")
    assert sink.wait().names == ["accept", "data", "failure"]


# -- faults of the stream ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        (b"LOGPROB 1 0.5\n", "LOGPROB"),
        (b"DATA 1 70000\n", "size"),
        (b"DATA 1 2\nokX", "terminator"),
        (b"DONE 1 STAT 1 2.5\n", "DONE"),
        (b"DONE 1 XXXX 1 2.5 0 1.0 7 0\n", "DONE"),
        (b"GRPP 99 2 0 nan\n", "GRPP"),
    ],
)
def test_a_protocol_fault_fails_everything_in_flight_and_ends_the_reading(
    wire: Any, bad: bytes, named: str
) -> None:
    _, first = wire.submit()
    _, second = wire.submit(slot=1)
    cancelled, gone = wire.submit(slot=2)
    wire.cancel(cancelled)
    wire.feed(b"ACCEPT 1 1\nDATA 1 1\na\n" + bad + b"DATA 1 1\nb\nACCEPT 2 1\n")
    assert first.wait().names == ["accept", "data", "failure"]
    assert second.wait().names == ["failure"]
    for sink in (first, second):
        assert sink.outcome == ("failure", 500, "engine_error")
        assert sink.cause.startswith("protocol fault: ")
        assert named in sink.cause
    assert gone.wait().outcome == ("cancelled",)
    (lost,) = wire.engine_events
    assert (lost.orderly, lost.reported) == (False, True)
    wire.feed(b"DATA 1 1\nc\n")
    assert (first.text, wire.connection.in_flight) == (b"a", 0)


def test_the_end_of_stdout_fails_what_is_in_flight(wire: Any) -> None:
    _, sink = wire.submit()
    wire.feed(b"ACCEPT 1 1\n")
    wire.connection.receive_eof(wire.now)
    wire.settle()
    assert sink.wait().cause == "the engine closed its stdout"
    assert wire.engine_events == [ConnectionLost("the engine closed its stdout", False, True)]


def test_the_end_of_stdout_inside_a_frame_is_a_protocol_fault(wire: Any) -> None:
    _, sink = wire.submit()
    wire.feed(b"ACCEPT 1 1\nDATA 1 10\nabc")
    wire.connection.receive_eof(wire.now)
    wire.settle()
    assert sink.wait().cause.startswith("protocol fault: ")
    assert "truncated" in sink.cause


def test_an_idle_engine_that_ends_has_nobody_to_report_to(wire: Any) -> None:
    _, sink = wire.submit()
    wire.feed(b"DONE 1 STAT 0 0 0 1.0\n")
    wire.connection.receive_eof(wire.now)
    wire.settle()
    assert wire.engine_events == [ConnectionLost("the engine closed its stdout", False, False)]
    assert sink.wait().outcome == ("done", 0)


@pytest.mark.parametrize("kind", ["SUBMIT", "IMAGE", "STOP", "CANCEL"])
def test_a_failed_write_is_the_named_failure_of_its_request(wire: Any, kind: str) -> None:
    request, sink = wire.submit(image=Image(b"abcd", 2, 3))
    _, other = wire.submit(slot=1)
    if kind == "STOP":
        wire.stop(request)
    if kind == "CANCEL":
        wire.cancel(request)
    (message,) = [m for m in wire.messages if m.kind == kind and m.request is request]
    wire.connection.write_failed(message, "Broken pipe", wire.now)
    wire.settle()
    if kind == "CANCEL":
        assert sink.wait().outcome == ("cancelled",)
    else:
        assert sink.wait().outcome == ("failure", 500, "engine_error")
        assert sink.cause == f"failed to write {kind} to the engine"
    assert other.wait().cause == f"failed to write {kind} to the engine: Broken pipe"


def test_nothing_follows_the_end_of_the_connection(wire: Any, sink: Any, make_submission: Any) -> None:
    """A writer sees the broken pipe while frames of the engine still lie in its stdout."""
    connection = wire.connection
    connection.submit(make_submission(), sink, wire.now)
    (message,) = connection.take_outgoing()
    connection.write_failed(message, "Broken pipe", wire.now)
    connection.receive_data(PROF + b"DATA 1 1\nx\n", wire.now)
    assert [type(event) for event in connection.take_events()] == [Failed, ConnectionLost]


def test_nothing_can_be_submitted_without_an_open_connection(new_wire: Callable[..., Any]) -> None:
    wire = new_wire(ready=False)
    _, sink = wire.submit()
    assert sink.wait().outcome == ("failure", 503, "engine_unavailable")
    assert wire.written() == b""


def test_a_ready_that_never_comes(new_wire: Callable[..., Any]) -> None:
    wire = new_wire(ready=False)
    wire.feed(b"loading\n")
    wire.connection.ready_timed_out(wire.now)
    wire.settle()
    assert wire.engine_events == [ConnectionLost("the engine did not become ready in time", False, False)]


def test_the_gateway_ends(wire: Any) -> None:
    _, sink = wire.submit()
    wire.connection.shut_down(wire.now)
    wire.settle()
    assert sink.wait().outcome == ("failure", 503, "shutting_down")
    wire.feed(b"DONE 1 STAT 0 0 0 1.0\n")
    wire.connection.receive_eof(wire.now)
    wire.settle()
    assert wire.engine_events == [ConnectionLost("the engine closed its stdout", True, False)]


def test_frames_know_their_kinds() -> None:
    """The dispatch relies on these two groups covering what is neither a request's nor the handshake's."""
    assert {kind.KIND for kind in frames.NO_EFFECT} == {"GRPP", "GRPG", "GRPS", "GRPE"}
    assert {"PROF", "TIERS", "HWINFO", "EMAP", "HITS", "PERF"} <= {kind.KIND for kind in frames.TELEMETRY}
