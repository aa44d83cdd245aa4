"""The whole body of each kind of plain answer, byte for byte but for ids and times (http.md §7, §8, §16)."""

from __future__ import annotations

import re
from typing import Any

import pytest

COMPLETION = (
    '{"id":"cmpl-ID","object":"text_completion","created":TIME,"model":"test-model","choices":[{"index":0,'
    '"text":"Héllo","logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":2,'
    '"total_tokens":9}}'
)
CHAT = (
    '{"id":"chatcmpl-ID","object":"chat.completion","created":TIME,"model":"test-model","choices":[{"index":0,'
    '"message":{"role":"assistant","content":"Héllo","refusal":null},"logprobs":null,"finish_reason":"stop"}],'
    '"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}'
)
MESSAGE = (
    '{"id":"msg_ID","type":"message","role":"assistant","model":"test-model","content":[{"type":"text",'
    '"text":"Héllo"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":2}}'
)
ASKS = {
    "section_7": (lambda gateway: gateway.complete(), COMPLETION),
    "section_8": (lambda gateway: gateway.chat(), CHAT),
    "section_16": (lambda gateway: gateway.message(), MESSAGE),
}


@pytest.mark.parametrize("clause", ASKS)
def test_the_body_of_a_plain_answer(gateway: Any, clause: str) -> None:
    ask, wanted = ASKS[clause]
    body = ask(gateway).body.decode()
    body = re.sub(r'"(cmpl-|chatcmpl-)[0-9a-f]{32}"', r'"\1ID"', body)
    body = re.sub(r'"msg_[0-9a-zA-Z]{24}"', '"msg_ID"', body)
    assert re.sub(r'"created":[0-9]{10}\b', '"created":TIME', body) == wanted


def test_section_7_the_body_of_a_batch_has_one_choice_after_the_other(gateway: Any) -> None:
    body = gateway.complete(["a", "b"]).body.decode()
    choices = [
        f'{{"index":{index},"text":"Héllo","logprobs":null,"finish_reason":"stop"}}' for index in range(2)
    ]
    usage = '"usage":{"prompt_tokens":14,"completion_tokens":4,"total_tokens":18}}'
    assert body.partition('"choices":')[2] == f"[{','.join(choices)}],{usage}"
