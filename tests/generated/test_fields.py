"""Fields of request bodies: each kind's values, null rule, refusals, capability, and the orders of checks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generated import errors, families, fields
from generated.fields import ENDPOINTS, FieldEnvironment

COMPLETIONS = ENDPOINTS["POST /v1/completions"]
CHAT = ENDPOINTS["POST /v1/chat/completions"]
MESSAGES = ENDPOINTS["POST /v1/messages"]
SETTINGS = {"max_tokens": 1024, "temperature": 0.7, "top_p": 0.9}
ABLE = FieldEnvironment(can=families.CAPABILITIES, last_slot=3, settings=SETTINGS)
PLAIN = ABLE._replace(can=frozenset())
HUGE = 10**5000


def value(name: str, body: dict[str, Any], endpoint: Any = COMPLETIONS, environment: Any = ABLE) -> Any:
    return endpoint.fields[name].check(body, environment)


def refusal(
    name: str, body: dict[str, Any], endpoint: Any = COMPLETIONS, environment: Any = ABLE
) -> tuple[int, str | None, str | None]:
    with pytest.raises(errors.ApiError) as caught:
        value(name, body, endpoint, environment)
    error = caught.value
    assert (error.param or "") in error.message
    return error.status, error.param, error.code


TAKEN = [
    ("group_score", [False], [False]),
    ("n", [1], [1]),
    ("stop", ["x", ["x"], ["a", "b", "c", "d"], []], [("x",), ("x",), ("a", "b", "c", "d"), ()]),
    ("frequency_penalty", [0, 0.0, -0.0], [None, None, None]),
    ("presence_penalty", [0, 0.0], [None, None]),
    ("logit_bias", [{}, []], [None, None]),
    ("best_of", [1], [None]),
    ("suffix", [""], [None]),
    ("max_tokens", [1, 16, 1024, 1025, HUGE], [1, 16, 1024, 1024, 1024]),
    ("temperature", [0, 0.0, -0.0, 1, 2, 2.0, 0.3], [0.0, 0.0, 0.0, 1.0, 2.0, 2.0, 0.3]),
    ("top_p", [1, 1.0, 0.5, 1e-45], [1.0, 1.0, 0.5, 1e-45]),
    ("x_colibri_ignore_leading_stop", [True, False], [True, False]),
    ("cache_slot", [0, 3], [0, 3]),
    ("stream", [True, False], [True, False]),
    ("echo", [True, False], [True, False]),
    ("logprobs", [False, 0, 1, 32], [None, None, 1, 32]),
]


@pytest.mark.parametrize(("name", "sent", "expected"), TAKEN, ids=[name for name, _, _ in TAKEN])
def test_values_a_field_takes(name: str, sent: list[Any], expected: list[Any]) -> None:
    got = [value(name, {name: one}) for one in sent]
    assert repr(got) == repr(expected)


MISFITS: list[Any] = [
    "1",
    "",
    [],
    {},
    [1],
    {"a": 1},
    True,
    False,
    0,
    1,
    -1,
    1.5,
    1.0,
    0.0,
    HUGE,
    -HUGE,
    1e308,
    "x",
]

REFUSED = [
    ("group_score", "unsupported_value", [0, "", [], {}, True, 1, "x", 0.0]),
    ("n", "unsupported_value", [0, 2, -1, True, 1.0, "1", [], HUGE]),
    ("stop", "invalid_value", [1, True, {}, 0, ["a", "b", "c", "d", "e"], 1.5]),
    ("frequency_penalty", "unsupported_parameter", [0.1, -1, HUGE, "0", False, True, []]),
    ("presence_penalty", "unsupported_parameter", [0.1, 2, "", {}]),
    ("logit_bias", "unsupported_parameter", [{"1": 1}, [1], "x", 0, False]),
    ("best_of", "unsupported_parameter", [0, 2, 1.0, True, "1"]),
    ("suffix", "unsupported_parameter", ["x", 0, False, ["x"]]),
    ("max_tokens", None, [0, -1, True, False, 1.0, 16.0, "16", [], {}, -HUGE]),
    ("max_completion_tokens", None, [0, -1, True, 1.0, "16"]),
    ("temperature", None, [-0.1, 2.1, "1", True, False, [], HUGE, -HUGE, 1e308]),
    ("top_p", None, [0, 0.0, -0.1, 1.1, 1e-50, 7e-46, 5e-324, True, "1", HUGE]),
    ("x_colibri_ignore_leading_stop", "invalid_value", [0, 1, "true", []]),
    ("cache_slot", None, [-1, 4, True, 0.0, "0", HUGE]),
    ("stream", None, [0, 1, "true", []]),
    ("echo", "invalid_value", [0, 1, "true", [], None]),
    ("logprobs", "invalid_value", [True, -1, 33, 1.0, "1", HUGE, 0.0]),
]


@pytest.mark.parametrize(("name", "code", "sent"), REFUSED, ids=[name for name, _, _ in REFUSED])
def test_values_a_field_refuses(name: str, code: str | None, sent: list[Any]) -> None:
    field = "max_tokens" if name == "max_completion_tokens" else name
    for one in sent:
        assert refusal(field, {name: one}) == (400, name, code), one


@pytest.mark.parametrize(
    "endpoint", ["POST /v1/completions", "POST /v1/chat/completions", "POST /v1/messages"]
)
def test_no_value_of_any_kind_crashes_a_check(endpoint: str) -> None:
    for name in ENDPOINTS[endpoint].fields:
        for one in MISFITS:
            try:
                value(name, {name: one}, ENDPOINTS[endpoint])
            except errors.ApiError as error:
                assert error.status == 400


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted({*COMPLETIONS.names, *CHAT.names})), json_values, max_size=8))
def test_any_body_gives_values_or_one_named_400(body: dict[str, Any]) -> None:
    for endpoint in (COMPLETIONS, CHAT, MESSAGES):
        for name, field in endpoint.fields.items():
            try:
                field.check(body, ABLE)
            except errors.ApiError as error:
                assert error.status == 400
                assert error.param is not None
                named = {name, *(part.name for part in (field.loses_to,) if part)}
                assert error.param.split(".")[0] in named


# ---------------------------------------------------------------- absent, null, default

DEFAULTS = {
    "max_tokens": 1024,
    "temperature": 0.7,
    "top_p": 0.9,
    "stop": (),
    "stream": False,
    "echo": False,
    "x_colibri_ignore_leading_stop": False,
}


@pytest.mark.parametrize("name", COMPLETIONS.fields)
def test_absent_and_null_give_the_default(name: str) -> None:
    assert value(name, {}) == DEFAULTS.get(name)
    if name != "echo":
        assert value(name, {name: None}) == DEFAULTS.get(name)


def test_max_tokens_of_the_messages_endpoint_is_required() -> None:
    assert refusal("max_tokens", {}, MESSAGES) == (400, "max_tokens", None)
    assert refusal("max_tokens", {"max_tokens": None}, MESSAGES) == (400, "max_tokens", None)
    assert value("max_tokens", {"max_tokens": 5000}, MESSAGES) == 1024


def test_max_completion_tokens_wins_and_the_loser_is_not_looked_at() -> None:
    assert value("max_tokens", {"max_completion_tokens": 5, "max_tokens": "junk"}) == 5
    assert value("max_tokens", {"max_completion_tokens": None, "max_tokens": 7}) == 7
    assert refusal("max_tokens", {"max_completion_tokens": 0, "max_tokens": 7}) == (
        400, "max_completion_tokens", None
    )  # fmt: skip


SCORING = {"max_tokens": 0, "echo": True, "logprobs": 1}


def test_max_tokens_zero_scores_the_prompt() -> None:
    assert value("max_tokens", SCORING) == 0
    for spoiled in ({"echo": False}, {"logprobs": 0}, {"logprobs": 33}, {"logprobs": None}, {"echo": "yes"}):
        assert refusal("max_tokens", SCORING | spoiled) == (400, "max_tokens", None)
    assert refusal("max_tokens", SCORING, environment=PLAIN) == (400, "max_tokens", None)
    assert refusal("max_tokens", SCORING, CHAT) == (400, "max_tokens", None)
    assert refusal("max_tokens", SCORING | {"max_tokens": 0.0}) == (400, "max_tokens", None)
    assert refusal("max_tokens", SCORING | {"max_tokens": False}) == (400, "max_tokens", None)


def test_the_bound_of_logprobs_is_in_its_message() -> None:
    with pytest.raises(errors.ApiError, match="from 0 to 32"):
        value("logprobs", {"logprobs": 33})


def test_a_field_that_needs_a_capability() -> None:
    assert refusal("logprobs", {"logprobs": 1}, environment=PLAIN) == (
        400, "logprobs", "unsupported_parameter"
    )  # fmt: skip
    assert value("logprobs", {"logprobs": True}, CHAT, PLAIN) is True  # judged by a step behind top_logprobs
    for off in (None, False, 0):
        assert value("logprobs", {"logprobs": off}, environment=PLAIN) is None
    assert refusal("logprobs", {"logprobs": 33}, environment=PLAIN) == (400, "logprobs", "invalid_value")


def test_bad_members_of_stop_are_named_by_place() -> None:
    assert refusal("stop", {"stop": ""}) == (400, "stop.0", "invalid_value")
    assert refusal("stop", {"stop": ["a", ""]}) == (400, "stop.1", "invalid_value")
    assert refusal("stop", {"stop": [None]}) == (400, "stop.0", "invalid_value")
    assert refusal("stop", {"stop": ["a", 1, ""]}) == (400, "stop.1", "invalid_value")


def test_stream_options_are_read_only_when_streaming() -> None:
    assert value("stream_options", {"stream_options": "junk"}) is None
    assert value("stream_options", {"stream_options": "junk", "stream": False}) is None
    assert refusal("stream_options", {"stream_options": "junk", "stream": True}) == (
        400, "stream_options", None
    )  # fmt: skip
    body = {"stream_options": {"include_usage": True}, "stream": True}
    assert value("stream_options", body) == {"include_usage": True}


def test_fields_of_chat() -> None:
    assert refusal("echo", {"echo": True}, CHAT) == (400, "echo", "unsupported_parameter")
    assert refusal("echo", {"echo": 1}, CHAT) == (400, "echo", "invalid_value")
    assert value("echo", {"echo": False}, CHAT) is False
    for bad in (0, 1, "true"):
        assert refusal("logprobs", {"logprobs": bad}, CHAT) == (400, "logprobs", "invalid_value")
    assert value("top_logprobs", {"top_logprobs": 32}, CHAT) == 32
    assert refusal("top_logprobs", {"top_logprobs": 33}, CHAT) == (400, "top_logprobs", "invalid_value")
    assert refusal("top_logprobs", {"top_logprobs": True}, CHAT) == (400, "top_logprobs", "invalid_value")
    assert value("reasoning_effort", {"reasoning_effort": "xhigh"}, CHAT) == "xhigh"
    assert refusal("reasoning_effort", {"reasoning_effort": "max"}, CHAT) == (400, "reasoning_effort", None)
    assert refusal("enable_thinking", {"enable_thinking": 1}, CHAT) == (400, "enable_thinking", None)
    assert value("enable_thinking", {}, CHAT) is None


def test_top_k_of_the_messages_endpoint_is_not_served() -> None:
    assert value("top_k", {"top_k": None}, MESSAGES) is None
    assert refusal("top_k", {"top_k": 5}, MESSAGES) == (400, "top_k", "unsupported_parameter")


# ---------------------------------------------------------------- orders


def names(endpoint: Any, order: str) -> list[str]:
    return [
        f"@{step.name}" if isinstance(step, fields.Hook) else step.name for step in endpoint.orders[order]
    ]


SAMPLING = [
    "n", "@tools", "@tool_choice", "stop", "frequency_penalty", "presence_penalty", "logit_bias", "best_of",
    "suffix", "@response_format", "max_tokens", "temperature", "top_p", "@grammar_capability",
]  # fmt: skip
SCORES = ["x_colibri_ignore_leading_stop", "cache_slot", "stream"]


def test_the_orders_of_checks() -> None:
    """http.md sections 6, 7, 8 and 16, written down a second time."""
    assert names(COMPLETIONS, "flat") == [
        "group_score", "@prompt", *SAMPLING, "echo", "logprobs", *SCORES, "@scores_with_stream",
        "stream_options", "@admission",
    ]  # fmt: skip
    assert names(COMPLETIONS, "batch") == [
        "group_score", "@prompts", *SAMPLING, "@members", "@completion_budget", "echo", "logprobs",
        *SCORES, "@batch_with_stream", "@admission",
    ]  # fmt: skip
    assert names(CHAT, "default") == [
        "reasoning_effort", "enable_thinking", "@messages", *SAMPLING, "echo", "logprobs", "top_logprobs",
        "@logprobs_capability", *SCORES, "@scores_with_stream", "stream_options", "@admission",
    ]  # fmt: skip
    assert names(MESSAGES, "default") == [
        "top_k", "@stop_sequences", "@system", "@messages", "@anthropic_tools", "@anthropic_tool_choice",
        "@thinking", "max_tokens", "@translate", "temperature", "top_p", "@grammar_capability", *SCORES,
        "@admission",
    ]  # fmt: skip


def test_fields_that_endpoints_share_are_one_object() -> None:
    assert COMPLETIONS.fields["temperature"] is CHAT.fields["temperature"] is MESSAGES.fields["temperature"]
    assert COMPLETIONS.fields["echo"] is not CHAT.fields["echo"]
