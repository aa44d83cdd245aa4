"""How much to reason is said in the same words by the gateway's GLM layout and the embedded model's template.

The template is a file of the model, read by any server, so its table cannot come from anywhere: it is held
here to the words the spec lets a client send, and to the gateway's own.
"""

from __future__ import annotations

import ast
import re

import pytest

from engine.nano import MODEL_DIRECTORY
from generated.families import FAMILIES
from generated.fields import ENDPOINTS, OneOf
from server.chat.builtin import _EFFORT_UNSAID, _EFFORTS, render_glm
from server.chat.messages import Message
from server.chat.policy import ThinkingMode, resolve_thinking
from server.chat.renderer import ChatRenderer
from server.chat.tools import ToolUse

OFF = "none"
TABLE = re.compile(r"(\{[^{}]*\})\.get\(effort, ('[^']*')\)")


def allowed() -> set[str]:
    field = ENDPOINTS["POST /v1/chat/completions"].fields["reasoning_effort"]
    assert isinstance(field, OneOf)
    return set(field.accepted)


def test_both_tables_have_every_effort_a_client_may_ask_for_and_the_same_words() -> None:
    source = (MODEL_DIRECTORY / "chat_template.jinja").read_text(encoding="utf-8")
    table, unsaid = TABLE.findall(source)[0]
    assert set(_EFFORTS) == allowed() - {OFF}
    assert ast.literal_eval(table) == _EFFORTS
    assert ast.literal_eval(unsaid) == _EFFORT_UNSAID


@pytest.mark.parametrize("effort", [*sorted(allowed() - {OFF}), None])
def test_both_layouts_begin_alike(effort: str | None) -> None:
    family = FAMILIES["glm"]
    messages, thinking = [Message("user", "hi")], resolve_thinking(effort, True, family)
    assert thinking == ThinkingMode(True, effort)
    of_the_model = ChatRenderer.load(MODEL_DIRECTORY, family)
    assert of_the_model.own_template
    built_in = render_glm(messages, (), thinking)
    assert of_the_model.prompt(messages, ToolUse(), thinking) == built_in


def test_no_effort_is_no_reasoning() -> None:
    assert OFF in allowed()
    assert not resolve_thinking(OFF, None, FAMILIES["glm"]).on
