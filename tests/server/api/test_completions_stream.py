"""Streams of /v1/completions, and what becomes of them when something fails (http.md §2, §7, §15; bugs A,
B).
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest

PLAIN = ["ACCEPT <id> 7", "DATA <id> <n> => Hé", "DATA <id> <n> => llo", "DONE <id> STAT 2 2.5 0 1.0 7 0"]


def choice(text: str, reason: str | None = None) -> dict[str, Any]:
    return {"index": 0, "text": text, "logprobs": None, "finish_reason": reason}


def test_b01_and_b12_pieces_then_one_reason_then_the_end_mark_and_no_usage(gateway: Any) -> None:
    gateway.plan(PLAIN)
    answer = gateway.complete(stream=True)
    assert answer.status == 200
    *chunks, last = answer.events
    assert last == "[DONE]"
    assert [chunk["choices"] for chunk in chunks] == [[choice("Hé")], [choice("llo")], [choice("", "stop")]]
    assert {tuple(chunk) for chunk in chunks} == {("id", "object", "created", "model", "choices")}
    assert len({chunk["id"] for chunk in chunks}) == 1
    assert chunks[0]["id"].startswith("cmpl-")
    assert chunks[0]["object"] == "text_completion"


def test_b02_and_b03_usage_is_null_until_one_last_chunk_without_choices(gateway: Any) -> None:
    gateway.plan(PLAIN)
    *chunks, totals, last = gateway.complete(stream=True, stream_options={"include_usage": True}).events
    assert last == "[DONE]"
    assert all(chunk["usage"] is None for chunk in chunks)
    assert totals["choices"] == []
    assert totals["usage"] == {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
    assert tuple(totals) == ("id", "object", "created", "model", "choices", "usage")


def test_section_8_headers_of_a_stream(gateway: Any) -> None:
    headers = gateway.complete(stream=True).headers
    assert headers["content-type"] == "text/event-stream; charset=utf-8"
    assert headers["cache-control"] == "no-cache, no-transform"
    assert headers["x-accel-buffering"] == "no"
    assert headers["x-colibri-queue-wait-ms"].isdigit()
    assert headers["transfer-encoding"] == "chunked"


def test_section_2_a_complete_stream_leaves_the_connection_usable(gateway: Any) -> None:
    with contextlib.closing(gateway.connect()) as connection:
        for _ in range(3):
            gateway.send(
                connection, "/v1/completions", {"model": "test-model", "prompt": "hi", "stream": True}
            )
            assert gateway.read(connection).events[-1] == "[DONE]"
            gateway.send(connection, "/v1/completions", {"model": "test-model", "prompt": "hi"})
            assert gateway.read(connection).json["choices"][0]["text"] == "Héllo"


@pytest.mark.parametrize("stop", ["éll", ["zzz", "éll"]])
def test_section_15_a_stop_sequence_over_two_pieces_ends_the_stream_and_is_sent_once(
    gateway: Any, stop: Any
) -> None:
    gateway.plan(["ACCEPT <id> 7", "DATA <id> <n> => Hé", "DATA <id> <n> => llo", "@wait STOP", PLAIN[-1]])
    *chunks, last = gateway.complete(stream=True, stop=stop).events
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == "H"
    assert chunks[-1]["choices"] == [choice("", "stop")]
    assert last == "[DONE]"
    assert len(gateway.records("STOP")) == 1


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
@pytest.mark.parametrize("stream", [True, False])
def test_b15_and_b16_an_oversize_prompt_is_a_real_400(gateway: Any, path: str, stream: bool) -> None:
    gateway.plan(["ERROR <id> CONTEXT_EXCEEDED 5000 4094"])
    prompt = (
        {"prompt": "hi"} if path == "/v1/completions" else {"messages": [{"role": "user", "content": "hi"}]}
    )
    answer = gateway.post(path, {"model": "test-model", "stream": stream, **prompt})
    assert answer.error == (400, next(iter(prompt)), "context_length_exceeded")
    assert "5000" in answer.message and "4094" in answer.message
    assert answer.headers["content-type"] == "application/json"
    assert "x-colibri-queue-wait-ms" not in answer.headers


def test_section_2_a_stream_that_fails_after_its_200_is_cut_without_an_end_mark(gateway: Any) -> None:
    gateway.plan(["ACCEPT <id> 7", "DATA <id> <n> => so far", "ERROR <id> SLOT_BUSY"])
    answer = gateway.complete(stream=True)
    assert (answer.status, answer.complete) == (200, False)
    assert [event["choices"] for event in answer.events] == [[choice("so far")]]
    assert b"error" not in answer.body


def test_section_7_a_failure_after_partial_output_is_one_clean_500_in_json(gateway: Any) -> None:
    gateway.plan(["ACCEPT <id> 7", "DATA <id> <n> => so far", "ERROR <id> SLOT_BUSY"])
    answer = gateway.complete()
    assert answer.error == (500, None, "engine_error")
    assert "SLOT_BUSY" not in answer.message


def test_wire_5_nothing_is_sent_before_acceptance(gateway: Any) -> None:
    gateway.plan(["@hold", *PLAIN])
    with contextlib.closing(gateway.connect()) as connection:
        gateway.send(connection, "/v1/completions", {"model": "test-model", "prompt": "hi", "stream": True})
        gateway.eventually(lambda: gateway.submits(), "submitted")
        connection.sock.settimeout(0.1)
        with pytest.raises(TimeoutError):
            connection.sock.recv(1)
        connection.sock.settimeout(15)
        gateway.release()
        assert gateway.read(connection).events[-1] == "[DONE]"


def test_wire_5_acceptance_alone_commits_the_200(gateway: Any) -> None:
    gateway.plan([PLAIN[0], "@hold", *PLAIN[1:]])
    with contextlib.closing(gateway.connect()) as connection:
        gateway.send(connection, "/v1/completions", {"model": "test-model", "prompt": "hi", "stream": True})
        response = connection.getresponse()
        assert response.status == 200
        gateway.release()
        assert response.read().endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions", "/v1/messages"])
@pytest.mark.parametrize("stream", [True, False])
def test_b25_a_full_queue_is_429_with_retry_after_in_the_paths_envelope(
    open_gateway: Callable[..., Any], path: str, stream: bool
) -> None:
    gateway = open_gateway(max_queue="0")
    gateway.plan(["ACCEPT <id> 7", "@hold", *PLAIN[1:]])
    body: dict[str, Any] = {"model": "test-model", "stream": stream, "max_tokens": 8}
    body |= (
        {"prompt": "hi"} if path == "/v1/completions" else {"messages": [{"role": "user", "content": "hi"}]}
    )
    with contextlib.closing(gateway.connect()) as first:
        gateway.send(first, "/v1/completions", {"model": "test-model", "prompt": "first"})
        gateway.eventually(lambda: gateway.submits(), "submitted")
        answer = gateway.post(path, body)
        gateway.release()
        assert gateway.read(first).status == 200
    assert (answer.status, answer.headers["retry-after"]) == (429, "1")
    assert "x-colibri-queue-wait-ms" not in answer.headers
    if path == "/v1/messages":
        assert (answer.json["type"], answer.json["error"]["type"]) == ("error", "rate_limit_error")
        assert answer.json["request_id"] == answer.headers["x-request-id"]
    else:
        assert answer.error == (429, None, "queue_full")
    assert len(gateway.submits()) == 1


def test_section_12_queue_timeout_is_a_429(open_gateway: Callable[..., Any]) -> None:
    gateway = open_gateway(queue_timeout="0.05")
    gateway.plan(["ACCEPT <id> 7", "@hold", *PLAIN[1:]])
    with contextlib.closing(gateway.connect()) as first:
        gateway.send(first, "/v1/completions", {"model": "test-model", "prompt": "first"})
        gateway.eventually(lambda: gateway.submits(), "submitted")
        answer = gateway.complete("second")
        gateway.release()
        assert gateway.read(first).status == 200
    assert answer.error == (429, None, "queue_timeout")
    assert answer.headers["retry-after"] == "1"


@pytest.fixture
def hasty(open_gateway: Callable[..., Any]) -> Any:
    """A gateway that sends a keepalive after 50 ms of silence."""
    return open_gateway(environ={"COLI_KEEPALIVE_SECONDS": "0.05"})


QUIET = [
    "ACCEPT <id> 7",
    "DATA <id> <n> => a",
    "@sleep 1.5",
    "DATA <id> <n> => b",
    "DONE <id> STAT 2 2.5 0 1.0 7 0",
]


def test_b06_and_b07_keepalives_come_in_silence_and_change_no_text(hasty: Any) -> None:
    hasty.plan(QUIET)
    *chunks, last = hasty.complete(stream=True).events
    texts = [chunk["choices"][0]["text"] for chunk in chunks]
    assert "".join(texts) == "ab"
    assert texts.count("") >= 4  # several of those that fit, and the last chunk
    assert last == "[DONE]"
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None] * (len(chunks) - 1) + ["stop"]


def test_b04_no_line_of_a_stream_is_anything_but_data(hasty: Any) -> None:
    hasty.plan(QUIET)
    lines = hasty.complete(stream=True).body.decode().splitlines()
    assert {line.split(":")[0] for line in lines if line} == {"data"}
    assert all(json.loads(line[6:]) for line in lines if line and line != "data: [DONE]")


@pytest.mark.xdist_group("clients")
def test_b04_a_comment_in_every_gap_changes_nothing_for_the_sdks_decoder(hasty: Any) -> None:
    streaming = pytest.importorskip("openai._streaming", reason="the extra `clients` is not installed")
    hasty.plan(QUIET)
    recorded = hasty.complete(stream=True).body

    def decoded(data: bytes) -> list[str]:
        decoder = streaming.SSEDecoder()
        return [event.data for event in decoder.iter_bytes(iter([data])) if event.data]

    plain = decoded(recorded)
    assert plain[-1] == "[DONE]"
    assert decoded(recorded.replace(b"\n\n", b"\n\n: comment\n\n")) == plain


def test_b71_an_event_without_new_tokens_has_null_logprobs(hasty: Any) -> None:
    hasty.plan(QUIET)
    *chunks, _last = hasty.complete(stream=True).events
    silent = [chunk for chunk in chunks if chunk["choices"][0]["text"] == ""]
    assert len(silent) > 1
    assert {chunk["choices"][0]["logprobs"] for chunk in chunks} == {None}
