"""POST /v1/chat/completions through a whole gateway (http.md §8, §9, §12, §15; bugs A, B64, B67, B68)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

DONE = "DONE <id> STAT 1 2.5 0 1.0 7 0"
TOOLS = [
    {"type": "function", "function": {"name": "f", "parameters": {"properties": {"x": {"type": "string"}}}}}
]
CALL = "<tool_call>f<arg_key>x</arg_key><arg_value>1</arg_value></tool_call>"


def deltas(answer: Any) -> list[dict[str, Any]]:
    *chunks, last = answer.events
    assert last == "[DONE]"
    return [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]


def joined(answer: Any, field: str) -> str:
    return "".join(delta.get(field) or "" for delta in deltas(answer))


def test_section_8_the_plain_answer(gateway: Any) -> None:
    answer = gateway.chat()
    body = answer.json
    assert list(body) == ["id", "object", "created", "model", "choices", "usage"]
    assert (body["object"], body["model"]) == ("chat.completion", "test-model")
    assert body["id"].startswith("chatcmpl-") and len(body["id"]) == len("chatcmpl-") + 32
    assert body["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Héllo", "refusal": None},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ]
    assert body["usage"] == {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
    assert answer.headers["x-colibri-queue-wait-ms"].isdigit()


def test_b01_b11_and_b12_shapes_of_a_stream(gateway: Any) -> None:
    answer = gateway.chat(stream=True)
    *chunks, last = answer.events
    assert last == "[DONE]"
    assert deltas(answer) == [{"role": "assistant", "content": ""}, {"content": "Hé"}, {"content": "llo"}, {}]
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks]
    assert reasons == [None, None, None, "stop"]
    assert {tuple(chunk) for chunk in chunks} == {("id", "object", "created", "model", "choices")}
    assert {tuple(chunk["choices"][0]) for chunk in chunks} == {
        ("index", "delta", "logprobs", "finish_reason")
    }


def test_b02_and_b03_usage_only_when_asked_in_one_last_chunk(gateway: Any) -> None:
    *chunks, totals, last = gateway.chat(stream=True, stream_options={"include_usage": True}).events
    assert last == "[DONE]"
    assert {chunk["usage"] for chunk in chunks} == {None}
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert (totals["choices"], totals["usage"]["total_tokens"]) == ([], 9)


SPLITS = [
    ["why</think>Sure. ", CALL, " tail"],
    ["why</th", "ink>Su", "re. <tool", CALL.removeprefix("<tool"), " ta", "il"],
    list("why</think>Sure. " + CALL + " tail"),
]


@pytest.mark.parametrize("pieces", SPLITS, ids=["whole", "cut", "characters"])
def test_section_15_streaming_equals_not_streaming_whatever_the_pieces(
    gateway: Any, pieces: list[str]
) -> None:
    gateway.plan(["ACCEPT <id> 7", *(f"DATA <id> <n> => {piece}" for piece in pieces), DONE])
    fields = {"enable_thinking": True, "tools": TOOLS}
    message = gateway.chat(**fields).json["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == ("why", "Sure.  tail")
    assert [call["function"] for call in message["tool_calls"]] == [{"name": "f", "arguments": '{"x":"1"}'}]
    stream = gateway.chat(stream=True, **fields)
    assert joined(stream, "reasoning_content") == "why"
    assert joined(stream, "content").strip() == "Sure.  tail"
    calls = [call for delta in deltas(stream) for call in delta.get("tool_calls", [])]
    assert [(call["index"], call["function"]) for call in calls] == [
        (0, {"name": "f", "arguments": '{"x":"1"}'})
    ]
    assert stream.events[-2]["choices"][0]["finish_reason"] == "tool_calls"


@pytest.mark.parametrize("stream", [True, False])
def test_section_10_a_call_cut_by_the_limit_is_length(gateway: Any, stream: bool) -> None:
    gateway.plan(
        ["ACCEPT <id> 7", "DATA <id> <n> => <tool_call>f<arg_key>x</arg_key><arg_value>/a",
         "DONE <id> STAT 16 2.5 0 1.0 7 1"]
    )  # fmt: skip
    answer = gateway.chat(tools=TOOLS, stream=stream)
    choice = answer.events[-2]["choices"][0] if stream else answer.json["choices"][0]
    assert choice["finish_reason"] == "length"


def test_section_14_the_familys_stops_end_the_turn_and_are_sent(gateway: Any) -> None:
    gateway.plan(
        ["ACCEPT <id> 7", "DATA <id> <n> => ready", "DATA <id> <n> => <|user|>cake", "@wait STOP", DONE]
    )
    choice = gateway.chat().json["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("ready", "stop")
    assert len(gateway.records("STOP")) == 1


SCORED = [
    "ACCEPT <id> 7",
    "DATA <id> <n> -0.05 2 7 -0.05 8 -3.0 => cat",
    "DATA <id> <n> -0.25 1 9 -0.25 => \\xf0\\x9f",
    "DATA <id> <n> -0.5 1 9 -0.5 => \\x98\\x80",
    "DATA <id> <n> -0.125 1 2 -0.125 =>",
    DONE,
]


def content_scores(answer: Any) -> list[dict[str, Any]]:
    scores = answer.json["choices"][0]["logprobs"]
    assert list(scores) == ["content", "refusal"] and scores["refusal"] is None
    entries: list[dict[str, Any]] = scores["content"]
    return entries


def test_b64_bytes_are_the_frames_own_and_join_to_the_text(gateway: Any) -> None:
    gateway.plan(SCORED)
    answer = gateway.chat(logprobs=True)
    entries = content_scores(answer)
    assert [entry["token"] for entry in entries] == ["cat", "", "😀", ""]
    assert [entry["bytes"] for entry in entries] == [[99, 97, 116], [240, 159], [152, 128], []]
    content = answer.json["choices"][0]["message"]["content"]
    assert bytes(byte for entry in entries for byte in entry["bytes"]).decode() == content == "cat😀"


def test_b67_logprobs_without_top_logprobs_has_empty_lists(gateway: Any) -> None:
    gateway.plan(SCORED)
    entries = content_scores(gateway.chat(logprobs=True))
    assert [entry["top_logprobs"] for entry in entries] == [[], [], [], []]
    assert b" logprobs=1\n" in gateway.submits()[0]


def test_section_9_alternatives_that_are_not_the_token_have_no_bytes(gateway: Any) -> None:
    gateway.plan(SCORED)
    first = content_scores(gateway.chat(logprobs=True, top_logprobs=2))[0]
    assert first["top_logprobs"] == [
        {"token": "cat", "logprob": -0.05, "bytes": [99, 97, 116]},
        {"token": "<token_id:8>", "logprob": -3.0, "bytes": None},
    ]
    assert b" logprobs=2\n" in gateway.submits()[0]


@pytest.mark.parametrize(
    ("pieces", "tokens"),
    [
        (["hm", "</think>", "ok", "!"], ["ok", "!"]),
        (["hm", "</thi", "nk>ok", "!"], ["ok", "!"]),
        (["hm</think>ok"], ["ok"]),
        (["hm", "</think>", "a<thi", "nk>b"], ["a", "b"]),
        (["never closed"], []),
    ],
)
def test_b68_entries_of_reasoning_are_left_out_and_tokens_join_to_the_content(
    gateway: Any, pieces: list[str], tokens: list[str]
) -> None:
    gateway.plan(["ACCEPT <id> 7", *(f"DATA <id> <n> -0.5 0 => {piece}" for piece in pieces), DONE])
    answer = gateway.chat(logprobs=True, enable_thinking=True)
    shown = [entry["token"] for entry in content_scores(answer)]
    assert shown == tokens
    assert "".join(shown) == answer.json["choices"][0]["message"]["content"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"logprobs": True}, ("logprobs", "unsupported_parameter")),
        ({"logprobs": True, "top_logprobs": 32}, ("logprobs", "unsupported_parameter")),
        ({"logprobs": True, "top_logprobs": 33}, ("top_logprobs", "invalid_value")),
        ({"logprobs": True, "top_logprobs": "x"}, ("top_logprobs", "invalid_value")),
        ({"logprobs": 1, "top_logprobs": 33}, ("logprobs", "invalid_value")),
        ({"logprobs": True, "x_colibri_ignore_leading_stop": 1}, ("logprobs", "unsupported_parameter")),
        ({"logprobs": True, "stream": True}, ("logprobs", "unsupported_parameter")),
    ],
)
def test_section_9_1_ranges_are_judged_before_what_the_engine_can(
    old_gateway: Any, fields: Any, said: tuple[str, str]
) -> None:
    assert old_gateway.chat(**fields).error == (400, *said)
    assert old_gateway.submits() == []


@pytest.mark.parametrize("fields", [{"logprobs": False}, {"logprobs": None}, {"top_logprobs": 5}])
def test_section_9_1_numbers_nobody_wants_need_no_capability(old_gateway: Any, fields: Any) -> None:
    assert old_gateway.chat(**fields).json["choices"][0]["logprobs"] is None


def test_section_9_1_top_logprobs_is_checked_and_without_effect_while_logprobs_is_off(gateway: Any) -> None:
    assert gateway.chat(top_logprobs=33).error == (400, "top_logprobs", "invalid_value")
    answer = gateway.chat(top_logprobs=5)
    assert answer.json["choices"][0]["logprobs"] is None
    assert b"logprobs" not in gateway.submits()[0]


QUIET = ["ACCEPT <id> 7", "DATA <id> <n> => a", "@sleep 1.5", "DATA <id> <n> => b", DONE]


@pytest.mark.parametrize("visible", [False, True])
def test_b06_keepalives_are_invisible_unless_the_operator_wants_a_dot(
    open_gateway: Callable[..., Any], visible: bool
) -> None:
    environ = {"COLI_KEEPALIVE_SECONDS": "0.05", "COLI_VISIBLE_KEEPALIVE": str(int(visible))}
    gateway = open_gateway(environ=environ)
    gateway.plan(QUIET)
    answer = gateway.chat(stream=True)
    assert joined(answer, "content") == "ab"
    beats = [delta["reasoning_content"] for delta in deltas(answer) if "reasoning_content" in delta]
    assert len(beats) >= 3
    assert set(beats) == ({"."} if visible else {""})


def test_section_12_every_turn_of_a_conversation_runs_on_one_slot(open_gateway: Callable[..., Any]) -> None:
    gateway = open_gateway(kv_slots="4")
    messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "first"}]
    for turn in range(3):
        body = {"model": "test-model", "messages": messages}
        assert gateway.post("/v1/chat/completions", body).status == 200
        messages += [{"role": "assistant", "content": f"a{turn}"}, {"role": "user", "content": f"q{turn}"}]
    slots = [record["slot"] for record in gateway.records("SUBMIT")]
    assert len(slots) == 3 and len(set(slots)) == 1
    assert gateway.chat(cache_slot=(slots[0] + 1) % 4).status == 200
    assert gateway.records("SUBMIT")[-1]["slot"] == (slots[0] + 1) % 4


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"reasoning_effort": "max", "enable_thinking": 1}, ("reasoning_effort", None)),
        ({"enable_thinking": 1, "messages": []}, ("enable_thinking", None)),
        ({"messages": [], "n": 2}, ("messages", None)),
        ({"messages": [{"role": "user", "content": "a\0b"}], "n": 2}, ("messages", None)),
        ({"n": 2, "echo": True}, ("n", "unsupported_value")),
        ({"echo": True, "logprobs": 1}, ("echo", "unsupported_parameter")),
        ({"echo": None}, ("echo", "invalid_value")),
        ({"logprobs": 1, "top_logprobs": 99}, ("logprobs", "invalid_value")),
        ({"top_logprobs": 99, "cache_slot": 9}, ("top_logprobs", "invalid_value")),
    ],
    ids=str,
)
def test_section_8_the_order_of_checks(gateway: Any, fields: Any, expected: Any) -> None:
    body = {"model": "test-model", "messages": [{"role": "user", "content": "Hi"}]} | fields
    assert gateway.post("/v1/chat/completions", body).error == (400, *expected)
    assert gateway.submits() == []


def test_b26_a_piece_that_completes_no_character_makes_no_event(gateway: Any) -> None:
    gateway.plan(["ACCEPT <id> 7", "DATA <id> <n> => \\xf0\\x9f", "DATA <id> <n> => \\x98\\x80", DONE])
    assert deltas(gateway.chat(stream=True)) == [{"role": "assistant", "content": ""}, {"content": "😀"}, {}]


def test_section_8_unicode_line_ends_are_escaped_inside_an_event(gateway: Any) -> None:
    gateway.plan(["ACCEPT <id> 7", "DATA <id> <n> => a\u2028b\u0085c", DONE])
    answer = gateway.chat(stream=True)
    assert b"a\\u2028b\\u0085c" in answer.body
    assert joined(answer, "content") == "a\u2028b\u0085c"


def test_section_2_a_client_that_reads_slowly_gets_every_event_in_order(gateway: Any) -> None:
    count, size = 400, 20_000
    pieces = [f"DATA <id> <n> => {index:05d}{'x' * (size - 5)}" for index in range(count)]
    gateway.plan(["ACCEPT <id> 7", *pieces, DONE])
    with contextlib.closing(gateway.connect()) as connection:
        body = {"model": "test-model", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
        gateway.send(connection, "/v1/chat/completions", body)
        gateway.eventually(lambda: gateway.records("END"), "the engine is done long before the client reads")
        gateway.eventually(lambda: gateway.counters()["active"] == 0, "the slot is free")
        answer = gateway.read(connection)
    contents = [delta["content"] for delta in deltas(answer)[1:-1]]
    assert [content[:5] for content in contents] == [f"{index:05d}" for index in range(count)]
    assert {len(content) for content in contents} == {size}
