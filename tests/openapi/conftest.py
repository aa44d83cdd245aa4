"""A gateway with the embedded model behind the reference engine, short answers."""

from __future__ import annotations

import pytest

from ..clients.gateways import Gateway


@pytest.fixture(scope="session")
def gateway():
    running = Gateway("--engine", "reference", "--kv-slots", "2", "--max-tokens", "2")
    yield running
    assert running.close() == 0
