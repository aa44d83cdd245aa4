"""A conversation of the size coding agents send."""

from __future__ import annotations

from typing import Any


def long_conversation() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(messages, tools): 200 messages and 20 tools of six parameters."""
    tools = [
        {
            "type": "function",
            "function": {
                "name": f"tool{i}",
                "description": "word " * 20,
                "parameters": {
                    "type": "object",
                    "properties": {f"p{j}": {"type": "string", "description": "what"} for j in range(6)},
                },
            },
        }
        for i in range(20)
    ]
    messages = [
        {"role": ("user", "assistant")[i % 2], "content": f"message {i} " + "some words " * 30}
        for i in range(200)
    ]
    return messages, tools
