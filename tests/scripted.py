"""The stand-in engine's two files: the plan it answers by, and the log of what it was sent.

The engine is another process and may look at its plan, or be in the middle of a record, at any moment: a plan
appears whole, and a record is seen once it is whole.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SCRIPTED_ENGINE = Path(__file__).resolve().parents[2] / "shared" / "tools" / "scripted_engine.py"


class ScriptedEngineFiles:
    """Where one stand-in engine, over all its lives, finds its plan and leaves its log.

    ``environment`` is what it must be started with. ``log`` holds every byte it read.
    """

    def __init__(self, directory: Path) -> None:
        self._plan = directory / "plan.json"
        self.log = directory / "engine.log"
        self.environment = {
            "SCRIPTED_ENGINE_PLAN": str(self._plan),
            "SCRIPTED_ENGINE_LOG": str(self.log),
        }

    def plan(self, plan: dict[str, Any]) -> None:
        """What the engine answers to each SUBMIT from now on."""
        temporary = self._plan.with_suffix(".new")
        temporary.write_text(json.dumps(plan))
        temporary.rename(self._plan)

    def records(self) -> list[dict[str, Any]]:
        """Every record written whole so far; the last line may be one the engine is still writing."""
        path = Path(f"{self.log}.jsonl")
        if not path.exists():
            return []
        whole, _, _ = path.read_bytes().rpartition(b"\n")
        return [json.loads(line) for line in whole.splitlines()]

    def received(self) -> bytes:
        """Every byte the engine has read so far."""
        return self.log.read_bytes() if self.log.exists() else b""

    def submits(self, plan: int) -> list[bytes]:
        """The exact bytes of every SUBMIT under the plan of that ``seq``."""
        # The records first: the bytes of each are in the log before it.
        found = [record for record in self.records() if record["kind"] == "SUBMIT"]
        log = self.received()
        return [log[one["off"] : one["off"] + one["len"]] for one in found if one.get("seq") == plan]
