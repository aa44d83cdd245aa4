# Generated from spec/protocol.yaml (target python, template python/launch.py.j2). Do not edit.
# Regenerate with: python -m codegen generate

"""How an engine is started: the names of its environment and argument vector (wire.md §1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SNAP: Final = "SNAP"
"""Model directory. (spec: launch.environment.SNAP)"""

SERVE: Final = "SERVE"
"""The engine serves instead of answering one prompt. (spec: launch.environment.SERVE)"""

SERVE_BATCH: Final = "SERVE_BATCH"
"""The engine multiplexes requests. (spec: launch.environment.SERVE_BATCH)"""

NGEN: Final = "NGEN"
"""Largest max_tokens the gateway will ask for. (spec: launch.environment.NGEN)"""

KV_SLOTS: Final = "KV_SLOTS"
"""Number of KV slots. (spec: launch.environment.KV_SLOTS)"""

CTX: Final = "CTX"
"""Context length; the model's own when absent. The engine sees the gateway's own value unchanged. (spec:
launch.environment.CTX)
"""

SEED: Final = "SEED"
"""Seed of the sampler. The engine sees the gateway's own value unchanged. (spec: launch.environment.SEED)"""

FIXED: Final[Mapping[str, str]] = {
    SERVE: "1",
    SERVE_BATCH: "1",
}
"""Variables that always have the same value."""

ARGUMENTS: Final[tuple[str, ...]] = ("cap",)
"""What follows the program's own name in the argument vector."""
