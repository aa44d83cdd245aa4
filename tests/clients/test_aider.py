"""aider, the real program, with this gateway behind it: the command of docs/operators.md.

Needs `aider` on the PATH (`pip install aider-chat`, in an environment of its own) and is skipped without it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.scripted import SCRIPTED_ENGINE

from .gateways import ScriptedGateway, answering, ask_program

AIDER = shutil.which("aider")
pytestmark = [
    pytest.mark.skipif(AIDER is None, reason="aider is not installed"),
    pytest.mark.skipif(not SCRIPTED_ENGINE.exists(), reason="no scripted engine on this machine"),
]
OPTIONS = (
    "--model=openai/served --edit-format=whole --no-git --yes-always --analytics-disable --no-check-update "
    "--no-show-release-notes --no-show-model-warnings"
)


def test_a_streamed_answer_becomes_a_file(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    gateway = ScriptedGateway(tmp_path, "--api-key", "a-key-for-aider")
    gateway.plan(answering("<think></think>", "Done.\n\nhello.txt\n```\nhello ", "from colibri\n```\n"))
    try:
        printed = ask_program(
            str(AIDER),
            *(*OPTIONS.split(), "--message", "write hello.txt", "hello.txt"),
            home=tmp_path,
            directory=project,
            OPENAI_API_BASE=f"{gateway.url}/v1",
            OPENAI_API_KEY="a-key-for-aider",
            LITELLM_LOCAL_MODEL_COST_MAP="True",  # it would fetch a price list
        )
    finally:
        assert gateway.close() == 0
    assert (project / "hello.txt").read_text() == "hello from colibri\n", printed
