"""The sans-IO connection: acceptance and stall deadlines (wire.md section 5)."""

from __future__ import annotations

from typing import Any

from server.wire.events import ConnectionLost


def test_an_extension_request_must_be_accepted_in_time(wire: Any) -> None:
    _, sink = wire.submit(logprobs=1)
    wire.written()
    wire.feed(b"ECHO 1 1 0 nan 0\nh\n")
    wire.pass_time(wire.ACCEPT - 0.1)
    assert sink.calls == []
    wire.pass_time(0.1)
    assert sink.wait().outcome == ("failure", 503, "engine_logprobs_unsupported")
    assert wire.connection.in_flight == 0
    assert wire.written() == b"CANCEL 1\n"
    wire.feed(b"ERROR 1 NOT_FOUND\nACCEPT 1 2\nDATA 1 1\nx\nDONE 1 STAT 1 0 0 1.0\n")
    assert sink.wait().names == ["failure"], "what comes afterwards matches no request"


def test_ids_alone_fail_under_their_own_name(wire: Any) -> None:
    _, sink = wire.submit(b"1 2", ids=True)
    _, both = wire.submit(b"1 2", ids=True, logprobs=1, slot=1)
    wire.pass_time(wire.ACCEPT)
    assert sink.wait().outcome == ("failure", 503, "engine_tok_ids_unsupported")
    wire.pass_time(wire.ACCEPT)
    assert both.wait().outcome == ("failure", 503, "engine_logprobs_unsupported")


def test_plain_and_grammar_requests_have_no_acceptance_deadline(wire: Any) -> None:
    _, plain = wire.submit()
    _, grammar = wire.submit(slot=1, extra=b"root")
    wire.pass_time(wire.STALL - 1)
    assert plain.calls == grammar.calls == []


def test_the_acceptance_clock_starts_when_no_earlier_prompt_is_being_read(wire: Any) -> None:
    """Prefill is serial and silent: an ACCEPT can be late because another slot's prompt is being read."""
    _, first = wire.submit()
    _, second = wire.submit(slot=1)
    _, late = wire.submit(slot=2, logprobs=1)
    wire.pass_time(wire.ACCEPT * 3)
    wire.feed(b"ACCEPT 1 9000\nACCEPT 2 9000\n")
    wire.pass_time(wire.ACCEPT * 3)
    wire.feed(b"DATA 1 1\na\n")
    wire.pass_time(wire.ACCEPT * 3)
    assert late.calls == [], "the second is accepted and still has no DATA"
    wire.feed(b"DATA 2 1\nb\n")
    wire.pass_time(wire.ACCEPT - 0.1)
    assert late.calls == []
    wire.pass_time(0.1)
    assert late.wait().outcome == ("failure", 503, "engine_logprobs_unsupported")
    assert first.names == second.names == ["accept", "data"]


def test_a_later_request_does_not_hold_up_the_clock(wire: Any) -> None:
    _, extended = wire.submit(logprobs=1)
    wire.submit(slot=1)
    wire.pass_time(wire.ACCEPT)
    assert extended.wait().outcome == ("failure", 503, "engine_logprobs_unsupported")


def test_an_accepted_extension_request_may_be_silent_for_longer(wire: Any) -> None:
    _, sink = wire.submit(logprobs=1)
    wire.feed(b"ACCEPT 1 9\n")
    wire.pass_time(wire.STALL - 1)
    assert sink.names == ["accept"]


def test_a_request_without_frames_stalls_while_others_go_on(wire: Any) -> None:
    _, silent = wire.submit()
    _, lively = wire.submit(slot=1)
    wire.feed(b"ACCEPT 1 1\nACCEPT 2 1\n")
    wire.written()
    wire.pass_time(wire.STALL / 2)
    wire.feed(b"DATA 2 1\na\n")
    wire.pass_time(wire.STALL / 2)
    assert silent.wait().outcome == ("failure", 500, "engine_error")
    assert silent.cause == "no frame for 600 s"
    assert wire.written() == b"CANCEL 1\n"
    assert (lively.names, wire.engine_events) == (["accept", "data"], [])


def test_every_frame_of_a_request_moves_its_stall_deadline(wire: Any) -> None:
    _, sink = wire.submit()
    for frame in (b"ACCEPT 1 1\n", b"TOOL 1 0\n\n", b"DATA 1 1\na\n", b"ECHO 1 1 0 nan 0\nx\n"):
        wire.pass_time(wire.STALL - 1)
        wire.feed(frame)
    wire.pass_time(wire.STALL - 1)
    assert "failure" not in sink.names
    wire.pass_time(1)
    assert sink.wait().outcome == ("failure", 500, "engine_error")


def test_a_cancel_that_is_never_confirmed_ends_by_the_stall_deadline(wire: Any) -> None:
    request, sink = wire.submit()
    wire.cancel(request)
    wire.pass_time(wire.STALL)
    assert sink.wait().outcome == ("cancelled",)


def test_an_engine_that_is_silent_altogether_is_lost(wire: Any) -> None:
    _, first = wire.submit()
    wire.pass_time(10)
    _, second = wire.submit(slot=1)
    wire.pass_time(wire.STALL - 10)
    reason = "the engine sent nothing at all for 600 s"
    assert first.wait().cause == "no frame for 600 s"
    assert second.wait().cause == reason
    assert wire.engine_events == [ConnectionLost(reason, False, True)]


def test_the_next_deadline_is_never_late(wire: Any) -> None:
    wire.submit()
    assert wire.connection.deadline == wire.STALL
    wire.submit(slot=1, logprobs=1)
    assert wire.connection.deadline == wire.ACCEPT, "conservative: its clock does not run yet"
    wire.pass_time(wire.ACCEPT)
    assert wire.connection.deadline == wire.STALL
    wire.feed(b"DATA 1 1\na\n")
    assert wire.connection.deadline == wire.ACCEPT * 2
    wire.feed(b"DONE 1 STAT 1 0 0 1.0\nDONE 2 STAT 1 0 0 1.0\n")
    wire.pass_time(wire.STALL * 2)
    assert wire.connection.deadline == float("inf")
