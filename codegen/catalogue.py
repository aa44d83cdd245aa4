"""Every rule of the compiler in one list, for ``rules``, ``explain`` and the docs.

Guarantees: ids are unique; the order is that of the floors a spec passes, then that of the rules' own
modules.
"""

from __future__ import annotations

from . import (
    acknowledge,
    layout,
    lint,
    output,
    release,
    resolve_http,
    resolve_states,
    resolve_wire,
    scope,
    shape,
    source,
    targets,
)
from .findings import Rule


def all_rules() -> tuple[Rule, ...]:
    """Rules of all floors."""
    groups = (
        source.RULES,
        shape.RULES,
        layout.RULES,
        scope.RULES,
        resolve_wire.RULES,
        resolve_states.RULES,
        resolve_http.RULES,
        lint.lint_rules(),
        targets.RULES,
        output.RULES,
        acknowledge.RULES,
        release.RULES,
    )
    return tuple(rule for group in groups for rule in group)
