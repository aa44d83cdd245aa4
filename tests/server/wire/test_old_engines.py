"""Engines in the field (wire.md section 6): proof of age, probes, and captured streams of real engines."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from generated.wire import FieldError
from server.wire.events import ConnectionLost

GREEDY = {"temperature": 0.0, "top_p": 1.0}
OLD = b"ERROR 0 BAD_REQUEST\n"
DANGEROUS = b"what does this do?\nCANCEL 1\nthanks"
DONE = b"DONE %d STAT 1 0 0 1.0 1 0\n"


@pytest.fixture
def wire(new_wire: Callable[..., Any]) -> Any:
    """A ready connection to an engine of unknown age."""
    return new_wire(**GREEDY)


# -- the proof of age ----------------------------------------------------------------------------------------


def test_one_unacknowledged_extension_request_is_the_proof(wire: Any) -> None:
    _, sink = wire.submit(logprobs=2)
    wire.feed(OLD)
    assert sink.wait().outcome == ("failure", 503, "engine_logprobs_unsupported")
    assert wire.written() == b"SUBMIT 1 0 2 16 0 1 0 logprobs=2\nhi\n", "nothing to cancel there"


def test_the_proof_is_remembered_for_the_life_of_the_engine(wire: Any) -> None:
    wire.submit(b"1", ids=True)
    wire.feed(OLD + b"ERROR 0 BAD_REQUEST\n")
    wire.written()
    _, again = wire.submit(b"2", ids=True)
    _, more = wire.submit(b"2", ids=True, logprobs=1)
    assert again.wait().outcome == ("failure", 503, "engine_tok_ids_unsupported")
    assert more.wait().outcome == ("failure", 503, "engine_logprobs_unsupported")
    assert wire.written() == b""
    _, plain = wire.submit()
    wire.feed(b"ACCEPT 2 1\n" + DONE % 2)
    assert plain.wait().outcome == ("done", 1)


def test_what_was_proved_about_one_key_says_nothing_about_another(wire: Any) -> None:
    wire.submit(logprobs=1)
    wire.feed(OLD)
    wire.written()
    wire.submit(b"2", ids=True)
    assert wire.written() == b"SUBMIT 2 0 1 16 0 1 0 ids=1\n2\n"


def test_a_plain_request_that_is_unacknowledged_spoils_the_proof(wire: Any) -> None:
    _, plain = wire.submit()
    _, extended = wire.submit(slot=1, logprobs=1)
    wire.feed(OLD)
    assert plain.calls == extended.calls == []
    wire.feed(b"ACCEPT 1 1\n" + OLD)
    assert extended.wait().outcome == ("failure", 503, "engine_logprobs_unsupported")
    assert plain.names == ["accept"]


def test_two_extension_requests_are_no_proof(wire: Any) -> None:
    _, first = wire.submit(logprobs=1)
    _, second = wire.submit(slot=1, logprobs=1)
    wire.feed(OLD)
    assert first.calls == second.calls == []
    wire.feed(b"ACCEPT 1 1\nACCEPT 2 1\n")
    assert first.names == second.names == ["accept"]


@pytest.mark.parametrize("words", [b"", b"NOT_FOUND", b"queue full"])
def test_other_words_for_id_0_prove_nothing(wire: Any, words: bytes) -> None:
    _, sink = wire.submit(logprobs=1)
    wire.feed(b"ERROR 0 %s\n" % words)
    assert sink.calls == []


def test_errors_for_id_0_that_match_nothing_are_dropped(wire: Any) -> None:
    wire.feed(OLD)
    _, sink = wire.submit()
    wire.feed(OLD + b"ACCEPT 1 7\nDATA 1 1\nx\n" + DONE % 1)
    assert (sink.wait().outcome, wire.lost) == (("done", 1), [])


# -- probes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line", [b"SUBMIT 99 1 2000 4 0 1", b"IMAGE 1 2 3 4", b"STOP 1", b"CANCEL 1", b" \tCANCEL 1"]
)
@pytest.mark.parametrize("where", [b"%s", b"a\n%s", b"a\n%s\nb"])
def test_no_line_that_could_be_a_command_reaches_an_engine_of_unknown_age(
    wire: Any, line: bytes, where: bytes
) -> None:
    wire.submit(where % line, logprobs=2, slot=3)
    assert wire.written() == b"SUBMIT 1 3 1 1 0 1 0 logprobs=2\nx\n"


def test_a_value_that_no_submit_carries_is_told_before_the_probe(wire: Any) -> None:
    with pytest.raises(FieldError, match="top_p"):
        wire.submit(DANGEROUS, logprobs=2, top_p=0.0)
    assert (wire.written(), wire.connection.in_flight) == (b"", 0)


@pytest.mark.parametrize("prompt", [b"hi", b"a CANCEL 1", b"cancel 1\nstop 1", b"", b"x\ny"])
def test_other_payloads_need_no_probe(wire: Any, prompt: bytes) -> None:
    wire.submit(prompt, logprobs=2)
    assert wire.written() == b"SUBMIT 1 0 %d 16 0 1 0 logprobs=2\n%s\n" % (len(prompt), prompt)


def test_plain_requests_need_none_either(wire: Any) -> None:
    """Every build drains the payload of a header it can read, and every build reads six and seven words."""
    wire.submit(DANGEROUS)
    wire.submit(b"hi", slot=1, extra=b"STOP 1")
    assert wire.written().count(b"SUBMIT ") == 2


def test_grammar_bytes_are_payload_too(wire: Any) -> None:
    wire.submit(b"1", ids=True, extra=b"root ::= x\nSTOP 1\n")
    assert wire.written() == b"SUBMIT 1 0 1 1 0 1 0 ids=1\n0\n", (
        "a probe of ids is an id, and brings no grammar"
    )


def test_after_the_probe_ends_well_the_request_goes_out_unchanged(wire: Any) -> None:
    request, sink = wire.submit(DANGEROUS, logprobs=2)
    wire.written()
    wire.feed(b"ACCEPT 1 1\nECHO 1 1 0 nan 0\nx\nDATA 1 1 -0.5 0\ny\n")
    assert (request.id, wire.written()) == (0, b""), "the probe still holds the slot"
    wire.feed(DONE % 1)
    assert wire.written() == b"SUBMIT 2 0 34 16 0 1 0 logprobs=2\n" + DANGEROUS + b"\n"
    wire.feed(b"ACCEPT 2 9\n" + DONE % 2)
    assert sink.wait().names == ["accept", "done"], "nothing of the probe reaches the client"
    assert wire.connection.in_flight == 0


@pytest.mark.parametrize("proof", [b"ACCEPT 1 1\n", b"ECHO 1 1 0 nan 0\nx\n", b"DATA 1 0 -0.5 0\n\n"])
def test_an_engine_that_took_an_extension_once_needs_no_probe(wire: Any, proof: bytes) -> None:
    wire.submit(logprobs=2)
    wire.feed(proof)
    wire.written()
    wire.submit(DANGEROUS, logprobs=2, slot=1)
    assert wire.written() == b"SUBMIT 2 1 34 16 0 1 0 logprobs=2\n" + DANGEROUS + b"\n"


def test_a_probe_that_an_old_engine_refuses_fails_the_request_without_a_submit(wire: Any) -> None:
    _, sink = wire.submit(DANGEROUS, logprobs=2)
    _, ids = wire.submit(b"hi\nSTOP 1", ids=True, slot=1)
    wire.written()
    wire.feed(OLD + OLD)
    assert sink.wait().outcome == ("failure", 503, "engine_logprobs_unsupported")
    assert wire.written() == b"SUBMIT 2 1 1 1 0 1 0 ids=1\n0\n", "the next probe asks about the other key"
    assert ids.wait().outcome == ("failure", 503, "engine_tok_ids_unsupported")


def test_a_probe_that_nobody_answers_fails_the_request(wire: Any) -> None:
    _, sink = wire.submit(DANGEROUS, logprobs=2)
    wire.pass_time(wire.ACCEPT)
    assert sink.wait().outcome == ("failure", 503, "engine_logprobs_unsupported")
    assert wire.connection.in_flight == 0


def test_a_probe_that_fails_otherwise_fails_the_request_the_same_way(wire: Any) -> None:
    _, sink = wire.submit(DANGEROUS, logprobs=2)
    wire.feed(b"ERROR 1 SLOT_BUSY\n")
    assert sink.wait().outcome == ("failure", 500, "engine_error")
    assert sink.cause == "the engine answered ERROR SLOT_BUSY"


def test_requests_that_wait_for_one_probe_are_served_by_its_success(wire: Any) -> None:
    _, first = wire.submit(DANGEROUS, logprobs=2)
    _, second = wire.submit(DANGEROUS, logprobs=2, slot=1)
    assert wire.written().count(b"SUBMIT") == 1, "one probe at a time, or there could be no proof"
    wire.feed(b"ACCEPT 1 1\n" + DONE % 1)
    assert re.findall(rb"SUBMIT (\d+) (\d)", wire.written()) == [(b"2", b"0"), (b"3", b"1")]
    wire.feed(DONE % 2 + DONE % 3)
    assert first.wait().outcome == second.wait().outcome == ("done", 1)


def test_a_client_that_leaves_during_its_probe_keeps_the_slot_until_the_probe_is_over(wire: Any) -> None:
    request, sink = wire.submit(DANGEROUS, logprobs=2)
    wire.written()
    wire.cancel(request)
    wire.cancel(request)
    assert (wire.written(), sink.calls) == (b"CANCEL 1\n", [])
    wire.feed(b"ERROR 1 CANCELLED\n")
    assert sink.wait().outcome == ("cancelled",)
    assert (wire.written(), wire.connection.in_flight) == (b"", 0)


def test_a_client_that_leaves_while_it_waits_for_somebody_elses_probe_is_gone_at_once(wire: Any) -> None:
    _, owner = wire.submit(DANGEROUS, logprobs=2)
    request, sink = wire.submit(DANGEROUS, logprobs=2, slot=1)
    wire.written()
    wire.cancel(request)
    assert (sink.wait().outcome, wire.written()) == (("cancelled",), b"")
    wire.feed(b"ACCEPT 1 1\n" + DONE % 1)
    assert wire.written().count(b"SUBMIT") == 1
    assert owner.calls == []


def test_when_the_owner_of_a_probe_leaves_the_others_get_their_own(wire: Any) -> None:
    owner, _ = wire.submit(DANGEROUS, logprobs=2)
    _, other = wire.submit(DANGEROUS, logprobs=2, slot=1)
    wire.cancel(owner)
    wire.written()
    wire.feed(b"ERROR 1 CANCELLED\n")
    assert wire.written() == b"SUBMIT 2 1 1 1 0 1 0 logprobs=2\nx\n"
    wire.feed(b"ACCEPT 2 1\n" + DONE % 2 + b"ACCEPT 3 1\n" + DONE % 3)
    assert other.wait().outcome == ("done", 1)


def test_requests_that_wait_for_a_probe_fail_with_the_engine(wire: Any) -> None:
    _, owner = wire.submit(DANGEROUS, logprobs=2)
    _, other = wire.submit(DANGEROUS, logprobs=2, slot=1)
    wire.connection.receive_eof(wire.now)
    wire.settle()
    assert owner.wait().cause == other.wait().cause == "the engine closed its stdout"
    assert wire.lost == [ConnectionLost("the engine closed its stdout", False, True)]


def test_requests_that_wait_for_a_probe_stall_like_any_other(wire: Any) -> None:
    _, owner = wire.submit(DANGEROUS, logprobs=2)
    _, other = wire.submit(DANGEROUS, logprobs=2, slot=1)
    wire.feed(b"ACCEPT 1 1\n")
    for _ in range(3):
        wire.pass_time(wire.STALL / 2)
        wire.feed(b"PERF alive\n")
    assert owner.wait().outcome == other.wait().outcome == ("failure", 500, "engine_error")
    assert wire.connection.in_flight == 0


# -- captured streams ----------------------------------------------------------------------------------------

TRANSCRIPTS = Path(__file__).parents[4] / "shared" / "transcripts"

LOST = ("failure", 500, "engine_error")
REFUSED = ("failure", 500, "engine_error")
TOO_LONG = ("failure", 400, "context_length_exceeded")
EMPTY = ("failure", 400, "invalid_value")

# For each stream: the outcome of every well-formed SUBMIT in its .in file, by id.
OUTCOMES: dict[str, dict[int, tuple[Any, ...]]] = {
    "bad_terminator": {1: REFUSED, 2: LOST},
    "cancel": {1: ("cancelled",), 2: ("done", 6)},
    "cancel_during_prefill": {1: ("cancelled",)},
    "eof_in_flight": {1: ("done", 60), 2: ("done", 30)},
    "eof_in_payload": {},
    "ext_payload_executes": {1: LOST, 4: LOST},
    "fit_edge": {1: ("done", 2), 2: ("done", 1), 3: TOO_LONG, 4: TOO_LONG, 5: ("done", 60)},
    "image": {1: ("done", 4)},
    "malformed": {7: REFUSED, 9: REFUSED, 10: EMPTY, 13: ("done", 4), 16: ("done", 4), 17: ("done", 4)},
    "olmoe_one": {1: ("done", 12)},
    "olmoe_oversize": {1: TOO_LONG, 2: TOO_LONG, 3: EMPTY},
    "olmoe_stop_cancel": {1: ("done", 200), 2: ("cancelled",)},
    "one_submit_small": {1: ("done", 200)},
    "qwen_malformed": {4: ("done", 4), 5: ("done", 2)},
    "qwen_one": {1: ("done", 12)},
    "qwen_oversize": {1: TOO_LONG, 2: TOO_LONG, 3: EMPTY},
    "qwen_two_queued": {1: ("done", 100), 2: ("done", 16)},
    "reader_gone": {1: LOST},
    "same_prompt_twice": {1: ("done", 12), 2: ("done", 12)},
    "sigterm_idle": {},
    "sigterm_in_flight": {1: ("done", 3)},
    "stop": {1: ("done", 3)},
    "unknown_ids": {1: ("done", 2)},
}


def splits(data: bytes, how: str) -> list[bytes]:
    if how == "whole":
        return [data]
    if how == "bytes":
        return [data[i : i + 1] for i in range(len(data))]
    source = random.Random(len(data))
    cuts = sorted(source.sample(range(1, len(data)), min(len(data) - 1, 200)))
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]


@pytest.mark.parametrize("how", ["whole", "bytes", "random"])
@pytest.mark.parametrize("name", [*OUTCOMES, "ext_logprobs"])
def test_captured_streams_lead_to_the_outcome_their_name_says(
    new_wire: Callable[..., Any], name: str, how: str
) -> None:
    if not TRANSCRIPTS.exists():
        pytest.skip("the captured streams of ../shared are not here")
    stream = (TRANSCRIPTS / f"{name}.bin").read_bytes()
    sent = (TRANSCRIPTS / f"{name}.in").read_bytes()
    after_ready = stream.index(b"\n", stream.index(b"READY") + 10) + 1
    expected = OUTCOMES.get(name, {1: ("failure", 503, "engine_logprobs_unsupported"), 2: ("done", 4)})
    wire = new_wire(ready=False, ids=list(expected), max_tokens=9, **GREEDY)
    for piece in splits(stream[:after_ready], how):
        wire.feed(piece)
    stream = stream[after_ready:]
    sinks = {}
    if name == "ext_logprobs":  # the gateway waits for the verdict on the first before anything else
        cut = stream.index(b"ERROR 0 BAD_REQUEST\n") + 20
        _, sinks[1] = wire.submit(b"Hello", logprobs=2)
        wire.feed(stream[:cut])
        stream = stream[cut:]
        _, sinks[2] = wire.submit(b"Hello")
    for request_id in OUTCOMES.get(name, {}):
        request, sinks[request_id] = wire.submit(b"Hello")
        if f"CANCEL {request_id}\n".encode() in sent and name.split("_")[-1] in ("cancel", "prefill"):
            wire.cancel(request)
    for piece in splits(stream, how):
        wire.feed(piece)
    assert wire.lost == [], "no protocol fault in what a real engine wrote"
    wire.connection.receive_eof(wire.now)
    wire.settle()
    assert {request_id: sink.wait().outcome for request_id, sink in sinks.items()} == expected
    (end,) = wire.lost
    assert ("truncated" in end.reason) == (name == "reader_gone" and not stream.endswith(b"\n"))
