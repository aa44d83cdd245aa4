"""Batches of prompts on /v1/completions (http.md §7, "Batch"; bugs B35, B72)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from generated import limits

DONE = "DONE <id> STAT 1 2.5 0 1.0 7 0"


def script(text: str, *, completion: int = 1, prompt: int = 3, limited: int = 0) -> list[str]:
    return [
        "ACCEPT <id> 3",
        f"DATA <id> <n> => {text}",
        f"DONE <id> STAT {completion} 2.5 0 1.0 {prompt} {limited}",
    ]


def test_b72_one_choice_per_member_in_order_with_summed_usage(gateway: Any) -> None:
    gateway.plan(script("A"), script("B", completion=2, prompt=5, limited=1), script("C", prompt=4))
    answer = gateway.complete(["a", "bb", "ccc"])
    assert answer.status == 200
    assert [(c["index"], c["text"], c["finish_reason"]) for c in answer.json["choices"]] == [
        (0, "A", "stop"),
        (1, "B", "length"),
        (2, "C", "stop"),
    ]
    assert answer.json["usage"] == {"prompt_tokens": 12, "completion_tokens": 4, "total_tokens": 16}
    assert gateway.submits() == [b"SUBMIT 0 %d 16 0.7 0.9\n%b\n" % (len(p), p) for p in (b"a", b"bb", b"ccc")]


SCORED = [
    "ACCEPT <id> 2",
    "ECHO <id> <n> 0 nan 0 => h",
    "ECHO <id> <n> 1 -0.5 2 4 -0.5 5 -inf => \\xc3",
    "DATA <id> <n> -0.25 2 9 -0.25 8 -1.5 => \\xa9x",
    "DATA <id> <n> -0.75 2 7 -0.5 6 -0.75 =>",
    "DONE <id> STAT 2 2.5 0 1.0 2 1",
]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"logprobs": 2},
        {"logprobs": 2, "echo": True},
        {"stop": "x"},
        {"logprobs": 1, "echo": True, "stop": "x"},
    ],
    ids=str,
)
@pytest.mark.parametrize("prompts", [["one", "two", "one"], [[1, 2], [3], [1, 2]]], ids=["text", "ids"])
def test_section_7_each_choice_equals_its_single_prompt_twin(
    gateway: Any, options: Any, prompts: Any
) -> None:
    gateway.plan(SCORED)
    batch = gateway.complete(prompts, **options).json
    singles = [gateway.complete(prompt, **options).json for prompt in prompts]
    for index, (choice, single) in enumerate(zip(batch["choices"], singles, strict=True)):
        assert choice == single["choices"][0] | {"index": index}
    for field in ("prompt_tokens", "completion_tokens", "total_tokens"):
        assert batch["usage"][field] == sum(single["usage"][field] for single in singles)
    sent = gateway.submits()
    assert sent[:3] == sent[3:]


def test_section_7_a_batch_of_one_is_the_flat_path_byte_for_byte(gateway: Any) -> None:
    flat, wrapped = gateway.complete("hi", logprobs=1), gateway.complete(["hi"], logprobs=1)
    assert flat.json["choices"] == wrapped.json["choices"]
    first, second = gateway.submits()
    assert first == second == b"SUBMIT 0 2 16 0.7 0.9 0 logprobs=1\nhi\n"


def test_section_7_a_batch_is_one_admission_on_one_slot(open_gateway: Callable[..., Any]) -> None:
    gateway = open_gateway(kv_slots="4")
    admitted = gateway.counters()["admitted"]
    assert gateway.complete(["a", "b", "c"]).status == 200
    assert gateway.counters()["admitted"] == admitted + 1
    assert {record["slot"] for record in gateway.records("SUBMIT")} == {0}


def test_section_7_half_a_character_never_crosses_members(gateway: Any) -> None:
    gateway.plan(script("A\\xc3"), script("\\xa9B"))
    assert [choice["text"] for choice in gateway.complete(["a", "b"]).json["choices"]] == [
        "A\ufffd",
        "\ufffdB",
    ]


def test_section_7_half_a_stop_sequence_never_crosses_members(gateway: Any) -> None:
    gateway.plan(script("one ST"), script("OP two"))
    texts = [choice["text"] for choice in gateway.complete(["a", "b"], stop="STOP").json["choices"]]
    assert texts == ["one ST", "OP two"]


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        ("ERROR <id> CONTEXT_EXCEEDED 5000 4094", (400, "prompt[1]", "context_length_exceeded")),
        ("ERROR <id> EMPTY_PROMPT", (400, "prompt[1]", "invalid_value")),
    ],
)
def test_b72_a_clients_fault_names_the_member(gateway: Any, failure: str, expected: Any) -> None:
    gateway.plan(script("A"), [failure], script("C"))
    answer = gateway.complete(["a", "b", "c"])
    assert answer.error == expected
    assert answer.message.startswith("prompt[1]: ")
    assert len(gateway.submits()) == 2


def test_section_7_an_id_the_engine_refuses_names_the_member(gateway: Any) -> None:
    gateway.plan(script("A"), ["ERROR <id> BAD_REQUEST"])
    assert gateway.complete([[1], [999999999], [3]]).error == (400, "prompt[1]", "invalid_value")


@pytest.mark.parametrize(
    "failure", ["ERROR <id> BAD_REQUEST", "ERROR <id> SLOT_BUSY", "ERROR <id> out of memory"]
)
def test_section_7_an_unnamed_failure_is_one_unattributed_500(gateway: Any, failure: str) -> None:
    gateway.plan(script("A"), [failure])
    answer = gateway.complete(["a", "b", "c"])
    assert answer.error == (500, None, "engine_error")
    assert "prompt[" not in answer.message
    assert len(gateway.submits()) == 2


def test_section_7_a_typed_fault_of_the_server_keeps_its_param(gateway: Any) -> None:
    gateway.plan(script("A"), ["ERROR <id> queue full"])
    answer = gateway.complete(["a", "b"])
    assert answer.error == (503, None, "engine_unavailable")
    assert answer.message.startswith("prompt[1]: ")
    assert answer.headers["retry-after"] == "1"


def test_section_7_a_departed_client_stops_the_batch_at_the_member_in_flight(gateway: Any) -> None:
    gateway.plan(script("A"), ["ACCEPT <id> 3", "@wait CANCEL", "ERROR <id> CANCELLED"], script("C"))
    with contextlib.closing(gateway.connect()) as connection:
        gateway.send(connection, "/v1/completions", {"model": "test-model", "prompt": ["a", "b", "c"]})
        gateway.eventually(lambda: len(gateway.submits()) == 2, "the second member is submitted")
    gateway.eventually(lambda: gateway.records("CANCEL"), "CANCEL")
    gateway.eventually(lambda: gateway.counters()["active"] == 0, "the slot is free")
    assert len(gateway.submits()) == 2


FIRST_FAULT = [
    # two faults in one request: what the flat path and what a batch says first
    ({"group_score": 1, "prompt": ""}, {"group_score": 1, "prompt": ["a", 1]},
     ("group_score", "unsupported_value"), ("group_score", "unsupported_value")),
    ({"prompt": "", "n": 2}, {"prompt": ["a", ""], "n": 2}, ("prompt", None), ("n", "unsupported_value")),
    ({"prompt": "", "max_tokens": 0}, {"prompt": ["a", ""], "max_tokens": 0},
     ("prompt", None), ("max_tokens", None)),
    ({"prompt": "", "stop": 7}, {"prompt": ["a", ""], "stop": 7},
     ("prompt", None), ("stop", "invalid_value")),
    ({"prompt": "", "logprobs": 33}, {"prompt": ["a", ""], "logprobs": 33},
     ("prompt", None), ("prompt[1]", None)),
    ({"prompt": [-1], "top_p": 0}, {"prompt": [[1], [-1]], "top_p": 0},
     ("prompt", "invalid_value"), ("top_p", None)),
    ({"prompt": "a", "logprobs": 1, "stream": True}, {"prompt": ["a", "b"], "logprobs": 1, "stream": True},
     ("logprobs", "unsupported_parameter"), ("stream", "unsupported_parameter")),
    ({"prompt": "a", "stream": True, "stream_options": 1},
     {"prompt": ["a", "b"], "stream": True, "stream_options": 1},
     ("stream_options", None), ("stream", "unsupported_parameter")),
    ({"prompt": "a", "cache_slot": 9, "stream": "x"}, {"prompt": ["a", "b"], "cache_slot": 9, "stream": "x"},
     ("cache_slot", None), ("cache_slot", None)),
    ({"prompt": "a", "echo": 1, "logprobs": True}, {"prompt": ["a", "b"], "echo": 1, "logprobs": True},
     ("echo", "invalid_value"), ("echo", "invalid_value")),
    ({"prompt": "a", "temperature": 3, "response_format": "x"},
     {"prompt": ["a", "b"], "temperature": 3, "response_format": "x"},
     ("response_format", "invalid_value"), ("response_format", "invalid_value")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("flat", "batch", "flat_says", "batch_says"), FIRST_FAULT, ids=lambda value: str(value)[:60]
)
def test_section_7_the_order_of_checks_flat_and_batch(
    gateway: Any, flat: Any, batch: Any, flat_says: Any, batch_says: Any
) -> None:
    for body, expected in ((flat, flat_says), (batch, batch_says)):
        answer = gateway.post("/v1/completions", {"model": "test-model", **body})
        assert answer.error == (400, *expected)
    assert gateway.submits() == []


def test_section_7_members_come_before_the_completion_budget(open_gateway: Callable[..., Any]) -> None:
    gateway = open_gateway(max_tokens="1048576")
    over = limits.BATCH_COMPLETION_TOKENS
    assert gateway.complete(["a", ""], max_tokens=over).error == (400, "prompt[1]", None)
    assert gateway.complete(["a", "b"], max_tokens=over, echo="x").error == (
        400,
        "max_tokens",
        "batch_completion_budget_exceeded",
    )


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
def test_section_7_the_completion_budget_is_members_times_max_tokens(
    open_gateway: Callable[..., Any], field: str
) -> None:
    gateway = open_gateway(max_tokens="1048576")
    half = limits.BATCH_COMPLETION_TOKENS // 2
    assert gateway.complete(["a", "b"], **{field: half}).status == 200
    answer = gateway.complete(["a", "b"], **{field: half + 1})
    assert answer.error == (400, "max_tokens", "batch_completion_budget_exceeded")
    assert "Set max_tokens" not in answer.message


def test_section_7_without_max_tokens_the_budget_refusal_says_to_set_it(
    open_gateway: Callable[..., Any],
) -> None:
    gateway = open_gateway(max_tokens="32768")
    answer = gateway.complete(["a", "b", "c"], max_tokens=None)
    assert answer.error == (400, "max_tokens", "batch_completion_budget_exceeded")
    assert "Set max_tokens" in answer.message
    assert gateway.submits() == []


def test_section_7_every_member_is_validated_before_the_first_submit(gateway: Any) -> None:
    assert gateway.complete(["a", "b\0"]).error == (400, "prompt[1]", None)
    assert gateway.submits() == []


def test_section_12_the_slot_is_free_before_a_batch_answer_is_read(gateway: Any) -> None:
    big = ["ACCEPT <id> 7", "@repeat 80 DATA <id> <n> => " + "x" * 60000, DONE]
    gateway.plan(big)
    with contextlib.closing(gateway.connect()) as slow:
        gateway.send(slow, "/v1/completions", {"model": "test-model", "prompt": ["a", "b"]})
        gateway.eventually(lambda: len(gateway.submits()) == 2, "both members are submitted")
        gateway.eventually(
            lambda: gateway.counters()["active"] == 0, "the slot is free though nothing was read"
        )
        answer = gateway.read(slow)
    assert [len(choice["text"]) for choice in answer.json["choices"]] == [4_800_000, 4_800_000]
