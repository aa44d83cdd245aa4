"""Log probabilities and echo on /v1/completions (http.md §9; bugs B55-B64, B71)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

ECHO = ["ECHO <id> <n> 0 nan 0 => h", "ECHO <id> <n> 1 -0.5 1 4 -0.5 => i"]
DONE = "DONE <id> STAT 1 2.5 0 1.0 2 0"


def scores(answer: Any) -> dict[str, Any]:
    assert answer.status == 200
    found: dict[str, Any] = answer.json["choices"][0]["logprobs"]
    return found


def test_section_9_2_and_9_3_without_echo_only_generated_tokens_appear(gateway: Any) -> None:
    gateway.plan(["ACCEPT <id> 2", *ECHO, "DATA <id> <n> -0.223144 1 3 -0.223144 => ok", DONE])
    answer = gateway.complete(logprobs=1)
    assert answer.json["choices"][0]["text"] == "ok"
    assert scores(answer) == {
        "tokens": ["ok"],
        "token_logprobs": [-0.223144],
        "top_logprobs": [{"ok": -0.223144}],
        "text_offset": [0],
    }
    assert gateway.submits() == [b"SUBMIT 0 2 16 0.7 0.9 0 logprobs=1\nhi\n"]


def test_b55_and_b61_echo_puts_the_prompt_before_the_completion(gateway: Any) -> None:
    gateway.plan(["ACCEPT <id> 2", *ECHO, "DATA <id> <n> -0.25 1 3 -0.25 => ok", DONE])
    answer = gateway.complete(logprobs=1, echo=True)
    assert answer.json["choices"][0]["text"] == "hiok"
    assert scores(answer) == {
        "tokens": ["h", "i", "ok"],
        "token_logprobs": [None, -0.5, -0.25],
        "top_logprobs": [{}, {"i": -0.5}, {"ok": -0.25}],
        "text_offset": [0, 1, 2],
    }
    usage = answer.json["usage"]
    assert len(scores(answer)["token_logprobs"]) == usage["prompt_tokens"] + usage["completion_tokens"]


def test_section_9_3_echo_is_placed_by_position_whatever_the_order(gateway: Any) -> None:
    gateway.plan(["ACCEPT <id> 2", ECHO[1], "DATA <id> <n> -0.25 0 => ok", ECHO[0], DONE])
    assert scores(gateway.complete(logprobs=1, echo=True))["tokens"] == ["h", "i", "ok"]


def test_section_9_3_a_late_echo_still_completes_the_character_of_the_first_piece(gateway: Any) -> None:
    gateway.plan(
        ["ACCEPT <id> 1", "DATA <id> <n> -0.1 0 => \\x82\\xac!", "ECHO <id> <n> 0 nan 0 => \\xe2", DONE]
    )
    answer = gateway.complete(logprobs=1, echo=True)
    assert answer.json["choices"][0]["text"] == "€!"
    assert scores(answer)["tokens"] == ["", "€!"]


@pytest.mark.parametrize(
    "frames",
    [
        [ECHO[0], "ECHO <id> <n> 5 -0.5 0 => i"],
        [ECHO[0], ECHO[0]],
        [ECHO[1]],
        [*ECHO, "ECHO <id> <n> 4294967295 -0.5 0 => z"],
    ],
    ids=["gap", "twice", "missing", "hostile"],
)
def test_section_9_3_prompt_positions_must_be_exactly_0_to_n(gateway: Any, frames: list[str]) -> None:
    gateway.plan(["ACCEPT <id> 2", *frames, "DATA <id> <n> -0.25 0 => ok", DONE])
    assert gateway.complete(logprobs=1, echo=True).error == (500, None, "engine_error")
    assert (
        gateway.complete("again", logprobs=1).status == 200
    )  # records of the prompt are not kept: nothing to place


@pytest.mark.parametrize(
    "frame",
    [
        "DATA <id> <n> -0.5 2 3 -0.5 => x",
        "DATA <id> <n> -0.5 1 3 -0.5 9 => x",
        "DATA <id> <n> -0.5 => x",
        "DATA <id> <n> -0.5 33 => x",
        "DATA <id> <n> -0.5 1 -3 -0.5 => x",
        "DATA <id> <n> zero 1 3 -0.5 => x",
        "DATA <id> <n> -0.5 1 3 -0.5x => x",
    ],
)
def test_wire_3_a_malformed_numeric_tail_is_a_500(open_gateway: Callable[..., Any], frame: str) -> None:
    gateway = open_gateway()
    gateway.plan(["ACCEPT <id> 7", frame, DONE])
    assert gateway.complete(logprobs=2).error == (500, None, "engine_error")
    gateway.plan()
    gateway.eventually(lambda: gateway.complete().status == 200, "the next request works")


def test_b56_a_swallowed_token_is_an_entry_and_changes_no_text(gateway: Any) -> None:
    gateway.plan(["ACCEPT <id> 2", *ECHO, "DATA <id> <n> -0.125 1 2 -0.125 =>", DONE])
    answer = gateway.complete(logprobs=1, echo=True, max_tokens=1)
    assert answer.json["choices"][0]["text"] == "hi"
    assert scores(answer) == {
        "tokens": ["h", "i", ""],
        "token_logprobs": [None, -0.5, -0.125],
        "top_logprobs": [{}, {"i": -0.5}, {"": -0.125}],
        "text_offset": [0, 1, 2],
    }


def test_b56_an_engine_that_swallows_without_a_word_still_leaves_one_trailing_entry(gateway: Any) -> None:
    gateway.plan(["ACCEPT <id> 2", *ECHO, DONE])
    answer = gateway.complete(logprobs=1, echo=True, max_tokens=1)
    assert answer.json["choices"][0]["text"] == "hi"
    assert scores(answer)["tokens"] == ["h", "i", ""]
    assert scores(answer)["token_logprobs"] == [None, -0.5, None]
    assert scores(answer)["text_offset"] == [0, 1, 2]


def test_b57_the_chosen_value_is_bit_equal_to_its_table_entry(gateway: Any) -> None:
    gateway.plan(["ACCEPT <id> 2", "DATA <id> <n> -1.105361 2 3 -0.405465 8 -1.105361 => ok", DONE])
    found = scores(gateway.complete(logprobs=2))
    assert found["top_logprobs"] == [{"<token_id:3>": -0.405465, "ok": -1.105361}]
    assert found["token_logprobs"][0] == found["top_logprobs"][0]["ok"]


def test_b58_max_tokens_0_scores_the_prompt_and_generates_nothing(gateway: Any) -> None:
    gateway.plan(["ACCEPT <id> 2", *ECHO, "DONE <id> STAT 0 2.5 0 1.0 2 1"])
    answer = gateway.complete(logprobs=1, echo=True, max_tokens=0)
    choice = answer.json["choices"][0]
    assert (choice["text"], choice["finish_reason"]) == ("hi", "length")
    assert choice["logprobs"]["tokens"] == ["h", "i"]
    assert answer.json["usage"] == {"prompt_tokens": 2, "completion_tokens": 0, "total_tokens": 2}
    assert gateway.submits() == [b"SUBMIT 0 2 0 0.7 0.9 0 logprobs=1\nhi\n"]


@pytest.mark.parametrize(
    "fields", [{}, {"echo": True}, {"logprobs": 1}, {"echo": True, "logprobs": 0}], ids=str
)
def test_section_6_max_tokens_0_is_refused_without_echo_and_logprobs(gateway: Any, fields: Any) -> None:
    assert gateway.complete(max_tokens=0, **fields).error == (400, "max_tokens", None)
    assert gateway.submits() == []


def test_section_6_max_tokens_0_needs_an_engine_that_can(old_gateway: Any) -> None:
    assert old_gateway.complete(max_tokens=0, echo=True, logprobs=1).error == (400, "max_tokens", None)


def test_section_9_3_echo_without_logprobs_is_a_no_op(gateway: Any) -> None:
    answer = gateway.complete(echo=True)
    assert answer.json["choices"] == [
        {"index": 0, "text": "Héllo", "logprobs": None, "finish_reason": "stop"}
    ]
    assert gateway.submits() == [b"SUBMIT 0 2 16 0.7 0.9\nhi\n"]


@pytest.mark.parametrize("off", [None, False, 0])
def test_section_9_1_off_values_leave_the_request_plain(gateway: Any, off: Any) -> None:
    answer = gateway.complete(logprobs=off)
    assert answer.json["choices"][0]["logprobs"] is None
    assert gateway.submits() == [b"SUBMIT 0 2 16 0.7 0.9\nhi\n"]


@pytest.mark.parametrize("value", [True, 33, -1, 1.0, "5", [], {}, 10**30])
def test_section_9_1_other_values_of_logprobs_are_refused_and_the_bound_is_named(
    gateway: Any, value: Any
) -> None:
    answer = gateway.complete(logprobs=value)
    assert answer.error == (400, "logprobs", "invalid_value")
    assert "32" in answer.message


@pytest.mark.parametrize("value", [None, 0, 1, "yes", []])
def test_section_9_1_echo_is_a_boolean_even_with_logprobs_off(gateway: Any, value: Any) -> None:
    assert gateway.complete(echo=value).error == (400, "echo", "invalid_value")


def test_section_9_1_the_capability_is_judged_last_and_only_when_numbers_are_wanted(old_gateway: Any) -> None:
    assert old_gateway.complete(logprobs=33).error == (400, "logprobs", "invalid_value")
    assert old_gateway.complete(logprobs=1).error == (400, "logprobs", "unsupported_parameter")
    assert old_gateway.submits() == []
    assert old_gateway.complete(logprobs=0).status == 200


def test_section_9_1_numbers_are_not_streamed(gateway: Any) -> None:
    assert gateway.complete(logprobs=1, stream=True).error == (400, "logprobs", "unsupported_parameter")
    assert gateway.complete(logprobs=0, stream=True).status == 200


def test_section_9_3_records_of_withheld_stop_text_are_dropped(gateway: Any) -> None:
    gateway.plan(
        ["ACCEPT <id> 2", "DATA <id> <n> -0.1 0 => ok ", "DATA <id> <n> -0.2 0 => ST",
         "DATA <id> <n> -0.3 0 => OP", "@wait STOP", "DONE <id> STAT 3 2.5 0 1.0 2 0"]
    )  # fmt: skip
    answer = gateway.complete(logprobs=1, stop=["STOP"])
    choice = answer.json["choices"][0]
    assert (choice["text"], choice["finish_reason"]) == ("ok ", "stop")
    assert choice["logprobs"]["tokens"] == ["ok "]


def test_section_9_3_an_ignored_leading_marker_costs_only_its_own_records(gateway: Any) -> None:
    gateway.plan(["ACCEPT <id> 2", "DATA <id> <n> -0.1 0 => END", "DATA <id> <n> -0.2 0 => ok", DONE])
    answer = gateway.complete(logprobs=1, stop="END", x_colibri_ignore_leading_stop=True)
    assert answer.json["choices"][0]["text"] == "ok"
    assert scores(answer)["tokens"] == ["ok"]
    assert scores(answer)["text_offset"] == [0]


def test_b73_the_shape_lm_eval_sends_works(gateway: Any) -> None:
    gateway.plan(["ACCEPT <id> 2", *ECHO, "DATA <id> <n> -0.25 1 3 -0.25 =>", DONE])
    body = {
        "prompt": [[5, 6], [7]],
        "max_tokens": 1,
        "logprobs": 1,
        "echo": True,
        "temperature": 0,
        "seed": 1234,
    }
    answer = gateway.post("/v1/completions", {"model": "test-model", **body})
    assert answer.status == 200
    for choice in answer.json["choices"]:
        found = choice["logprobs"]
        assert len(found["token_logprobs"]) == len(found["tokens"]) == len(found["top_logprobs"]) == 3
        assert found["token_logprobs"][0] is None
        for value, table in zip(found["token_logprobs"][1:], found["top_logprobs"][1:], strict=True):
            assert value == max(table.values())
    assert gateway.submits() == [
        b"SUBMIT 0 3 1 0 0.9 0 logprobs=1 ids=1\n5 6\n",
        b"SUBMIT 0 1 1 0 0.9 0 logprobs=1 ids=1\n7\n",
    ]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"prompt": "hi", "logprobs": 1}, (503, "logprobs", "engine_logprobs_unsupported")),
        ({"prompt": [1, 2]}, (503, "prompt", "engine_tok_ids_unsupported")),
        ({"prompt": [1, 2], "logprobs": 1}, (503, "logprobs", "engine_logprobs_unsupported")),
        ({"prompt": [[1, 2], [3]]}, (503, "prompt", "engine_tok_ids_unsupported")),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "engine", [["ERROR 0 BAD_REQUEST"], ["ECHO <id> <n> 0 nan 0 => h"]], ids=["refuses", "silent"]
)
def test_wire_5_an_engine_that_never_acknowledges_an_extension_is_a_503_in_bounded_time(
    open_gateway: Callable[..., Any], fields: Any, expected: Any, engine: list[str]
) -> None:
    gateway = open_gateway(environ={"COLI_LOGPROBS_ACCEPT_TIMEOUT": "0.2"}, fresh=True)
    gateway.plan(engine)
    answer = gateway.post("/v1/completions", {"model": "test-model", **fields})
    assert answer.error == expected
    assert gateway.counters()["active"] == 0
    gateway.plan()
    assert gateway.complete().status == 200


def test_b71_text_that_is_held_back_consumes_no_record_of_its_own(gateway: Any) -> None:
    gateway.plan(
        ["ACCEPT <id> 2", "DATA <id> <n> -0.1 0 => ab", "DATA <id> <n> -0.2 0 => ST",
         "DATA <id> <n> -0.3 0 => x", "DONE <id> STAT 3 2.5 0 1.0 2 0"]
    )  # fmt: skip
    answer = gateway.complete(logprobs=1, stop="STOP")
    assert answer.json["choices"][0]["text"] == "abSTx"
    assert scores(answer)["tokens"] == ["ab", "ST", "x"]
    assert scores(answer)["token_logprobs"] == [-0.1, -0.2, -0.3]


def test_b74_the_whole_reason_is_in_the_message_and_in_the_log(gateway: Any, caplog: Any) -> None:
    with caplog.at_level("INFO", logger="colibri.access"):
        answer = gateway.complete("hi", logprobs=33)
        gateway.eventually(lambda: caplog.records, "logged")
    assert answer.message == "logprobs must be an integer from 0 to 32."
    (line,) = [record.getMessage() for record in caplog.records if "/v1/completions" in record.getMessage()]
    assert answer.headers["x-request-id"] in line
    assert answer.message in line
    assert "outcome=refused" in line
