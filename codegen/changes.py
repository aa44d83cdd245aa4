"""What a comparison of two models works on: snapshots of both, their items in pairs, and the changes found.

Both sides are plain JSON values (a frozen release, a revision, the present spec), matched item by item. A
change points at the new file, a removal at the old one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from .compat import COMPAT_RULES, Effect, Verdict, judge
from .findings import Location
from .fingerprint import plain
from .lint import walk
from .model import Model

Data = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A model as JSON values, and where its items are written. ``name`` is how reports call it."""

    name: str
    data: Data
    places: Mapping[str, Location]

    def place(self, path: str) -> Location:
        """Where the item of ``path``, or else the nearest one around it, is written."""
        while path:
            if path in self.places:
                return self.places[path]
            path = path.rpartition(".")[0]
        return Location(self.name)


def snapshot_of(model: Model) -> Snapshot:
    """The snapshot of a model just resolved."""
    return Snapshot(model.source, plain(model), {item.path: item.location for item in reversed(walk(model))})


_PATH_LINE: Final = re.compile(r'^(\s*)"path": (".*"),?$')


def snapshot_of_release(text: str, name: str) -> Snapshot:
    """The snapshot of a frozen model; places are lines of the frozen file. Raises ValueError when it is not
    one.
    """
    data = json.loads(text)
    if not isinstance(data, dict) or "protocol" not in data or "frames" not in data:
        raise ValueError("not a frozen model")
    places: dict[str, Location] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        match = _PATH_LINE.match(line)
        if match:
            places.setdefault(json.loads(match[2]), Location(name, number, len(match[1]) + 1))
    return Snapshot(name, data, places)


@dataclass(frozen=True, slots=True)
class Change:
    """One difference under one rule. ``item`` is the path an acknowledgement names."""

    rule: str
    item: str
    message: str
    location: Location
    verdict: Verdict

    def sort_key(self) -> tuple[int, str, str, str]:
        """Worst first, then by rule and item."""
        return (-self.verdict.level, self.rule, self.item, self.message)


@dataclass(slots=True)
class Comparison:
    """Collects the changes between two snapshots."""

    old: Snapshot
    new: Snapshot
    changes: list[Change] = field(default_factory=list)
    old_items: dict[str, Data] = field(default_factory=dict)
    new_items: dict[str, Data] = field(default_factory=dict)
    covered: set[str] = field(default_factory=set)
    """Paths a handler has spoken for under another path (the old place of something renamed)."""

    def __post_init__(self) -> None:
        self.old_items.update((item["path"], item) for item in items_of(self.old.data))
        self.new_items.update((item["path"], item) for item in items_of(self.new.data))

    def add(
        self,
        rule_id: str,
        path: str,
        message: str,
        *,
        removed: bool = False,
        override: Effect | None = None,
        tolerated: bool | None = None,
    ) -> None:
        """Record a change of the item at ``path``; ``removed`` points at the old file."""
        item = self.old_items.get(path) or self.new_items.get(path) or {}
        verdict = judge(
            COMPAT_RULES[rule_id],
            self.old.data["protocol"],
            experimental=item.get("stability") == "experimental",
            override=override,
            tolerated=tolerated,
        )
        side = self.old if removed else self.new
        self.changes.append(Change(rule_id, path, message, side.place(path), verdict))


def items_of(value: Any) -> Iterator[Data]:
    """Every JSON object that is an item (has a path), outer before inner."""
    if isinstance(value, Mapping):
        if "path" in value:
            yield value
        for part in value.values():
            yield from items_of(part)
    elif isinstance(value, list):
        for part in value:
            yield from items_of(part)


def by_name(items: list[Data]) -> dict[str, Data]:
    """Items of a list by name."""
    return {item["name"]: item for item in items}


def matched(old: list[Data], new: list[Data]) -> tuple[list[Data], list[Data], list[tuple[Data, Data]]]:
    """Items removed, items added, and pairs of the same name, each in order."""
    before, after = by_name(old), by_name(new)
    removed = [item for name, item in before.items() if name not in after]
    added = [item for name, item in after.items() if name not in before]
    return removed, added, [(item, after[name]) for name, item in before.items() if name in after]
