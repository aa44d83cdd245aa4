"""Loaded by schemathesis: what it means that the document is right about which requests are valid.

The document is as strict as its notation allows. What it cannot say, the server refuses all the same; each
such reason is listed here, and a refusal for any other reason is a fault of the document or of the server.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import schemathesis
from schemathesis.specs.openapi.checks import AcceptedNegativeData, negative_data_rejection

# pattern of "PARAM: MESSAGE" (the Anthropic dialect has no param, the message names the place) -> why
BEYOND_THE_NOTATION = {
    r"prompt(\[\d+\])?: The prompt (list )?is empty": "a choice of four shapes without least length",
    r"prompt(\[\d+\])?: (Token ids are not negative|The prompt holds a token id)": "the vocabulary",
    r"prompt(\[\d+\])?: Token ids are integers, at least one": "lists have no least length",
    r"(stop_sequences|: stop_sequences)\.\d+: A stop sequence must be": "strings have no least length",
    r"prompt: .* (prompts|the limit is)": "a budget over all members",
    r"max_tokens: max_tokens must be an integer of at least 1": "0 is taken together with echo and logprobs",
    r"cache_slot: cache_slot must be an integer from 0 to": "as many slots as the server was started with",
    r"response_format: grammar must be GBNF text": "needed by one type of four",
    r"response_format: json_schema(\.schema)? must be": "needed by one type of four",
    r"tool_choice: tool_choice (needs declared tools|names a tool)": "two fields together",
    r": tool_choice needs": "two fields together",
    r"(tools|functions)\.\d+(\.function)?\.name: The name of a tool": "a name, wrapped or bare",
    r": tools\.\d+\.name: The name of a tool": "shapes have no least length",
    r"messages\.\d+\.content: The content of a message must be": "null is for assistant turns with calls",
    r"(messages)?: messages must be a non-empty list": "lists have no least length",
    r"messages\.\d+\.tool_calls": "the arguments are JSON inside a string",
    r": (messages|system)\.\d+(\.content\.\d+)?: A block of an? \w+ message must be one of": "as the role",
}


# where schemathesis broke the document's promise and the server does not look -> why
NOT_READ = {
    r"stream_options": "read only when streaming, and then only that it is an object",
    r"functions": "read only without tools",
    r"max_tokens": "read only without max_completion_tokens",
    r"suffix|logit_bias": "any empty value is harmless",
    r"messages\.tool_calls": "read only of assistant turns, and of those not the type",
    r"response_format -> (grammar|json_schema)": "read only for the type that needs it",
}


VIOLATED = re.compile(r"in body - (?:violates \S+ at (\S*/properties/\w+)|([^:\n]+):)")
"""Where schemathesis says that a body violates the document, in both of its ways to say so."""


@schemathesis.check
def accepted_only_what_is_not_read(ctx: Any, response: Any, case: Any) -> None:
    """A request that violates the document is refused, unless the server does not read what violates."""
    try:
        negative_data_rejection(ctx, response, case)
    except AcceptedNegativeData as accepted:
        places = [
            ".".join(re.findall(r"/properties/(\w+)", by_keyword)) or by_name
            for by_keyword, by_name in VIOLATED.findall(accepted.message)
        ]
        if not places or not all(any(re.match(unread, place) for unread in NOT_READ) for place in places):
            raise


@schemathesis.check
def refused_only_for_what_the_document_cannot_say(ctx: Any, response: Any, case: Any) -> None:
    """A request that fits the document is answered, or refused for one of the listed reasons."""
    if case.meta is None or not case.meta.generation.mode.is_positive or response.status_code != 400:
        return
    error = json.loads(response.content)["error"]
    if error.get("code") == "context_length_exceeded" or has_fractional_integer(case.body):
        return
    told = f"{error.get('param') or ''}: {error['message']}"
    assert any(re.match(reason, told) for reason in BEYOND_THE_NOTATION), (
        f"refused although valid: {told} {json.dumps(case.body)[:400]}"
    )


def has_fractional_integer(body: object) -> bool:
    """Whether a value is spelled ``3.0``: an integer for JSON Schema, a number for the contract."""
    return any(isinstance(value, float) and value.is_integer() for value in _leaves(body))


def _leaves(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        for member in value.values():
            yield from _leaves(member)
    elif isinstance(value, list):
        for member in value:
            yield from _leaves(member)
    else:
        yield value
