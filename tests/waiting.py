"""Waiting for what another thread or process brings about."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 60.0
"""Seconds after which something that must happen is a failure."""


def eventually(condition: Callable[[], object], what: str) -> None:
    """Wait until the condition holds, and fail saying ``what`` did not come true when it never does."""
    limit = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < limit, f"never: {what}"
        time.sleep(0.005)
