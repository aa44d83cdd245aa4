"""Old model × new model → changes, each judged.

The handlers of :mod:`codegen.compare_wire` and :mod:`codegen.compare_http` see pairs of items only and stay
short; here are the checks of the whole. Guarantee: no difference goes unseen — one that no handler speaks
for is reported as ``compat.unclassified``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from . import compare_http, compare_wire
from .changes import Change, Comparison, Data, Snapshot
from .compat import COMPAT_RULES, Effect
from .fingerprint import PROSE
from .lint import version_of


def compare(old: Snapshot, new: Snapshot) -> list[Change]:
    """All changes from ``old`` to ``new``, worst first."""
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
