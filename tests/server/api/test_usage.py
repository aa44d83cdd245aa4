"""What is said of the prompt's tokens when DONE does not count them (http.md §7, §8, §16; wire.md §3).

The last two words of DONE may be missing: then it is 0 in the OpenAI dialect, as the handed case P-12 has it,
and ACCEPT's number in the Anthropic one, whose streams begin with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

SHORT = "DONE <id> STAT 1 2.5 0 1.0"
COUNTED = {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}
UNCOUNTED = {"prompt_tokens": 0, "completion_tokens": 1, "total_tokens": 1}
INCLUDE_USAGE = {"stream": True, "stream_options": {"include_usage": True}}

OPENAI: dict[str, Callable[[Any], Any]] = {
    "completion": lambda gateway: gateway.complete().json["usage"],
    "scored completion": lambda gateway: gateway.complete(logprobs=1).json["usage"],
    "chat": lambda gateway: gateway.chat().json["usage"],
    "scored chat": lambda gateway: gateway.chat(logprobs=True).json["usage"],
    "streamed completion": lambda gateway: gateway.complete(**INCLUDE_USAGE).events[-2]["usage"],
    "streamed chat": lambda gateway: gateway.chat(**INCLUDE_USAGE).events[-2]["usage"],
}


def script(ask: str, accept: str, done: str) -> list[str]:
    numbers = " -0.5 1 5 -0.5" if ask.startswith("scored") else ""
    return [accept, f"DATA <id> <n>{numbers} => a", done]


@pytest.mark.parametrize("ask", OPENAI)
def test_section_7_and_8_what_done_does_not_count_is_0_streamed_and_not(gateway: Any, ask: str) -> None:
    gateway.plan(script(ask, "ACCEPT <id> 9", SHORT))
    assert OPENAI[ask](gateway) == UNCOUNTED


@pytest.mark.parametrize("ask", OPENAI)
def test_section_7_and_8_done_counts_where_it_does(gateway: Any, ask: str) -> None:
    gateway.plan(script(ask, "ACCEPT <id> 8", f"{SHORT} 9 0"))
    assert OPENAI[ask](gateway) == COUNTED


def test_section_16_the_message_counts_what_its_stream_does(gateway: Any) -> None:
    gateway.plan(script("", "ACCEPT <id> 9", SHORT))
    assert gateway.message().json["usage"] == {"input_tokens": 9, "output_tokens": 1}
    events = gateway.message(stream=True).events
    assert events[0]["message"]["usage"]["input_tokens"] == 9
    assert events[-2]["usage"] == {"output_tokens": 1}


def test_section_16_nobody_counted_is_0(old_gateway: Any) -> None:
    old_gateway.plan(["DATA <id> <n> => a", SHORT])
    assert old_gateway.message().json["usage"]["input_tokens"] == 0
