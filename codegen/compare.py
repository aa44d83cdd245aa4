"""Old model × new model → changes, each judged.

Both sides are plain JSON values (a frozen release, a revision, the present spec), matched item by item; the
handlers of :mod:`codegen.compare_wire` and :mod:`codegen.compare_http` see pairs only and stay short.
Guarantees: no difference goes unseen — one that no handler speaks for is reported as
``compat.unclassified``; a change points at the new file, a removal at the old one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from .compat import COMPAT_RULES, Effect, Verdict, judge
from .findings import Location
from .fingerprint import PROSE, plain
from .lint import version_of, walk
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


def compare(old: Snapshot, new: Snapshot) -> list[Change]:
    """All changes from ``old`` to ``new``, worst first."""
    from . import compare_http, compare_wire

    comparison = Comparison(old, new)
    for handler in (*compare_wire.HANDLERS, *compare_http.HANDLERS):
        handler(comparison)
    _stability_and_prose(comparison)
    _deprecations(comparison)
    _unclassified(comparison)
    _versions(comparison)
    unique = {(change.rule, change.item, change.message): change for change in comparison.changes}
    return sorted(unique.values(), key=Change.sort_key)


_NORMATIVE: Final = re.compile(r"\b(must|never|always|exactly|only)\b", re.IGNORECASE)
_SENTENCE_END: Final = re.compile(r"(?<=[.;:])\s+")


def normative(text: str) -> set[str]:
    """Sentences of a doc that promise something."""
    return {sentence for sentence in _SENTENCE_END.split(text) if _NORMATIVE.search(sentence)}


def _stability_and_prose(comparison: Comparison) -> None:
    inherited = {path for path in comparison.old_items if path.startswith("types.")}
    for path, old in comparison.old_items.items():
        new = comparison.new_items.get(path)
        if new is None:
            continue
        if old["stability"] != new["stability"]:
            raised = new["stability"] == "stable"
            rule = "frame.stability-raised" if raised else "frame.stability-lowered"
            comparison.add(rule, path, f"{old['stability']} → {new['stability']}")
        if _is_type_doc(old) and path not in inherited:
            continue
        for key in ("doc", "cause", "remedy", "holds"):
            before, after = str(old.get(key) or ""), str(new.get(key) or "")
            if before != after:
                promised = normative(before) != normative(after)
                rule = "doc.normative-text-changed" if promised else "doc.text-changed"
                comparison.add(rule, path, f"{key}: {before!r} → {after!r}")


def _is_type_doc(item: Data) -> bool:
    """Whether the doc of a field is only that of its type; then the change is told once, at the type."""
    wire_type = item.get("type")
    return isinstance(wire_type, Mapping) and wire_type.get("doc") == item.get("doc")


def _deprecations(comparison: Comparison) -> None:
    version = version_of(comparison.new.data["protocol"]["version"])
    for path, old in comparison.old_items.items():
        new = comparison.new_items.get(path)
        gone = old["deprecated"]
        if new is not None and gone is None and new["deprecated"] is not None:
            comparison.add("key.deprecated", path, "is deprecated now")
        promised = gone["remove_in"] if gone is not None else None
        if new is None and promised is not None and version_of(promised) > version:
            message = f"removed before {promised}, the version its deprecation names"
            comparison.add("deprecation.window-short", path, message, removed=True)


_DECIDED: Final = PROSE | {"since", "stability", "deprecated", "path", "name", "text", "layout", "version"}
"""Keys of an item that other checks speak for. (A layout is compared word by word.)"""


def own_attributes(item: Data) -> dict[str, Any]:
    """What an item promises by itself: its attributes without prose and without the items inside it."""
    by_limit = {"high"} if item.get("high_limit") is not None else set()
    return {key: _without_items(value) for key, value in item.items() if key not in _DECIDED | by_limit}


def _without_items(value: Any) -> Any:
    if isinstance(value, Mapping):
        return None if "path" in value else {key: _without_items(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_without_items(part) for part in value if not (isinstance(part, Mapping) and "path" in part)]
    return value


_TOLD_ELSEWHERE: Final = (
    "types.",  # by the fields that have the type
    "faults.",  # by the examples that must raise them
    "hooks.",  # by the orders they are steps of
    "objects.",  # by the answers and requests that lead to them
    "families.capabilities.",  # by the families that have them
    "request.events.",  # by the transitions they cause
    "connection.events.",
    "request.states.",
    "connection.states.",
    "http.ids.",  # a new form of id is no promise to anyone yet
)
"""Items that may come and go without a word of their own."""


def _unclassified(comparison: Comparison) -> None:
    """Report every difference that no rule has spoken for."""
    spoken = {change.item for change in comparison.changes if not change.rule.startswith("doc.")}
    known = spoken | comparison.covered
    for path, old in comparison.old_items.items():
        new = comparison.new_items.get(path)
        inside = any(item.startswith(path + ".") for item in spoken)
        if new is None or path.startswith("types.") or path in known or inside:
            continue
        before, after = own_attributes(old), own_attributes(new)
        for key in sorted({*before, *after}):
            if before.get(key) != after.get(key):
                message = f"{key}: {before.get(key)!r} → {after.get(key)!r}"
                comparison.add("compat.unclassified", path, message)
    one_sided = comparison.old_items.keys() ^ comparison.new_items.keys()
    whole = known & (one_sided | comparison.covered)
    for path in sorted(one_sided):
        if not path.startswith(_TOLD_ELSEWHERE) and not whole.intersection([path, *_around(path)]):
            gone = path in comparison.old_items
            comparison.add("compat.unclassified", path, "removed" if gone else "added", removed=gone)


def _around(path: str) -> Iterator[str]:
    """Paths of the items around an item, inner first."""
    while "." in path:
        path = path.rpartition(".")[0]
        yield path


def _versions(comparison: Comparison) -> None:
    before_text = comparison.old.data["protocol"]["version"]
    after_text = comparison.new.data["protocol"]["version"]
    before, after = version_of(before_text), version_of(after_text)
    if after < before:
        comparison.add("version.decreased", "protocol", f"{before_text} → {after_text}")
        return
    worst = max((change.verdict.level for change in comparison.changes), default=Effect.SAFE)
    additions = any(COMPAT_RULES[change.rule].addition for change in comparison.changes)
    if worst is Effect.BREAKING and after[0] == before[0]:
        message = f"there are breaking changes since {before_text}; {after_text} needs a new major number"
        comparison.add("version.not-bumped", "protocol", message)
    elif (additions or worst is Effect.DANGEROUS) and after[:2] == before[:2]:
        what = "additions or dangerous changes"
        message = f"there are {what} since {before_text}; {after_text} needs a new minor number"
        comparison.add("version.not-bumped", "protocol", message)
    _since(comparison, after_text)


_CANNOT_SAY_SINCE: Final = ("request.states.", "connection.states.", "objects.", "hooks.")


def _since(comparison: Comparison, version: str) -> None:
    """The outermost of new items must say the version they are new in."""
    added = {path for path in comparison.new_items if path not in comparison.old_items}
    for path in added:
        around = path.rpartition(".")[0]
        outermost = not any(around == other or around.startswith(other + ".") for other in added)
        since = comparison.new_items[path]["since"]
        if outermost and since != version and not path.startswith(_CANNOT_SAY_SINCE):
            comparison.add("version.since-mismatch", path, f"new in {version}, but it says since {since}")
