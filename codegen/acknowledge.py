"""Acknowledgements, and the report of a comparison.

``spec/acknowledged.yaml`` lists accepted changes: rule, exact item, reason, and the version they go into.
Guarantees: an acknowledgement silences one dangerous or breaking change and nothing else; it is an error
when it silences nothing, when its version has been released (the baseline moved on), or when its rule can
never be acknowledged.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .changes import Change
from .compat import COMPAT_RULES, Effect
from .findings import Finding, Findings, Level, Location, Rule, alternatives
from .lint import spoken, version_of
from .scope import as_tree, text_of
from .shape import TEXT, VERSION, Context, Leaf, ListOf, Record
from .source import Scalar, Sequence, load_file

RULES: Final = (
    Rule("ack.unused", "An acknowledgement accepts a change that exists.", "Remove it."),
    Rule("ack.expired", "An acknowledgement ends with the release it was made for.", "Remove it."),
    Rule("ack.unknown-rule", "An acknowledgement names a rule of the catalogue.", "Correct the id."),
    Rule("ack.never", "Some changes can never be accepted.", "Undo the change; `explain RULE` says why."),
)

_SHAPE: Final = Record(
    {
        "acknowledged": ListOf(
            Record({"rule": TEXT, "item": TEXT, "reason": Leaf("a reason", str.strip), "version": VERSION}),
            "entry",
        )
    }
)


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """One accepted change."""

    rule: str
    item: str
    reason: str
    version: str
    location: Location


def load_acknowledgements(path: Path, name: str, findings: Findings) -> tuple[Acknowledgement, ...]:
    """The entries of ``path``; none when the file does not exist. Faults are findings."""
    if not path.exists():
        return ()
    tree = load_file(path, findings, name)
    if tree is None or not _SHAPE.check(tree, Context(findings, "acknowledgements")):
        return ()
    entries = tree.get("acknowledged")
    found = []
    for entry in entries.items if isinstance(entries, Sequence) else ():
        inner = as_tree(entry)
        rule = inner.get("rule")
        place = rule.location if isinstance(rule, Scalar) else entry.location
        found.append(
            Acknowledgement(
                text_of(inner, "rule"),
                text_of(inner, "item"),
                text_of(inner, "reason"),
                text_of(inner, "version"),
                place,
            )
        )
    return tuple(found)


def report(
    changes: Iterable[Change],
    acknowledgements: Iterable[Acknowledgement],
    baseline_version: str,
    findings: Findings,
) -> None:
    """Add every change to ``findings``: unaccepted breaking and dangerous ones as errors, the rest as
    notes.
    """
    given = {(entry.rule, entry.item): entry for entry in acknowledgements}
    used: set[tuple[str, str]] = set()
    for change in changes:
        rule, verdict = COMPAT_RULES[change.rule], change.verdict
        entry = given.get((change.rule, change.item))
        accepted = (
            entry is not None and not rule.hard and version_of(entry.version) > version_of(baseline_version)
        )
        if entry is not None:
            used.add((entry.rule, entry.item))
        told = f"{verdict.level}: {change.message}"
        if verdict.level is not Effect.SAFE and set(rule.classes) & {"W", "S"}:
            told += f" (old writers {verdict.back}, old readers {verdict.fwd})"
        if accepted and entry is not None:
            told += f"; accepted: {entry.reason}"
        hint = "" if verdict.level is Effect.SAFE or accepted else rule.advice
        level = Level.NOTE if accepted or verdict.level is Effect.SAFE else Level.ERROR
        findings.add(Finding(change.rule, level, told, change.location, spoken(change.item), hint))
    for entry in given.values():
        _judge(entry, used, baseline_version, findings)


def _judge(entry: Acknowledgement, used: set[tuple[str, str]], baseline: str, findings: Findings) -> None:
    item = spoken(entry.item)
    if entry.rule not in COMPAT_RULES:
        hint = alternatives(
            entry.rule, [rule for rule in COMPAT_RULES if rule[:3] == entry.rule[:3]], "rules"
        )
        findings.error(
            "ack.unknown-rule", entry.location, f"there is no rule {entry.rule!r}", item=item, hint=hint
        )
    elif COMPAT_RULES[entry.rule].hard:
        findings.error("ack.never", entry.location, f"{entry.rule} can never be accepted", item=item)
    elif version_of(entry.version) <= version_of(baseline):
        message = f"it was for {entry.version}, and the baseline is {baseline}"
        findings.error("ack.expired", entry.location, message, item=item, hint="remove it")
    elif (entry.rule, entry.item) not in used:
        findings.error(
            "ack.unused",
            entry.location,
            f"there is no change {entry.rule} of it",
            item=item,
            hint="remove it",
        )
