"""What the conformance suite works with: prompts, limits, small helpers. Its fixtures are in conftest.py."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.engine.checkpoints import build_tokenizer
from tests.engine.engine_process import EngineProcess

PROMPT = "[gMASK]<sop><|user|>the other 12 in an hour<|assistant|><think></think>"
LONG_PROMPT = "the other " * 60
CONTEXT = 1 << 15
ENDURING = 30_000
"""Tokens whose frames overflow the pipe: such a request is still in flight when its first DATA has been read,
however fast the engine is.
"""
Start = Callable[..., EngineProcess]
Number = Callable[[], int]


def prompt_ids(text: str) -> list[int]:
    """Token ids of a prompt in the models of the suite."""
    return list(build_tokenizer().encode(text, add_special_tokens=False).ids)


def ending_at(directory: Path, token: int, target: Path) -> Path:
    """A copy of a checkpoint whose only end token is `token`."""
    target.mkdir()
    for path in directory.iterdir():
        if path.suffix in (".json", ".safetensors"):
            (target / path.name).write_bytes(path.read_bytes())
    (target / "generation_config.json").write_text(json.dumps({"eos_token_id": [token]}), encoding="utf-8")
    return target


def kinds(found: list[Any]) -> list[str]:
    """Frame kinds with runs folded to one."""
    names = [frame.KIND for frame in found]
    return [name for index, name in enumerate(names) if index == 0 or names[index - 1] != name]
