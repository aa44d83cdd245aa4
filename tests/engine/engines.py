"""The engines the conformance suite runs against: name to a function giving the command, or the reason
for its absence.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping


def reference() -> list[str] | str:
    """The numpy engine of this checkout."""
    return [sys.executable, "-m", "engine.reference"]


ENGINES: Mapping[str, Callable[[], list[str] | str]] = {"reference": reference}
