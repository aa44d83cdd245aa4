"""API errors: both envelopes, constructors, and the join from the words of an ERROR frame."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generated import errors


def test_both_envelopes_of_an_error() -> None:
    error = errors.prompt_batch_cap_exceeded(limit=128, got=200)
    assert error.openai() == {
        "error": {
            "message": "A request takes at most 128 prompts, this one has 200.",
            "type": "invalid_request_error",
            "param": "prompt",
            "code": "prompt_batch_cap_exceeded",
        }
    }
    assert error.anthropic("req_1") == {
        "type": "error",
        "error": {
            "type": "invalid_request_error",
            "message": "A request takes at most 128 prompts, this one has 200.",
        },
        "request_id": "req_1",
    }
    assert (error.name, error.status, error.retry, error.close) == (
        "prompt_batch_cap_exceeded", 400, "never", False
    )  # fmt: skip


def test_an_error_with_another_wording_for_anthropic() -> None:
    error = errors.context_length_exceeded(limit=8192, used=9000, param="messages")
    assert error.message == (
        "This model's maximum context length is 8192 tokens, but the prompt has at least 9000 tokens."
    )
    assert error.anthropic("req_1")["error"]["message"] == "prompt is too long: 9000 tokens > 8192 maximum"


def test_the_caller_names_param_and_message_of_some() -> None:
    error = errors.invalid_request(param="temperature", message="No.")
    assert error.openai()["error"] == {
        "message": "No.", "type": "invalid_request_error", "param": "temperature", "code": None
    }  # fmt: skip
    assert errors.NAMED_BY_CALLER["invalid_value"](param="stop.0", message="No.").code == "invalid_value"


def test_values_that_look_like_placeholders_stay_as_they_are() -> None:
    assert errors.forbidden(host="{limit}").message.startswith("The host {limit} is not allowed.")


def test_a_relabelled_error_keeps_everything_else() -> None:
    original = errors.queue_full()
    original.__cause__ = ValueError("why")
    copy = original.relabelled(param="prompt[3]", prefix="prompt[3]: ")
    assert copy.param == "prompt[3]"
    assert copy.message == "prompt[3]: All slots are busy and the waiting room is full."
    assert (copy.status, copy.retry_after, copy.__cause__) == (429, 1, original.__cause__)
    assert original.param is None


def test_errors_are_exceptions_with_their_message() -> None:
    with pytest.raises(errors.ApiError, match=r"^The engine is not ready\.$"):
        raise errors.engine_unavailable()


@pytest.mark.parametrize("name", errors.KINDS)
def test_every_kind_has_a_constructor_that_names_it(name: str) -> None:
    make = getattr(errors, name)
    arguments = dict.fromkeys(make.__kwdefaults__ or {}, "x")
    code = make.__code__
    arguments |= dict.fromkeys(code.co_varnames[: code.co_kwonlyargcount], "x")
    error = make(**arguments)
    assert error.kind is errors.KINDS[name]
    assert "{" not in error.message
    json.dumps([error.openai(), error.anthropic("req_1")])


# ---------------------------------------------------------------- the join

JOIN = [
    ("CONTEXT_EXCEEDED 9000 8192", "CONTEXT_EXCEEDED",
     ("context_length_exceeded", 400, "messages", ["8192", "9000"])),
    ("CONTEXT_EXCEEDED prompt_tokens=9000 requested=16 capacity=8192", "CONTEXT_EXCEEDED",
     ("context_length_exceeded", 400, "messages", ["8192", "9000"])),
    ("CONTEXT_EXCEEDED", "CONTEXT_EXCEEDED", ("context_length_exceeded", 400, "messages", [])),
    ("CONTEXT_EXCEEDED what a pity", "CONTEXT_EXCEEDED", ("context_length_exceeded", 400, "messages", [])),
    ("context exceeds CTX (12 + 400 > 256)", "CONTEXT_EXCEEDED",
     ("context_length_exceeded", 400, "messages", ["256", "412"])),
    ("context exceeds CTX", "CONTEXT_EXCEEDED", ("context_length_exceeded", 400, "messages", [])),
    ("context exceeds CTX (a lot)", "CONTEXT_EXCEEDED", ("context_length_exceeded", 400, "messages", [])),
    ("EMPTY_PROMPT", "EMPTY_PROMPT", ("invalid_value", 400, "messages", [])),
    ("empty prompt", "EMPTY_PROMPT", ("invalid_value", 400, "messages", [])),
    ("BAD_REQUEST", "BAD_REQUEST", ("engine_error", 500, None, [])),
    ("BAD_FRAME", "BAD_FRAME", ("engine_error", 500, None, [])),
    ("SLOT_BUSY", "SLOT_BUSY", ("engine_error", 500, None, [])),
    ("DUPLICATE_ID", "DUPLICATE_ID", ("engine_error", 500, None, [])),
    ("NOT_FOUND", "NOT_FOUND", ("engine_error", 500, None, [])),
    ("CANCELLED", "CANCELLED", ("engine_error", 500, None, [])),
    ("queue full", "QUEUE_FULL", ("engine_unavailable", 503, None, [])),
    ("queue full: 3 waiting", "QUEUE_FULL", ("engine_unavailable", 503, None, [])),
    ("engine busy", "QUEUE_FULL", ("engine_unavailable", 503, None, [])),
    ("bad submit header", "OTHER", ("engine_error", 500, None, [])),
    ("QUEUE_FULL", "OTHER", ("engine_error", 500, None, [])),
    ("context_exceeded 9 8", "OTHER", ("engine_error", 500, None, [])),
    ("empty prompts are fun", "OTHER", ("engine_error", 500, None, [])),
    ("", "OTHER", ("engine_error", 500, None, [])),
]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "name", "expected"), JOIN, ids=[words or "nothing" for words, _, _ in JOIN]
)
def test_the_join(words: str, name: str, expected: tuple[str, int, str | None, list[str]]) -> None:
    code, status, param, numbers = expected
    assert errors.wire_code(words.split()) == name
    error = errors.join_wire_error(words.split(), ids=False, prompt_param="messages")
    assert (error.code, error.status, error.param) == (code, status, param)
    assert [word.strip(",.") for word in error.message.split() if word.strip(",.").isdigit()] == numbers


def test_bad_request_blames_the_ids_of_a_request_of_ids() -> None:
    error = errors.join_wire_error(["BAD_REQUEST"], ids=True, prompt_param="prompt[1]")
    assert (error.status, error.code, error.param) == (400, "invalid_value", "prompt[1]")


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(st.characters(codec="ascii", min_codepoint=33), min_size=1), max_size=5))
def test_no_word_of_the_wire_reaches_a_message(words: list[str]) -> None:
    """Only numbers of known patterns do."""
    error = errors.join_wire_error(words, ids=False, prompt_param="prompt")
    known = {kind_error().message for kind_error in (errors.engine_error, errors.engine_unavailable)}
    assert error.message in known or errors.wire_code(words) in {"CONTEXT_EXCEEDED", "EMPTY_PROMPT"}
