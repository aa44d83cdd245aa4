"""A few turns of what `invoke soak` does for minutes."""

from __future__ import annotations

import pytest

from tests.scripted import SCRIPTED_ENGINE
from tests.soak.soak import CLIENTS, soak_turns

TURNS = 25


@pytest.mark.skipif(not SCRIPTED_ENGINE.exists(), reason="the scripted engine of ../shared is not here")
def test_mixed_traffic_with_a_dying_engine_leaves_nothing_behind_and_counters_add_up() -> None:
    report = soak_turns(turns=TURNS, streams=400, warm_up=TURNS)
    assert report.deaths == 1
    assert sum(report.clients.values()) + report.spared >= 2 * TURNS * CLIENTS + 400
    assert report.streams == 400
    assert report.ended["ok"] > 400
    assert min(report.ended[outcome] for outcome in ("cancelled", "refused")) > 0
