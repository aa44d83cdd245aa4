"""How hypothesis runs: the same examples every time, and no limit of time for a test or for the making of its
examples, since a loaded machine stops for longer than any.

`pytest --hypothesis-profile explore` looks at new examples instead.

And which Python the programs run that ask for one by name: the one of the tests, not a version manager's shim
in shell, which takes four times as long to start.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("explore", UNTIMED)
settings.register_profile("repeatable", UNTIMED, derandomize=True, database=None)
settings.load_profile("repeatable")
