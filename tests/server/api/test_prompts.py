"""Intake of the prompt (http.md §7, "prompt"; bugs B30, B35, B36)."""

from __future__ import annotations

from typing import Any

import pytest

from generated import errors, limits
from server.api.prompts import Prompt, batch_members, batch_prompts, flat_prompt, is_batch


def refused(call: Any, *arguments: Any, **keywords: Any) -> tuple[str | None, str | None]:
    with pytest.raises(errors.ApiError) as caught:
        call(*arguments, **keywords)
    assert caught.value.status == 400
    return caught.value.param, caught.value.code


@pytest.mark.parametrize("value", [None, "", 5, 1.5, True, {}, {"a": 1}, "a\0b"])
def test_section_7_a_flat_prompt_that_is_no_text_has_the_null_code(value: Any) -> None:
    assert refused(flat_prompt, value, token_ids=True) == ("prompt", None)


@pytest.mark.parametrize(
    "value",
    [[], ["a", 1], ["a", [1]], [[1], "a"], [None], [True, False], [1, True], [1.0], ["a", None], [{}], [[]],
     [["a"]], [[1, True]], [[[1]]], [[None]], [-1], [[-1]], [3, -4]],
)  # fmt: skip
def test_section_7_faults_of_a_list_are_invalid_values_of_the_prompt(value: Any) -> None:
    assert refused(flat_prompt, value, token_ids=True) == ("prompt", "invalid_value")


def test_section_7_text_is_sent_as_utf8_and_a_list_of_one_unwraps() -> None:
    expected = Prompt("Hé".encode(), ids=False, param="prompt")
    assert flat_prompt("Hé", token_ids=False) == expected
    assert flat_prompt(["Hé"], token_ids=False) == expected


@pytest.mark.parametrize("value", [[72, 0, 233], [[72, 0, 233]]])
def test_section_7_ids_are_sent_as_decimals_joined_by_single_spaces(value: Any) -> None:
    assert flat_prompt(value, token_ids=True) == Prompt(b"72 0 233", ids=True, param="prompt")


def test_section_7_a_list_of_one_empty_string_is_the_empty_prompt() -> None:
    assert refused(flat_prompt, [""], token_ids=True) == ("prompt", None)


@pytest.mark.parametrize("value", [[1], [[1]], [[True]]])
def test_section_7_ids_need_the_capability_before_their_shape_counts(value: Any) -> None:
    assert refused(flat_prompt, value, token_ids=False) == ("prompt", "unsupported_parameter")


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [("ab", False), (["a"], False), (["a", "b"], True), ([[1], [2]], True), ([1, 2], False),
     (["a", 1], False),
     ([["a"], "b"], False), ([[], []], True), (None, False), ([], False)],
)  # fmt: skip
def test_section_7_only_several_texts_or_several_lists_are_a_batch(prompt: Any, expected: bool) -> None:
    assert is_batch({"prompt": prompt}) is expected


def test_section_7_the_member_cap_comes_before_capability_and_shape() -> None:
    most = limits.BATCH_MEMBERS
    assert refused(batch_prompts, [[]] * (most + 1), token_ids=False) == (
        "prompt",
        "prompt_batch_cap_exceeded",
    )
    batch_prompts(["a"] * most, token_ids=False)


def test_section_7_the_prompt_budget_counts_ids_and_utf8_bytes() -> None:
    half = limits.BATCH_PROMPT_TOKENS // 2
    over = "prompt_batch_token_budget_exceeded"
    batch_prompts([[1] * half, [1] * half], token_ids=True)
    assert refused(batch_prompts, [[1] * half, [1] * (half + 1)], token_ids=True) == ("prompt", over)
    batch_prompts(["é" * (half // 2), "x" * half], token_ids=True)
    assert refused(batch_prompts, ["é" * (half // 2), "x" * (half + 1)], token_ids=True) == ("prompt", over)


@pytest.mark.parametrize(
    ("members", "param", "code"),
    [
        (["a", ""], "prompt[1]", None),
        (["a", "b", "c", "", "e", ""], "prompt[3]", None),
        (["a", "b\0"], "prompt[1]", None),
        ([[1], []], "prompt[1]", "invalid_value"),
        ([[1, 2], [3, -4]], "prompt[1]", "invalid_value"),
        ([[1, 2], [3, True]], "prompt[1]", "invalid_value"),
        ([[1.0], [3]], "prompt[0]", "invalid_value"),
    ],
)
def test_section_7_the_first_bad_member_is_named(members: Any, param: str, code: str | None) -> None:
    assert refused(batch_members, members) == (param, code)


def test_section_7_members_carry_their_own_names() -> None:
    assert batch_members(["a", "b"]) == [Prompt(b"a", False, "prompt[0]"), Prompt(b"b", False, "prompt[1]")]


def test_limit_prompt_bytes_is_enforced_by_name() -> None:
    assert refused(flat_prompt, "x" * (limits.PROMPT_BYTES + 1), token_ids=False) == (
        "prompt",
        "invalid_value",
    )


@pytest.mark.parametrize("count", [1, (1 << 15) - 1, 1 << 15, (1 << 15) + 1, (1 << 16) + 1])
def test_ids_are_joined_by_single_spaces_however_many_there_are(count: int) -> None:
    assert flat_prompt([7] * count, token_ids=True).data == b" ".join([b"7"] * count)
