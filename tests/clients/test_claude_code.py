"""Claude Code, the real program, with this gateway behind it: the command of docs/operators.md.

Needs `claude` on the PATH (`npm install @anthropic-ai/claude-code`) and is skipped without it.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.scripted import SCRIPTED_ENGINE

from .gateways import ScriptedGateway, answering, ask_program

CLAUDE = shutil.which("claude")
pytestmark = [
    pytest.mark.skipif(CLAUDE is None, reason="Claude Code is not installed"),
    pytest.mark.skipif(not SCRIPTED_ENGINE.exists(), reason="no scripted engine on this machine"),
]


def ask(gateway: ScriptedGateway, home: Path, *arguments: str) -> dict:
    """One question without a terminal; the program asks nobody but the gateway."""
    printed = ask_program(
        str(CLAUDE),
        *("-p", *arguments, "--output-format", "json"),
        home=home,
        directory=home,
        ANTHROPIC_BASE_URL=gateway.url,
        ANTHROPIC_AUTH_TOKEN="a-key",
        ANTHROPIC_MODEL="served",
        ANTHROPIC_SMALL_FAST_MODEL="served",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
    )
    return json.loads(printed)


@pytest.fixture
def gateway(tmp_path: Path):
    running = ScriptedGateway(tmp_path, "--api-key", "a-key")
    yield running
    assert running.close() == 0


def test_an_answer_arrives_whole(gateway: ScriptedGateway, tmp_path: Path) -> None:
    gateway.plan(answering("<think></think>", "Hello ", "from ", "colibri.", prompt_tokens=1000))
    result = ask(gateway, tmp_path, "say hello")
    assert (result["subtype"], result["result"], result["stop_reason"]) == (
        "success",
        "Hello from colibri.",
        "end_turn",
    )
    assert (result["usage"]["input_tokens"], result["usage"]["output_tokens"]) == (1000, 4)


def test_a_tool_is_called_and_its_result_comes_back(gateway: ScriptedGateway, tmp_path: Path) -> None:
    call = (
        "<tool_call>Bash<arg_key>command</arg_key><arg_value>echo colibri-$((40+2))</arg_value>"
        "<arg_key>description</arg_key><arg_value>Say a number</arg_value></tool_call>"
    )
    gateway.plan(
        answering("<think>", "I call it.", "</think>", call, prompt_tokens=1000),
        answering("<think></think>", "It said it.", prompt_tokens=1100),
    )
    result = ask(gateway, tmp_path, "run it", "--allowedTools", "Bash")
    assert (result["result"], result["num_turns"], result["permission_denials"]) == ("It said it.", 2, [])
    first, second = gateway.prompts()
    assert "colibri-42" not in first
    assert call in second
    assert "<|observation|><tool_response>colibri-42</tool_response>" in second
