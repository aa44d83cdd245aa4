# Generated from spec/protocol.yaml (target python, template python/families.py.j2). Do not edit.
# Regenerate with: python -m codegen generate

"""Model families: what an engine of each can do beyond plain text, and which ``model_type`` values belong to it."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

LOGPROBS: Final = "logprobs"
"""Numbers per token, ECHO of the prompt. (spec: families.capabilities.logprobs)"""

TOKEN_IDS: Final = "token_ids"
"""Prompts of token ids. (spec: families.capabilities.token_ids)"""

GRAMMAR: Final = "grammar"
"""Grammar text after the prompt. (spec: families.capabilities.grammar)"""

TOOLS: Final = "tools"
"""A tool call syntax the gateway renders and parses. (spec: families.capabilities.tools)"""

THINKING: Final = "thinking"
"""A reasoning section. (spec: families.capabilities.thinking)"""

PIN: Final = "pin"
"""KV state kept for later requests. (spec: families.capabilities.pin)"""

STOP: Final = "stop"
"""STOP is honoured; without it a matched stop ends with CANCEL. (spec: families.capabilities.stop)"""

ACCEPT: Final = "accept"
"""ACCEPT is sent. (spec: families.capabilities.accept)"""

SLOTS: Final = "slots"
"""More than one KV slot. (spec: families.capabilities.slots)"""

CAPABILITIES: Final[frozenset[str]] = frozenset(
    {
        LOGPROBS,
        TOKEN_IDS,
        GRAMMAR,
        TOOLS,
        THINKING,
        PIN,
        STOP,
        ACCEPT,
        SLOTS,
    }
)
"""Every capability there is."""


class Family(NamedTuple):
    """One family of models."""

    name: str
    model_types: tuple[str, ...]
    """Shell patterns of the ``model_type`` values in config.json that it serves."""
    can: frozenset[str]
    """Its capabilities."""
    stops: tuple[str, ...]
    """Chat stop sequences when the client sent none."""
    template: str
    """Name of the built-in chat template."""
    doc: str


FAMILIES: Final[Mapping[str, Family]] = {
    "glm": Family(
        name="glm",
        model_types=("glm*", "chatglm*"),
        can=frozenset(
            {"logprobs", "token_ids", "grammar", "tools", "thinking", "pin", "stop", "accept", "slots"}
        ),
        stops=("<|user|>", "<|observation|>"),
        template="glm",
        doc="GLM engines with every extension.",
    ),
    "llama": Family(
        name="llama",
        model_types=("llama",),
        can=frozenset({"stop", "accept", "slots"}),
        stops=(),
        template="chatml",
        doc="Text only.",
    ),
    "qwen2": Family(
        name="qwen2",
        model_types=("qwen2",),
        can=frozenset({"accept"}),
        stops=(),
        template="chatml",
        doc="Text only, one slot, ignores STOP and extension words.",
    ),
    "qwen3": Family(
        name="qwen3",
        model_types=("qwen3",),
        can=frozenset({"accept"}),
        stops=(),
        template="chatml",
        doc="Text only, one slot, ignores STOP and extension words.",
    ),
    "qwen3_moe": Family(
        name="qwen3_moe",
        model_types=("qwen3_moe",),
        can=frozenset({"accept"}),
        stops=(),
        template="chatml",
        doc="Text only, one slot, ignores STOP and extension words.",
    ),
    "olmoe": Family(
        name="olmoe",
        model_types=("olmoe",),
        can=frozenset(),
        stops=(),
        template="chatml",
        doc="Text only, one slot, no ACCEPT, ignores STOP.",
    ),
    "inkling": Family(
        name="inkling",
        model_types=("inkling*",),
        can=frozenset(),
        stops=(),
        template="chatml",
        doc="Text only, one slot, no ACCEPT, ignores STOP.",
    ),
    "kimi": Family(
        name="kimi",
        model_types=("kimi*",),
        can=frozenset({"stop", "accept", "slots"}),
        stops=(),
        template="chatml",
        doc="Text only.",
    ),
    "deepseek_v4": Family(
        name="deepseek_v4",
        model_types=("deepseek_v4",),
        can=frozenset({"stop", "accept", "slots"}),
        stops=(),
        template="chatml",
        doc="Text only.",
    ),
}
"""Every family by name, in the order of the spec."""


def family_for_model_type(model_type: str) -> Family | None:
    """The first family one of whose patterns matches ``model_type`` (case matters), or None."""
    for family in FAMILIES.values():
        if any(fnmatchcase(model_type, pattern) for pattern in family.model_types):
            return family
    return None
