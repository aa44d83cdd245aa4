"""Findings: what the compiler has to say, all of it, each with a place.

Guarantees: a finding names its rule, its level, an exact file:line:column, the item it is about and what to
do; a run collects every finding before anything is reported; the order of a report depends only on the
findings (file, line, column, rule, message), never on the order in which checks happened to run; exact
repeats are dropped.
"""

from __future__ import annotations

import difflib
import enum
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field


class Level(enum.Enum):
    """How bad a finding is. Only errors stop a run; warnings and notes are printed."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A place in a file. Line and column count from 1; columns count characters, not bytes."""

    file: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def shifted(self, columns: int) -> Location:
        """The place ``columns`` characters further right on the same line."""
        return Location(self.file, self.line, self.column + columns)


@dataclass(frozen=True, slots=True)
class Related:
    """A second place that helps to understand a finding, for example a previous definition."""

    note: str
    location: Location


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to say.

    ``item`` reads as the reader thinks of it ("frame ECHO, field k"); ``hint`` says what to do or lists what
    would be valid; ``related`` points at other places involved.
    """

    rule: str
    level: Level
    message: str
    location: Location
    item: str = ""
    hint: str = ""
    related: tuple[Related, ...] = ()

    def sort_key(self) -> tuple[Location, str, str]:
        """Order of a report: place first, then rule, then text."""
        return (self.location, self.rule, self.message)

    def headline(self) -> str:
        """The message with its item in front: ``in frame ECHO, field k: …``."""
        return f"in {self.item}: {self.message}" if self.item else self.message


@dataclass(frozen=True, slots=True)
class Rule:
    """A check of the compiler: stable id by segments, its purpose and what to do about a finding."""

    id: str
    purpose: str
    advice: str = ""
    level: Level = Level.ERROR


class SpecRejected(Exception):
    """The spec has at least one error; ``findings`` holds everything found, sorted."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        super().__init__(render_text(findings))


@dataclass(slots=True)
class Findings:
    """A collector. Checks add to it and go on; the caller asks at a boundary whether to stop."""

    _found: dict[Finding, None] = field(default_factory=dict)

    def add(self, finding: Finding) -> None:
        """Record one finding; an exact repeat is dropped."""
        self._found.setdefault(finding)

    def error(
        self,
        rule: str,
        location: Location,
        message: str,
        *,
        item: str = "",
        hint: str = "",
        related: tuple[Related, ...] = (),
    ) -> None:
        """Record an error."""
        self.add(Finding(rule, Level.ERROR, message, location, item, hint, related))

    def warning(self, rule: str, location: Location, message: str, *, item: str = "", hint: str = "") -> None:
        """Record a warning: printed, never fatal."""
        self.add(Finding(rule, Level.WARNING, message, location, item, hint))

    def __iter__(self) -> Iterator[Finding]:
        return iter(sorted(self._found, key=Finding.sort_key))

    def __len__(self) -> int:
        return len(self._found)

    @property
    def has_errors(self) -> bool:
        """Whether anything found must stop the run."""
        return any(finding.level is Level.ERROR for finding in self._found)

    def raise_if_errors(self) -> None:
        """Raise :class:`SpecRejected` with everything found so far if any of it is an error."""
        if self.has_errors:
            raise SpecRejected(self)

    def count(self, level: Level) -> int:
        """How many findings have this level."""
        return sum(finding.level is level for finding in self._found)


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """The closest candidate as ``did you mean 'x'?``, or an empty string when nothing is close."""
    close = difflib.get_close_matches(word, sorted(candidates), n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else ""


def alternatives(word: str, candidates: Iterable[str], what: str) -> str:
    """Hint for a wrong word: the closest candidate, then the whole list (``valid <what>: a, b, c``)."""
    known = sorted(set(candidates))
    listing = f"valid {what}: {', '.join(known)}" if known else f"there are no {what} to choose from"
    return " ".join(part for part in (did_you_mean(word, known), listing) if part)


def render_text(findings: Iterable[Finding]) -> str:
    """Human form: one line per finding, indented lines for its hint and related places; empty without
    findings.
    """
    lines: list[str] = []
    for finding in findings:
        lines.append(f"{finding.location}: {finding.level.value}[{finding.rule}]: {finding.headline()}")
        if finding.hint:
            lines.append(f"    {finding.hint}")
        lines.extend(f"    {related.note}: {related.location}" for related in finding.related)
    return "".join(f"{line}\n" for line in lines)


def _as_json(finding: Finding) -> Mapping[str, object]:
    return {
        "rule": finding.rule,
        "level": finding.level.value,
        "file": finding.location.file,
        "line": finding.location.line,
        "column": finding.location.column,
        "item": finding.item,
        "message": finding.message,
        "hint": finding.hint,
        "related": [
            {
                "note": related.note,
                "file": related.location.file,
                "line": related.location.line,
                "column": related.location.column,
            }
            for related in finding.related
        ],
    }


def render_json(findings: Iterable[Finding]) -> str:
    """Machine form: one JSON document ``{"findings": [...], "errors": n, "warnings": n}``."""
    found = list(findings)
    document = {
        "findings": [_as_json(finding) for finding in found],
        "errors": sum(finding.level is Level.ERROR for finding in found),
        "warnings": sum(finding.level is Level.WARNING for finding in found),
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


_GITHUB_COMMAND = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "notice"}


def _github_escape(text: str, *, property_value: bool = False) -> str:
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return escaped.replace(":", "%3A").replace(",", "%2C") if property_value else escaped


def render_github(findings: Iterable[Finding]) -> str:
    """Workflow-annotation form: one ``::error file=…,line=…,col=…,title=…::message`` line per finding."""
    lines = []
    for finding in findings:
        place = finding.location
        text = finding.headline()
        if finding.hint:
            text += f"\n{finding.hint}"
        for related in finding.related:
            text += f"\n{related.note}: {related.location}"
        lines.append(
            f"::{_GITHUB_COMMAND[finding.level]} file={_github_escape(place.file, property_value=True)},"
            f"line={place.line},col={place.column},title={_github_escape(finding.rule, property_value=True)}"
            f"::{_github_escape(text)}\n"
        )
    return "".join(lines)


RENDERERS = {"text": render_text, "json": render_json, "github": render_github}
"""Output formats of the command line, by name."""
