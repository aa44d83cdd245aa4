"""How hypothesis runs: the same examples every time, and no deadline, since a loaded machine stops for longer
than any.

`pytest --hypothesis-profile explore` looks at new examples instead.
"""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("explore", deadline=None)
settings.register_profile("repeatable", deadline=None, derandomize=True, database=None)
settings.load_profile("repeatable")
