"""Built-in chat templates for families whose model directory has none (http.md §14).

Guarantees: `glm` renders exactly the layout of the contract; `chatml` frames each turn by `<|im_start|>`
and `<|im_end|>`. The texts have been neutralised before: nothing here escapes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from generated import markup
from server.chat.messages import Message
from server.chat.policy import ThinkingMode

Renderer = Callable[[Sequence[Message], Sequence[Mapping[str, Any]], ThinkingMode], str]

_EFFORTS: Mapping[str | None, str] = {
    "minimal": "Low",
    "low": "Low",
    "medium": "Medium",
    "high": "High",
    "xhigh": "Max",
}
_EFFORT_UNSAID = "High"

GLM_MARKERS = tuple(markup.GLM.values())
CHATML_MARKERS = tuple(markup.CHATML.values())
_GLM_TURNS: Mapping[str, str] = {"system": markup.GLM_SYSTEM, "user": markup.GLM_USER}


def render_glm(
    messages: Sequence[Message], declarations: Sequence[Mapping[str, Any]], thinking: ThinkingMode
) -> str:
    """The GLM layout, ending where the assistant is to write."""
    parts = [markup.GLM_GENERATION_MASK, markup.GLM_START_OF_PIECE]
    if thinking.on:
        effort = _EFFORTS.get(thinking.effort, _EFFORT_UNSAID)
        parts.append(f"{markup.GLM_SYSTEM}Reasoning Effort: {effort}")
    if declarations:
        parts.append(_glm_declarations(declarations))
    previous = ""
    for message in messages:
        if message.role == "assistant":
            parts.append(_glm_assistant(message))
        elif message.role == "tool":
            run = "" if previous == "tool" else markup.GLM_OBSERVATION
            parts.append(f"{run}{markup.GLM_RESPONSE_OPEN}{message.text}{markup.GLM_RESPONSE_CLOSE}")
        else:
            parts.append(_GLM_TURNS[message.role] + message.text)
        previous = message.role
    parts += [markup.GLM_ASSISTANT, markup.GLM_REASONING_OPEN]
    if not thinking.on:
        parts.append(markup.GLM_REASONING_CLOSE)
    return "".join(parts)


def _glm_declarations(declarations: Sequence[Mapping[str, Any]]) -> str:
    lines = "\n".join(json.dumps(declaration, ensure_ascii=False) for declaration in declarations)
    return (
        f"{markup.GLM_SYSTEM}You may call these tools:\n"
        f"{markup.GLM_DECLARATIONS_OPEN}\n{lines}\n{markup.GLM_DECLARATIONS_CLOSE}\n"
        f"To call a tool write {_glm_call('NAME', {'KEY': 'VALUE'})} "
        "with one key and one value for each argument."
    )


def _glm_assistant(message: Message) -> str:
    calls = "".join(_glm_call(call.name, call.arguments) for call in message.calls)
    thought = f"{markup.GLM_REASONING_OPEN}{message.reasoning}{markup.GLM_REASONING_CLOSE}"
    return f"{markup.GLM_ASSISTANT}{thought}{message.text.strip()}{calls}"


def _glm_call(name: str, arguments: Mapping[str, Any]) -> str:
    pairs = "".join(
        f"{markup.GLM_ARGUMENT_KEY_OPEN}{key}{markup.GLM_ARGUMENT_KEY_CLOSE}"
        f"{markup.GLM_ARGUMENT_VALUE_OPEN}{_argument_text(value)}{markup.GLM_ARGUMENT_VALUE_CLOSE}"
        for key, value in arguments.items()
    )
    return f"{markup.GLM_CALL_OPEN}{name}{pairs}{markup.GLM_CALL_CLOSE}"


def _argument_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def render_chatml(
    messages: Sequence[Message], declarations: Sequence[Mapping[str, Any]], thinking: ThinkingMode
) -> str:
    """ChatML turns; families that use it are offered no tools and have no reasoning section."""
    turns = "".join(
        f"{markup.CHATML_TURN_OPEN}{message.role}\n{message.text}{markup.CHATML_TURN_CLOSE}\n"
        for message in messages
    )
    return f"{turns}{markup.CHATML_TURN_OPEN}assistant\n"


BUILTIN: Mapping[str, tuple[Renderer, tuple[str, ...]]] = {
    "glm": (render_glm, GLM_MARKERS),
    "chatml": (render_chatml, CHATML_MARKERS),
}
"""Renderer and markers by `Family.template`."""
