"""Built-in chat templates for families whose model directory has none (http.md §14).

Guarantees: `glm` renders exactly the layout of the contract; `chatml` frames each turn by `<|im_start|>`
and `<|im_end|>`. The texts have been neutralised before: nothing here escapes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from server.chat.messages import Message
from server.chat.policy import ThinkingMode
from server.text import reasoning, tools

Renderer = Callable[[Sequence[Message], Sequence[Mapping[str, Any]], ThinkingMode], str]

_EFFORTS: Mapping[str | None, str] = {
    "minimal": "Low",
    "low": "Low",
    "medium": "Medium",
    "high": "High",
    "xhigh": "Max",
}
_EFFORT_UNSAID = "High"

_DECLARATIONS_OPEN, _DECLARATIONS_CLOSE = "<tools>", "</tools>"
GLM_MARKERS = (
    "[gMASK]",
    "<sop>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|observation|>",
    "<|endoftext|>",
    _DECLARATIONS_OPEN,
    _DECLARATIONS_CLOSE,
    "<tool_response>",
    "</tool_response>",
    "<arg_key>",
    "</arg_key>",
    "<arg_value>",
    "</arg_value>",
    reasoning.OPEN,
    reasoning.CLOSE,
    tools.OPEN,
    tools.CLOSE,
)
CHATML_MARKERS = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")


def render_glm(
    messages: Sequence[Message], declarations: Sequence[Mapping[str, Any]], thinking: ThinkingMode
) -> str:
    """The GLM layout, ending where the assistant is to write."""
    parts = ["[gMASK]<sop>"]
    if thinking.on:
        parts.append(f"<|system|>Reasoning Effort: {_EFFORTS.get(thinking.effort, _EFFORT_UNSAID)}")
    if declarations:
        parts.append(_glm_declarations(declarations))
    previous = ""
    for message in messages:
        if message.role == "assistant":
            parts.append(_glm_assistant(message))
        elif message.role == "tool":
            run = "" if previous == "tool" else "<|observation|>"
            parts.append(f"{run}<tool_response>{message.text}</tool_response>")
        else:
            parts.append(f"<|{message.role}|>{message.text}")
        previous = message.role
    parts.append("<|assistant|><think>" if thinking.on else "<|assistant|><think></think>")
    return "".join(parts)


def _glm_declarations(declarations: Sequence[Mapping[str, Any]]) -> str:
    lines = "\n".join(json.dumps(declaration, ensure_ascii=False) for declaration in declarations)
    return (
        f"<|system|>You may call these tools:\n{_DECLARATIONS_OPEN}\n{lines}\n{_DECLARATIONS_CLOSE}\n"
        "To call a tool write "
        "<tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value></tool_call> "
        "with one key and one value for each argument."
    )


def _glm_assistant(message: Message) -> str:
    calls = "".join(
        tools.OPEN
        + call.name
        + "".join(
            f"<arg_key>{key}</arg_key><arg_value>{_argument_text(value)}</arg_value>"
            for key, value in call.arguments.items()
        )
        + tools.CLOSE
        for call in message.calls
    )
    return f"<|assistant|><think>{message.reasoning}</think>{message.text.strip()}{calls}"


def _argument_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def render_chatml(
    messages: Sequence[Message], declarations: Sequence[Mapping[str, Any]], thinking: ThinkingMode
) -> str:
    """ChatML turns; families that use it are offered no tools and have no reasoning section."""
    turns = "".join(f"<|im_start|>{message.role}\n{message.text}<|im_end|>\n" for message in messages)
    return f"{turns}<|im_start|>assistant\n"


BUILTIN: Mapping[str, tuple[Renderer, tuple[str, ...]]] = {
    "glm": (render_glm, GLM_MARKERS),
    "chatml": (render_chatml, CHATML_MARKERS),
}
"""Renderer and markers by `Family.template`."""
