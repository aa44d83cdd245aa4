"""One gateway of each kind for all client tests."""

from __future__ import annotations

import pytest

from tests.scripted import SCRIPTED_ENGINE

from .gateways import Gateway, ScriptedGateway


@pytest.fixture(scope="session")
def scripted(tmp_path_factory: pytest.TempPathFactory):
    if not SCRIPTED_ENGINE.exists():
        pytest.skip("the scripted engine of ../shared is not here")
    gateway = ScriptedGateway(tmp_path_factory.mktemp("scripted"))
    yield gateway
    assert gateway.close() == 0


@pytest.fixture(scope="session")
def embedded():
    """The embedded model behind the reference engine."""
    gateway = Gateway("--engine", "reference", "--kv-slots", "2", "--max-tokens", "64")
    yield gateway
    assert gateway.close() == 0
