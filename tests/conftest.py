"""How hypothesis runs: the same examples every time, and no limit of time for a test or for the making of its
examples, since a loaded machine stops for longer than any.

`pytest --hypothesis-profile explore` looks at new examples instead.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("explore", UNTIMED)
settings.register_profile("repeatable", UNTIMED, derandomize=True, database=None)
settings.load_profile("repeatable")
