"""The streams of both dialects, event by event (http.md §8, §15, §16; V-01 to V-11, N-43, N-48; B01 to B12,
B84, B85, B100, B102, B103)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated.http import ANTHROPIC_TOOL_CALL_ID, TOOL_CALL_ID, Outcome
from server.chat import Answer, ChatEvents, MessageEvents, anthropic_content, chat_message
from server.text import ContentDelta, Piece, ReasoningDelta, StopMatched, ToolCall

USAGE = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
FRAME = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 5, "model": "m"}


def chat_events(include_usage: bool = False) -> ChatEvents:
    return ChatEvents(identifier="chatcmpl-1", created=5, model="m", include_usage=include_usage)


def chunks(data: bytes) -> list[Any]:
    """The events of an OpenAI stream; the end mark as the string itself."""
    events = data.decode().split("\n\n")
    assert events.pop() == ""
    assert all(event.startswith("data: ") and "\n" not in event for event in events)
    return [event[6:] if event == "data: [DONE]" else json.loads(event[6:]) for event in events]


def choice(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {**FRAME, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]}


def stream(pieces: list[Piece], outcome: Outcome = Outcome.STOP, include_usage: bool = False) -> list[Any]:
    events = chat_events(include_usage)
    data = events.opening() + b"".join(map(events.piece, pieces)) + events.closing(outcome, USAGE)
    return chunks(data)


def test_b01_the_plain_stream_has_role_pieces_finish_and_end_and_no_usage() -> None:
    assert stream([ContentDelta("Hé"), ContentDelta("llo")]) == [
        choice({"role": "assistant", "content": ""}),
        choice({"content": "Hé"}),
        choice({"content": "llo"}),
        choice({}, "stop"),
        "[DONE]",
    ]


def test_b02_b03_include_usage_adds_one_chunk_without_choices_and_null_elsewhere() -> None:
    *others, usage, end = stream(
        [ContentDelta("x"), ReasoningDelta("y"), ToolCall("f", "{}")], include_usage=True
    )
    assert end == "[DONE]"
    assert usage == {**FRAME, "choices": [], "usage": USAGE}
    assert all(chunk["usage"] is None and chunk["choices"] for chunk in others)


def test_b11_b80_deltas_hold_only_what_they_bring_and_reasoning_has_its_own_field() -> None:
    deltas = [
        chunk["choices"][0]["delta"]
        for chunk in stream([ReasoningDelta("r"), ContentDelta("c"), StopMatched()])[:-1]
    ]
    assert deltas == [{"role": "assistant", "content": ""}, {"reasoning_content": "r"}, {"content": "c"}, {}]


@pytest.mark.parametrize(
    "outcome, word",
    [
        (Outcome.STOP, "stop"),
        (Outcome.SEQUENCE, "stop"),
        (Outcome.LENGTH, "length"),
        (Outcome.TOOL_CALLS, "tool_calls"),
    ],
)
def test_b12_exactly_one_chunk_has_a_finish_reason(outcome: Outcome, word: str) -> None:
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in stream([ContentDelta("x")], outcome)[:-1]]
    assert reasons == [None, None, word]


def test_b84_b85_each_call_is_one_delta_with_its_own_index_and_a_fresh_id() -> None:
    events = stream([ToolCall("f", '{"x":"1"}'), ToolCall("g", "{}")], Outcome.TOOL_CALLS)
    calls = [call for chunk in events[1:3] for call in chunk["choices"][0]["delta"]["tool_calls"]]
    assert [(call["index"], call["type"], call["function"]) for call in calls] == [
        (0, "function", {"name": "f", "arguments": '{"x":"1"}'}),
        (1, "function", {"name": "g", "arguments": "{}"}),
    ]
    ids = {call["id"] for call in calls}
    assert len(ids) == 2
    assert all(identifier.startswith("call_") and len(identifier) == 29 for identifier in ids)


def test_b04_b06_keepalives_are_data_and_leave_the_joined_text_alone() -> None:
    events = chat_events()
    data = b"".join(events.content(char) + events.keepalive(False) for char in "answer" * 9)
    joined = [chunk["choices"][0]["delta"] for chunk in chunks(data)]
    assert "".join(delta.get("content", "") for delta in joined) == "answer" * 9
    assert "".join(delta.get("reasoning_content", "") for delta in joined) == ""
    assert chunks(events.keepalive(False)) == [choice({"reasoning_content": ""})]
    assert chunks(events.keepalive(True)) == [choice({"reasoning_content": "."})]


@pytest.mark.parametrize("text", ["\u2028", "\u2029", "\x85", 'é\u2028🙂\r\n\0"\\', "@", '"content":"@"'])
def test_no_text_can_cut_an_event(text: str) -> None:
    data = chat_events().content(text)
    assert data.decode().splitlines() == [data.decode().rstrip("\n"), ""]
    assert chunks(data) == [choice({"content": text})]
    named = MessageEvents(identifier="m", model="m", thinking=False, tools=False).piece(ContentDelta(text))
    assert len(named.decode().splitlines()) == 6
    assert events_of(named)[1][1]["delta"] == {"type": "text_delta", "text": text}


def test_the_model_id_may_be_any_text() -> None:
    events = ChatEvents(identifier="i", created=1, model='"content":"@"', include_usage=False)
    assert chunks(events.content("x"))[0]["choices"][0]["delta"] == {"content": "x"}
    assert chunks(events.content("x"))[0]["model"] == '"content":"@"'


@pytest.mark.xdist_group("clients")
def test_every_chunk_fits_the_sdk_types_strictly() -> None:
    types = pytest.importorskip("openai.types.chat")
    pieces: list[Piece] = [ReasoningDelta("r"), ContentDelta("c"), ToolCall("f", "{}")]
    for chunk in stream(pieces, "tool_calls", include_usage=True)[:-1]:
        types.ChatCompletionChunk.model_validate(chunk, strict=True)


# ---- Anthropic

Events = list[tuple[str, Any]]


def events_of(data: bytes) -> Events:
    blocks = data.decode().split("\n\n")
    assert blocks.pop() == ""
    parsed = []
    for block in blocks:
        first, second = block.split("\n")
        name, value = first.removeprefix("event: "), json.loads(second.removeprefix("data: "))
        assert (first, second) == (f"event: {name}", "data: " + second[6:])
        assert value["type"] == name
        parsed.append((name, value))
    return parsed


def message_stream(
    pieces: list[Piece],
    *,
    thinking: bool = False,
    tools: bool = False,
    outcome: Outcome = Outcome.STOP,
    stop_sequence: str | None = None,
) -> Events:
    events = MessageEvents(identifier="msg_1", model="m", thinking=thinking, tools=tools)
    data = events.opening(7) + b"".join(map(events.piece, pieces))
    return events_of(data + events.closing(outcome, stop_sequence, 2))


def blocks(events: Events) -> list[tuple[int, dict[str, Any], str]]:
    """Index, opening and joined text of each block; one is open at a time, indices have no gaps."""
    found: list[tuple[int, dict[str, Any], str]] = []
    is_open = False
    for name, value in events:
        if name == "content_block_start":
            assert not is_open
            assert value["index"] == len(found)
            is_open = True
            found.append((value["index"], value["content_block"], ""))
        elif name in ("content_block_delta", "content_block_stop"):
            assert is_open
            assert value["index"] == len(found) - 1
            is_open = name == "content_block_delta"
            if is_open and value["delta"]["type"] != "signature_delta":
                index, opening, text = found[-1]
                found[-1] = index, opening, text + next(v for k, v in value["delta"].items() if k != "type")
    assert not is_open
    return found


def test_the_plain_message_stream_is_the_contracts_sequence() -> None:
    start = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 7, "output_tokens": 0},
    }
    assert message_stream([ContentDelta("Hé"), ContentDelta("llo")]) == [
        ("message_start", {"type": "message_start", "message": start}),
        (
            "content_block_start",
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        ),
        (
            "content_block_delta",
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hé"}},
        ),
        (
            "content_block_delta",
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "llo"}},
        ),
        ("content_block_stop", {"type": "content_block_stop", "index": 0}),
        (
            "message_delta",
            {
                "type": "message_delta",
                "delta": {"stop_reason": "end_turn", "stop_sequence": None},
                "usage": {"output_tokens": 2},
            },
        ),
        ("message_stop", {"type": "message_stop"}),
    ]


def test_b100_thinking_text_and_calls_are_blocks_in_order_without_gaps() -> None:
    events = message_stream(
        [
            ReasoningDelta("t"),
            ContentDelta("a"),
            ToolCall("f", '{"x":"1"}'),
            ContentDelta("z"),
            ToolCall("g", "{}"),
        ],
        thinking=True,
        tools=True,
        outcome=Outcome.TOOL_CALLS,
    )
    assert [(index, opening["type"], text) for index, opening, text in blocks(events)] == [
        (0, "thinking", "t"),
        (1, "text", "a"),
        (2, "tool_use", '{"x":"1"}'),
        (3, "text", "z"),
        (4, "tool_use", "{}"),
    ]
    assert events[-2][1]["delta"]["stop_reason"] == "tool_use"


def test_b100_blank_text_between_blocks_opens_no_block_when_tools_are_on() -> None:
    pieces: list[Piece] = [
        ReasoningDelta("t"),
        ContentDelta("\n"),
        ToolCall("f", "{}"),
        ContentDelta(" "),
        ContentDelta("\n"),
    ]
    assert [
        opening["type"] for _, opening, _ in blocks(message_stream(pieces, thinking=True, tools=True))
    ] == ["thinking", "tool_use"]
    kept = message_stream([ContentDelta("\n"), ContentDelta(" a"), ContentDelta("b \n")], tools=True)
    assert [text for _, _, text in blocks(kept)] == ["ab"], "the JSON form is trimmed as well"
    assert [text for _, _, text in blocks(message_stream([ContentDelta("\n")]))] == ["\n"]


def test_section_15_blanks_between_two_calls_go_in_front_of_the_text_behind_them() -> None:
    call = ToolCall("f", "{}")
    pieces: list[Piece] = [ContentDelta("é "), call, ContentDelta("\u2028"), call, ContentDelta("\né\n")]
    streamed = [
        text for _, opening, text in blocks(message_stream(pieces, tools=True)) if opening["type"] == "text"
    ]
    assert streamed == ["é", " \u2028\né"]


@given(
    st.lists(
        st.one_of(
            st.text("a \n\u2028\x1cé", min_size=1, max_size=4).map(ContentDelta),
            st.just(ToolCall("f", "{}")),
        ),
        max_size=8,
    ),
    st.booleans(),
)
def test_section_15_the_streamed_text_is_the_text_of_the_json_form(pieces: list[Piece], tools: bool) -> None:
    found = blocks(message_stream(pieces, tools=tools))
    texts = [text for _, opening, text in found if opening["type"] == "text"]
    whole = content_of(answered(pieces, tools), False)
    assert "".join(texts) == "".join(block["text"] for block in whole if block["type"] == "text")
    assert not any(map(str.isspace, texts)) or not tools
    assert all(texts)


def test_b102_a_call_starts_with_an_empty_input_and_its_joined_fragments_are_json() -> None:
    _, opening, text = blocks(message_stream([ToolCall("f", '{"x":"\\u2192 \\""}')], tools=True))[0]
    assert (opening["name"], opening["input"], json.loads(text)) == ("f", {}, {"x": '→ "'})
    assert opening["id"].startswith("toolu_")
    assert len(opening["id"]) == 30


def test_b103_a_thinking_block_opens_with_an_empty_signature_and_is_signed_once_before_its_end() -> None:
    events = message_stream([ReasoningDelta("a"), ReasoningDelta("b"), ContentDelta("c")], thinking=True)
    assert events[1][1]["content_block"] == {"type": "thinking", "thinking": "", "signature": ""}
    signatures = [
        place
        for place, (_, value) in enumerate(events)
        if value.get("delta", {}).get("type") == "signature_delta"
    ]
    assert [events[place + 1][0] for place in signatures] == ["content_block_stop"]
    assert events[signatures[0]][1]["delta"]["signature"]


@pytest.mark.parametrize(
    "pieces, kinds",
    [
        ([], ["thinking"]),
        ([ContentDelta("a")], ["thinking", "text"]),
        ([ToolCall("f", "{}")], ["thinking", "tool_use"]),
    ],
)
def test_thinking_that_is_on_has_its_block_even_when_the_model_did_not_think(
    pieces: list[Piece], kinds: list[str]
) -> None:
    events = message_stream(pieces, thinking=True, tools=True)
    assert [opening["type"] for _, opening, _ in blocks(events)] == kinds
    assert sum(value.get("delta", {}).get("type") == "signature_delta" for _, value in events) == 1


def test_an_empty_answer_has_no_block() -> None:
    assert MessageEvents(identifier="m", model="m", thinking=True, tools=True).piece(StopMatched()) == b""
    assert [name for name, _ in message_stream([])] == ["message_start", "message_delta", "message_stop"]


@pytest.mark.parametrize(
    "outcome, reason, sequence",
    [
        (Outcome.STOP, "end_turn", None),
        (Outcome.SEQUENCE, "stop_sequence", "S"),
        (Outcome.LENGTH, "max_tokens", None),
        (Outcome.TOOL_CALLS, "tool_use", None),
    ],
)
def test_b47_the_stop_reason_and_the_sequence_are_told(
    outcome: Outcome, reason: str, sequence: str | None
) -> None:
    delta = message_stream([], outcome=outcome, stop_sequence="S")[-2][1]["delta"]
    assert delta == {"stop_reason": reason, "stop_sequence": sequence}


def test_the_keepalive_is_a_ping() -> None:
    events = MessageEvents(identifier="m", model="m", thinking=False, tools=False)
    assert events.keepalive() == b'event: ping\ndata: {"type":"ping"}\n\n'


@pytest.mark.xdist_group("clients")
def test_every_event_fits_the_anthropic_types_strictly() -> None:
    types = pytest.importorskip("anthropic.types")
    pydantic = pytest.importorskip("pydantic")
    adapter = pydantic.TypeAdapter(types.RawMessageStreamEvent)
    pieces: list[Piece] = [ReasoningDelta("t"), ContentDelta("a"), ToolCall("f", "{}")]
    for _, value in message_stream(pieces, thinking=True, tools=True, outcome=Outcome.TOOL_CALLS):
        adapter.validate_python(value, strict=True)


# ---- the JSON answers


def content_of(answer: Answer, thinking: bool) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = json.loads(anthropic_content(answer, thinking))
    return blocks


def answered(pieces: list[Piece], tools: bool = True) -> Answer:
    answer = Answer(tools=tools, call_id=TOOL_CALL_ID)
    for piece in pieces:
        answer.add(piece)
    return answer


def test_the_message_leaves_optional_keys_out_when_empty() -> None:
    assert chat_message(answered([ContentDelta(" Hé"), ContentDelta("llo ")], tools=False)) == {
        "role": "assistant",
        "content": " Héllo ",
        "refusal": None,
    }
    assert chat_message(answered([ReasoningDelta("no end")], tools=False)) == {
        "role": "assistant",
        "content": "",
        "refusal": None,
        "reasoning_content": "no end",
    }


def test_with_tools_the_content_is_trimmed_and_null_when_empty() -> None:
    assert chat_message(answered([ContentDelta(" a ")]))["content"] == "a"
    message = chat_message(answered([ContentDelta("\n"), ToolCall("f", '{"x":1}')]))
    assert message["content"] is None
    assert [call["function"] for call in message["tool_calls"]] == [{"name": "f", "arguments": '{"x":1}'}]


def test_the_message_content_is_thinking_text_and_calls() -> None:
    answer = Answer(tools=True, call_id=ANTHROPIC_TOOL_CALL_ID)
    for piece in (ReasoningDelta("why"), ContentDelta("ans"), ToolCall("f", '{"x":1}'), StopMatched()):
        answer.add(piece)
    thinking, text, call = content_of(answer, True)
    assert (thinking["type"], thinking["thinking"]) == ("thinking", "why")
    assert text == {"type": "text", "text": "ans"}
    assert (call["type"], call["name"], call["input"], call["id"][:6]) == (
        "tool_use",
        "f",
        {"x": 1},
        "toolu_",
    )
    assert content_of(answered([]), False) == []


AWKWARD = [
    (r'{"k":1e400}', '{"k":1e400}'),
    (r'{"k":[-1E-400, 0.10, 123456789012345678901234567890]}',
     '{"k":[-1E-400,0.10,123456789012345678901234567890]}'),
    (r'{"z":"\ud800","é":"\u00e9 \ud83d\ude00"}', '{"z":"\ufffd","é":"é 😀"}'),
    (r'{"z":{"\udfff" : "\\ud800 \" , \u0000"}}', '{"z":{"\ufffd":"\\\\ud800 \\" , \\u0000"}}'),
]  # fmt: skip


@pytest.mark.parametrize("written, sent", AWKWARD)
def test_section_1_arguments_are_valid_and_unescaped_and_the_same_streamed_and_not(
    written: str, sent: str
) -> None:
    def parsed(text: str) -> Any:
        return json.loads(text, parse_float=str, parse_int=str)

    call = ToolCall("f", written)
    assert anthropic_content(answered([call]), False).decode().partition('"input":')[2] == sent + "}]"
    ((_, _, streamed),) = blocks(message_stream([call], tools=True))
    whole = chat_message(answered([call]))["tool_calls"][0]["function"]["arguments"]
    delta = stream([call])[1]["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"]
    assert streamed == whole == delta
    assert parsed(whole) == parsed(sent)
    whole.encode()


def test_a_signature_is_the_same_streamed_and_not() -> None:
    streamed = message_stream([ReasoningDelta("wh"), ReasoningDelta("y")], thinking=True)
    signature = next(
        value["delta"]["signature"]
        for _, value in streamed
        if value.get("delta", {}).get("type") == "signature_delta"
    )
    assert content_of(answered([ReasoningDelta("why")]), True)[0]["signature"] == signature
