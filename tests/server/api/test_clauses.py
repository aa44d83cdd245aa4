"""Which tests show which clause of http.md §6, §7 and §9, and what of them no other test says."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
CONTRACT = HERE.parents[3] / "shared" / "contract" / "http.md"

CLAUSES: dict[str, dict[str, tuple[str, ...]]] = {
    "6": {
        "n": ("b54_more_than_one_choice_is_a_named_400", "b54_one_choice_has_index_0"),
        "tools / functions": ("declarations_may_be_wrapped_or_bare", "a_bad_declaration_is_named"),
        "stop": ("b46_other_forms_of_stop_are_refused", "b46_a_string_is_a_list_of_one"),
        "frequency_penalty, presence_penalty": (
            "section_6_fields_that_would_change_the_answer_are_refused_by_name",
            "section_6_harmless_fields_are_ignored",
        ),
        "response_format": ("grammars_reach_the_engine", "a_bad_response_format_is_invalid"),
        "max_completion_tokens": (
            "b51_max_completion_tokens_wins_and_the_loser_is_not_validated",
            "b52_what_is_no_positive_integer_is_refused_naming_the_field",
            "b52_missing_null_and_larger_values_are_the_operators_cap",
            "b58_max_tokens_0_scores_the_prompt_and_generates_nothing",
            "section_6_max_tokens_0_is_refused_without_echo_and_logprobs",
            "section_6_max_tokens_0_needs_an_engine_that_can",
        ),
        "temperature": ("section_6_the_default_temperature_is_colis_own_if_it_is_sane",),
        "top_p": ("section_6_top_p_may_not_become_0_in_single_precision",),
        "cache_slot": (
            "section_6_of_two_faults_the_earlier_step_is_reported",
            "section_12_every_turn_of_a_conversation_runs_on_one_slot",
        ),
        "stream_options": ("section_6_logprobs_with_stream_comes_before_stream_options",),
        "seed": ("section_6_seed_is_accepted_and_reaches_no_frame",),
    },
    "7": {
        "group_score": ("section_7_group_score_is_refused_before_any_prompt_and_only_here",),
        "string, non-empty": ("section_7_a_flat_prompt_that_is_no_text_has_the_null_code",),
        "list, faults on the whole array": (
            "section_7_faults_of_a_list_are_invalid_values_of_the_prompt",
            "section_7_only_several_texts_or_several_lists_are_a_batch",
            "section_7_the_member_cap_comes_before_capability_and_shape",
            "section_7_ids_need_the_capability_before_their_shape_counts",
            "section_7_the_prompt_budget_counts_ids_and_utf8_bytes",
        ),
        "ids: integers ≥ 0": (
            "section_7_ids_are_sent_as_decimals_joined_by_single_spaces",
            "section_7_an_id_beyond_the_vocabulary_is_the_clients_fault",
        ),
        "A list of length one unwraps": (
            "section_7_text_is_sent_as_utf8_and_a_list_of_one_unwraps",
            "section_7_a_batch_of_one_is_the_flat_path_byte_for_byte",
        ),
        "Batch (N > 1)": (
            "section_7_the_order_of_checks_flat_and_batch",
            "section_7_members_come_before_the_completion_budget",
            "section_7_the_first_bad_member_is_named",
        ),
        "Completion budget": (
            "section_7_the_completion_budget_is_members_times_max_tokens",
            "section_7_without_max_tokens_the_budget_refusal_says_to_set_it",
        ),
        "All members are validated before the first SUBMIT": (
            "section_7_every_member_is_validated_before_the_first_submit",
            "section_7_a_batch_is_one_admission_on_one_slot",
            "section_7_half_a_character_never_crosses_members",
            "section_7_half_a_stop_sequence_never_crosses_members",
        ),
        "Client-fault error from member i": (
            "b72_a_clients_fault_names_the_member",
            "section_7_an_id_the_engine_refuses_names_the_member",
            "section_7_a_typed_fault_of_the_server_keeps_its_param",
            "section_7_an_unnamed_failure_is_one_unattributed_500",
        ),
        "Nothing is written until all are done": (
            "section_7_a_departed_client_stops_the_batch_at_the_member_in_flight",
            "section_12_the_slot_is_free_before_a_batch_answer_is_read",
            "section_7_each_choice_equals_its_single_prompt_twin",
            "b72_one_choice_per_member_in_order_with_summed_usage",
        ),
        "finish_reason": ("the_body_of_a_plain_answer",),
        "SSE": ("b01_and_b12_pieces_then_one_reason_then_the_end_mark_and_no_usage",),
    },
    "9": {
        "echo": (
            "section_9_1_echo_is_a_boolean_even_with_logprobs_off",
            "section_9_1_off_values_leave_the_request_plain",
            "section_9_1_other_values_of_logprobs_are_refused_and_the_bound_is_named",
        ),
        "top_logprobs": ("section_9_1_top_logprobs_is_checked_and_without_effect_while_logprobs_is_off",),
        "Only when the channel is really wanted": (
            "section_9_1_the_capability_is_judged_last_and_only_when_numbers_are_wanted",
            "section_9_1_numbers_are_not_streamed",
        ),
        "The engine re-reads the whole prompt": (
            "section_9_2_and_9_3_without_echo_only_generated_tokens_appear",
        ),
        "Own value from the token's own record": ("b57_the_chosen_value_is_bit_equal_to_its_table_entry",),
        "Labels": (
            "b57_the_chosen_value_is_bit_equal_to_its_table_entry",
            "b64_bytes_are_the_frames_own_and_join_to_the_text",
        ),
        "One incremental UTF-8 decoder": ("section_9_split_characters_come_back_whole",),
        "ECHO placed by `pos`": (
            "section_9_3_echo_is_placed_by_position_whatever_the_order",
            "section_9_3_prompt_positions_must_be_exactly_0_to_n",
        ),
        "Completions": ("b55_and_b61_echo_puts_the_prompt_before_the_completion",),
        "Records cover exactly the text": (
            "section_9_3_records_of_withheld_stop_text_are_dropped",
            "section_9_3_an_ignored_leading_marker_costs_only_its_own_records",
            "b56_a_swallowed_token_is_an_entry_and_changes_no_text",
        ),
        "Memory": ("section_9_3_half_of_a_65536_position_echo_takes_less_than_half_of_100_mb",),
        "9.4 Old engines": (
            "wire_5_an_engine_that_never_acknowledges_an_extension_is_a_503_in_bounded_time",
        ),
    },
}
"""Section → how a clause begins or what it is about → its tests."""


def test_the_tests_of_every_clause_exist() -> None:
    known = {
        node.name
        for path in HERE.parent.rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    }
    named = {f"test_{name}" for section in CLAUSES.values() for names in section.values() for name in names}
    assert sorted(named - known) == []


@pytest.mark.skipif(not CONTRACT.exists(), reason="the contract of ../shared is not here")
@pytest.mark.parametrize("section", CLAUSES)
def test_every_bullet_and_numbered_step_of_the_contract_is_a_clause(section: str) -> None:
    text = CONTRACT.read_text(encoding="utf-8")
    part = re.split(rf"(?m)^## {section}\. ", text)[1].split("\n## ")[0]
    plain = part.replace("**", "")
    bullets = [" ".join(bullet.split()) for bullet in re.split(r"(?m)^(?:\* |\d\. |### )", plain)]
    assert [clause for clause in CLAUSES[section] if not any(clause in text for text in bullets)] == []
    del bullets[0]  # the heading and what stands before the first of them
    bullets = [text for text in bullets if not re.fullmatch(r"9\.\d \w+", text)]
    assert [text for text in bullets if not any(clause in text for clause in CLAUSES[section])] == []


@pytest.mark.parametrize("value", [0, "", [], {}, True, 1, "x"])
def test_section_7_group_score_is_refused_before_any_prompt_and_only_here(gateway: Any, value: Any) -> None:
    for prompt in ("hi", "", ["a", ""], [[-1], [2]], None):
        refused = gateway.complete(prompt, group_score=value, n=2)
        assert refused.error == (400, "group_score", "unsupported_value")
    assert gateway.submits() == []
    assert gateway.chat(group_score=value).status == 200
    assert gateway.message(group_score=value).status == 200


@pytest.mark.parametrize("fields", [{}, {"group_score": None}, {"group_score": False}])
def test_section_7_an_absent_null_or_false_group_score_passes(gateway: Any, fields: dict[str, Any]) -> None:
    assert gateway.complete("hi", **fields).status == 200
    assert gateway.complete("", **fields).error == (400, "prompt", None)
