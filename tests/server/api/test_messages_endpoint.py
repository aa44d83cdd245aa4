"""POST /v1/messages and /v1/messages/count_tokens through a whole gateway (http.md §16; bugs B15, B47)."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from server.model import embedded_model

DONE = "DONE <id> STAT 1 2.5 0 1.0 7 0"
TOOLS = [
    {"name": "f", "input_schema": {"type": "object", "properties": {"x": {"type": "string"}}}, "extra": 1}
]
CALL = "<tool_call>f<arg_key>x</arg_key><arg_value>1</arg_value></tool_call>"


def error_type(answer: Any) -> tuple[int, str]:
    """Status and type; the Anthropic envelope must be whole."""
    body = answer.json
    assert list(body) == ["type", "error", "request_id"]
    assert list(body["error"]) == ["type", "message"]
    assert (body["type"], body["request_id"]) == ("error", answer.headers["x-request-id"])
    return answer.status, body["error"]["type"]


def test_section_16_the_plain_message(gateway: Any) -> None:
    answer = gateway.message()
    body = answer.json
    assert body.pop("id").startswith("msg_")
    assert body == {
        "type": "message",
        "role": "assistant",
        "model": "test-model",
        "content": [{"type": "text", "text": "Héllo"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 7, "output_tokens": 2},
    }
    assert answer.headers["x-colibri-queue-wait-ms"].isdigit()


def test_section_16_the_events_of_a_stream_in_order(gateway: Any) -> None:
    gateway.plan(["ACCEPT <id> 7", f"DATA <id> <n> => r</think>a{CALL}", DONE])
    answer = gateway.message(stream=True, thinking={"type": "adaptive"}, tools=TOOLS)
    assert answer.event_names == [
        "message_start",
        "content_block_start", "content_block_delta", "content_block_delta", "content_block_stop",
        "content_block_start", "content_block_delta", "content_block_stop",
        "content_block_start", "content_block_delta", "content_block_stop",
        "message_delta", "message_stop",
    ]  # fmt: skip
    assert [event["type"] for event in answer.events] == answer.event_names
    assert answer.events[0]["message"]["usage"]["input_tokens"] == 7
    started = [event for event in answer.events if event["type"] == "content_block_start"]
    assert [(event["index"], event["content_block"]["type"]) for event in started] == [
        (0, "thinking"),
        (1, "text"),
        (2, "tool_use"),
    ]
    delta = answer.events[-2]
    assert delta["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}
    assert delta["usage"] == {"output_tokens": 1}


def test_a_stream_of_an_engine_without_accept_says_the_prompts_tokens_last(old_gateway: Any) -> None:
    old_gateway.plan(["DATA <id> <n> => x", DONE])
    answer = old_gateway.message(stream=True)
    assert answer.events[0]["message"]["usage"] == {"input_tokens": 0, "output_tokens": 0}
    assert answer.events[-2]["usage"] == {"input_tokens": 7, "output_tokens": 1}
    old_gateway.plan(["DATA <id> <n> => x", DONE])
    assert old_gateway.message().json["usage"] == answer.events[-2]["usage"]


def test_section_16_no_byte_before_acceptance_then_the_whole_sequence(gateway: Any) -> None:
    gateway.plan(["@hold", "ACCEPT <id> 7", "DATA <id> <n> => a", DONE])
    body = {
        "model": "test-model",
        "max_tokens": 8,
        "messages": [{"role": "user", "content": "Hi"}],
        "stream": True,
    }
    with contextlib.closing(gateway.connect()) as connection:
        gateway.send(connection, "/v1/messages", body)
        gateway.eventually(lambda: gateway.submits(), "submitted")
        connection.sock.settimeout(0.1)
        with pytest.raises(TimeoutError):
            connection.sock.recv(1)
        connection.sock.settimeout(15)
        gateway.release()
        answer = gateway.read(connection)
    assert (answer.event_names[0], answer.event_names[-1]) == ("message_start", "message_stop")


@pytest.mark.parametrize("stream", [True, False])
def test_b15_and_b110_an_oversize_prompt_is_a_400_in_words_agents_know(gateway: Any, stream: bool) -> None:
    gateway.plan(["ERROR <id> CONTEXT_EXCEEDED 5000 4094"])
    answer = gateway.message(stream=stream)
    assert error_type(answer) == (400, "invalid_request_error")
    assert answer.json["error"]["message"] == "prompt is too long: 5000 tokens > 4094 maximum"
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize("stream", [True, False])
def test_b47_the_stop_sequence_that_matched_is_told(gateway: Any, stream: bool) -> None:
    gateway.plan(["ACCEPT <id> 7", "DATA <id> <n> => one END two", "@wait STOP", DONE])
    answer = gateway.message(stop_sequences=["zzz", "END"], stream=stream)
    ended = answer.events[-2]["delta"] if stream else answer.json
    assert (ended["stop_reason"], ended["stop_sequence"]) == ("stop_sequence", "END")


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (["ACCEPT <id> 7", "DATA <id> <n> => ready<|user|>x", "@wait STOP", DONE], "end_turn"),
        (["ACCEPT <id> 7", "DATA <id> <n> => x", "DONE <id> STAT 8 2.5 0 1.0 7 1"], "max_tokens"),
    ],
)
def test_section_16_stop_reasons(gateway: Any, script: list[str], reason: str) -> None:
    gateway.plan(script)
    assert gateway.message().json["stop_reason"] == reason


def test_section_16_a_stream_that_fails_is_cut_without_message_stop(gateway: Any) -> None:
    gateway.plan(["ACCEPT <id> 7", "DATA <id> <n> => a", "ERROR <id> SLOT_BUSY"])
    answer = gateway.message(stream=True)
    assert (answer.status, answer.complete) == (200, False)
    assert answer.event_names == ["message_start", "content_block_start", "content_block_delta"]


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"top_k": 5, "stop_sequences": 5}, "top_k"),
        ({"stop_sequences": 5, "system": 5}, "stop_sequences"),
        ({"system": 5, "messages": []}, "system"),
        ({"messages": [], "tools": 5}, "messages"),
        ({"tools": 5, "tool_choice": 5}, "tools"),
        ({"tool_choice": {"type": "zzz"}, "thinking": 5, "tools": TOOLS}, "tool_choice"),
        ({"thinking": 5, "max_tokens": 0}, "thinking"),
        ({"max_tokens": 0, "temperature": 9}, "max_tokens"),
        ({"temperature": 9, "top_p": 9}, "temperature"),
        ({"top_p": 9, "cache_slot": 9}, "top_p"),
        ({"cache_slot": 9, "stream": 1}, "cache_slot"),
        ({"stream": 1}, "stream"),
    ],
    ids=str,
)
def test_section_16_the_order_of_checks(gateway: Any, fields: Any, path: str) -> None:
    body = {"model": "test-model", "max_tokens": 8, "messages": [{"role": "user", "content": "Hi"}]} | fields
    answer = gateway.post("/v1/messages", body)
    assert error_type(answer) == (400, "invalid_request_error")
    assert answer.json["error"]["message"].startswith(path)
    assert gateway.submits() == []


def test_section_16_max_tokens_is_required(gateway: Any) -> None:
    answer = gateway.post(
        "/v1/messages", {"model": "test-model", "messages": [{"role": "user", "content": "Hi"}]}
    )
    assert error_type(answer) == (400, "invalid_request_error")
    assert "max_tokens" in answer.json["error"]["message"]


def test_section_1_every_error_below_the_path_has_the_anthropic_envelope(gateway: Any) -> None:
    assert error_type(gateway.post("/v1/messages", b"{")) == (400, "invalid_request_error")
    assert error_type(gateway.post("/v1/messages/nope", {})) == (404, "not_found_error")
    assert error_type(gateway.post("/v1/messages", {}, {"Host": "evil.example"})) == (403, "permission_error")
    assert error_type(gateway.post("/v1/messages", {"model": "nope"})) == (404, "not_found_error")
    gateway.plan(["ERROR <id> SLOT_BUSY"])
    assert error_type(gateway.message()) == (500, "api_error")


def test_section_16_unknown_headers_query_and_fields_are_ignored(gateway: Any) -> None:
    content = [{"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}]
    body = {
        "model": "test-model", "max_tokens": 8, "context_management": {"edits": []}, "tools": TOOLS,
        "messages": [{"role": "user", "content": content, "wish": 1}],
        "system": [{"type": "text", "text": "S"}],
    }  # fmt: skip
    answer = gateway.post("/v1/messages?beta=true", body, {"anthropic-beta": "x", "anthropic-version": "y"})
    assert answer.status == 200


def billed(mark: str) -> list[dict[str, str]]:
    """A system prompt with the line that agents change from request to request."""
    line = f"x-anthropic-billing-header: cc; cch={mark};"
    return [{"type": "text", "text": line}, {"type": "text", "text": "S"}]


def test_b105_a_billing_line_that_changes_leaves_the_prompt_unchanged(gateway: Any) -> None:
    for mark in ("ab12", "cd34"):
        assert gateway.message(system=billed(mark)).status == 200
    first, second = gateway.submits()
    assert first == second


def test_b105_a_billing_line_that_changes_leaves_the_count_unchanged(counting: Any) -> None:
    body = {"model": "test-model", "messages": [{"role": "user", "content": "Hi"}]}
    answers = [
        counting.post("/v1/messages/count_tokens", body | {"system": billed(mark)})
        for mark in ("ab12", "a mark that is " + "much " * 10 + "longer")
    ]
    assert [answer.status for answer in answers] == [200, 200]
    first, second = (answer.json["input_tokens"] for answer in answers)
    assert first == second


def test_section_16_count_tokens_without_a_tokenizer_is_a_named_400(gateway: Any) -> None:
    body = {"model": "test-model", "messages": [{"role": "user", "content": "Hi"}]}
    answer = gateway.post("/v1/messages/count_tokens", body)
    assert error_type(answer) == (400, "invalid_request_error")
    assert "tokenizer" in answer.json["error"]["message"]
    assert gateway.submits() == []


@pytest.fixture(scope="module")
def counting(open_gateway: Callable[..., Any]) -> Any:
    """A gateway without a queue whose model has a tokenizer."""
    gateway = open_gateway(fresh=True, max_queue="0")
    directory: Path = gateway.parts.model.directory
    shutil.copy(embedded_model() / "tokenizer.json", directory / "tokenizer.json")
    return gateway


def test_section_16_count_tokens_takes_no_slot(counting: Any) -> None:
    gateway = counting
    gateway.plan(["ACCEPT <id> 7", "@hold", DONE])
    body = {"model": "test-model", "messages": [{"role": "user", "content": "Hi"}]}
    with contextlib.closing(gateway.connect()) as holder:
        gateway.send(holder, "/v1/messages", body | {"max_tokens": 8})
        gateway.eventually(lambda: gateway.submits(), "submitted")
        answer = gateway.post("/v1/messages/count_tokens", body)
        gateway.release()
        assert gateway.read(holder).status == 200
    assert answer.status == 200
    assert list(answer.json) == ["input_tokens"]
    assert answer.json["input_tokens"] > 1
    longer = body | {"system": "be brief", "tools": TOOLS}
    assert (
        gateway.post("/v1/messages/count_tokens", longer).json["input_tokens"] > answer.json["input_tokens"]
    )
