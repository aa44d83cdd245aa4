"""Intake of the ``prompt`` of /v1/completions (http.md §7).

A list of one member is that member in everything. Faults of a whole array name ``prompt``; faults of one
member of a batch name ``prompt[i]``. Token ids are integers, no booleans and no floats, not negative; the
engine owns the vocabulary bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from generated import errors, limits

PARAM: Final = "prompt"

_IDS_AT_A_TIME: Final = 1 << 15


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt as it goes to the engine: UTF-8 text, or decimal ids separated by single spaces when
    ``ids``.
    """

    data: bytes
    ids: bool
    param: str


def member_param(index: int) -> str:
    """The name of member ``index`` (zero based) of a batch in an error."""
    return f"{PARAM}[{index}]"


def is_batch(body: Mapping[str, Any]) -> bool:
    """Whether the body asks for several prompts: a list of more than one text, or of more than one list."""
    prompt = body.get(PARAM)
    return isinstance(prompt, list) and len(prompt) > 1 and (_all(prompt, str) or _all(prompt, list))


def flat_prompt(value: Any, *, token_ids: bool) -> Prompt:
    """The prompt of a request for one completion. ``token_ids``: the engine takes ids. Raises the ApiErrors
    of §7.
    """
    if isinstance(value, list):
        return _flat_list(value, token_ids)
    return _text(value, PARAM)


def batch_prompts(value: Sequence[Any], *, token_ids: bool) -> None:
    """Judge a batch as a whole, before its members: their number, the capability, the prompt budget."""
    if len(value) > limits.BATCH_MEMBERS:
        raise errors.prompt_batch_cap_exceeded(limit=limits.BATCH_MEMBERS, got=len(value))
    if _all(value, list):
        _require_ids(token_ids)
        spent = sum(len(member) for member in value)
    else:
        spent = sum(len(member.encode("utf-8")) for member in value)
    if spent > limits.BATCH_PROMPT_TOKENS:
        raise errors.prompt_batch_token_budget_exceeded(limit=limits.BATCH_PROMPT_TOKENS, got=spent)


def batch_members(value: Sequence[Any]) -> list[Prompt]:
    """The members of a batch that passed :func:`batch_prompts`; the first bad one raises."""
    return [
        _ids(member, member_param(index)) if isinstance(member, list) else _text(member, member_param(index))
        for index, member in enumerate(value)
    ]


def _flat_list(value: list[Any], token_ids: bool) -> Prompt:
    if not value:
        raise errors.invalid_value(param=PARAM, message="The prompt list is empty.")
    if all(type(item) is int for item in value):
        _require_ids(token_ids)
        return _ids(value, PARAM)
    if _all(value, list):
        _require_ids(token_ids)
        return _ids(value[0], PARAM)
    if _all(value, str):
        return _text(value[0], PARAM)
    raise errors.invalid_value(
        param=PARAM,
        message="A prompt list holds only strings, only lists of token ids, or only token ids.",
    )


def _all(value: Sequence[Any], kind: type) -> bool:
    return all(isinstance(item, kind) for item in value)


def _require_ids(token_ids: bool) -> None:
    if not token_ids:
        raise errors.unsupported_parameter(
            param=PARAM, message="This model's engine does not take token ids; send the prompt as text."
        )


def _text(value: Any, param: str) -> Prompt:
    if not isinstance(value, str):
        raise errors.invalid_request(param=param, message="The prompt must be a string or a list.")
    if not value:
        raise errors.invalid_request(param=param, message="The prompt is empty.")
    if "\0" in value:
        raise errors.invalid_request(param=param, message="The prompt holds a NUL character.")
    return Prompt(within_limit(value.encode("utf-8"), param), False, param)


def _ids(value: list[Any], param: str) -> Prompt:
    if not value or not all(type(item) is int for item in value):
        raise errors.invalid_value(param=param, message="Token ids are integers, at least one.")
    # One call over millions of ids would keep the interpreter from everybody else.
    parts = (value[place : place + _IDS_AT_A_TIME] for place in range(0, len(value), _IDS_AT_A_TIME))
    data = b" ".join([" ".join(map(str, part)).encode("ascii") for part in parts])
    if b"-" in data:
        raise errors.invalid_value(param=param, message="Token ids are not negative.")
    return Prompt(within_limit(data, param), True, param)


def within_limit(data: bytes, param: str) -> bytes:
    """``data``, unless it is longer than any prompt may be. Raises invalid_value on ``param``."""
    if len(data) > limits.PROMPT_BYTES:
        raise errors.invalid_value(
            param=param, message=f"The prompt is longer than {limits.PROMPT_BYTES} bytes."
        )
    return data
