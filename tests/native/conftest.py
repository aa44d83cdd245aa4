"""The native engine as the tests of this directory start it."""

from __future__ import annotations

import pytest

from tests.engine.engines import native


@pytest.fixture(scope="session")
def command() -> list[str]:
    """The program, built from the sources as they are; skips, saying why, where it cannot be built."""
    found = native()
    if isinstance(found, str):
        pytest.skip(found)
    return found
