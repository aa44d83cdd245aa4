"""Third floor: rules of good practice over the resolved model.

One small function per rule, registered with its id and purpose; a rule sees the whole model and yields what
it finds. An item may be excused from a rule by ``allow: {RULE: REASON}`` in the spec; an excuse that
excuses nothing is itself an error. Guarantees: every finding points at the item it is about; the outcome
depends on the model alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from .findings import Findings, Rule
from .model import Item, Model

Problem = tuple[Item, str, str]
"""Item, message, hint."""

Check = Callable[[Model], Iterator[Problem]]

_CHECKS: Final[list[tuple[Rule, Check]]] = []

RULES: Final[list[Rule]] = []


def lint_model(model: Model, findings: Findings) -> None:
    """Run every rule over ``model``."""
