"""YAML text → located tree.

Guarantees of a returned tree: every key and every value carries file, line and column; no mapping has a key
twice; there are no anchors, aliases, merge keys, tags, tabs, directives or second documents; nesting and
size are bounded. Scalars stay text: ``NO`` is the word NO, ``017`` three characters, ``1.0.0`` a version.
What a scalar means is decided by our own types (:mod:`codegen.resolve`), never by YAML's guess. Every
violation is a finding; none is a traceback.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from .findings import Findings, Location, Related, Rule

MAX_SOURCE_BYTES: Final = 4 * 1024 * 1024
"""A spec above this size is refused unread; the real one is far below."""

MAX_DEPTH: Final = 24
"""Deepest nesting of mappings and lists; the notation itself needs less than half of it."""

RULES: Final = tuple(
    Rule(f"source.{name}", purpose, advice)
    for name, purpose, advice in (
        ("unreadable", "The spec file exists and can be read.", "Check the path and the permissions."),
        ("size", "The spec file is of a sane size.", "Keep it below 4 MiB."),
        ("encoding", "The spec file is UTF-8 text.", "Save it as UTF-8 without control characters."),
        ("tab", "The spec file contains no tab.", "Indent and separate with spaces."),
        ("syntax", "The spec file is YAML.", "Fix the syntax at the place shown."),
        ("empty", "The spec file is not empty.", "Start from the sections listed in spec/README.md."),
        (
            "documents",
            "The spec file is one YAML document.",
            "Remove the '---' that starts another document.",
        ),
        ("directive", "The spec file has no YAML directives.", "Remove the line that starts with '%'."),
        ("anchor", "Nothing in the spec is anchored.", "Give the shared thing a name under types."),
        ("alias", "Nothing in the spec is an alias.", "Refer to a named item as $section.name."),
        ("merge-key", "Nothing in the spec is merged.", "Say it where it applies, or name it under types."),
        ("tag", "Nothing in the spec is tagged.", "Remove the tag; types come from the notation."),
        ("depth", "The spec nests to a bounded depth.", "Flatten the item."),
        ("key", "Every key is a plain word.", "Use a single word or a quoted string as key."),
        ("duplicate-key", "No mapping has the same key twice.", "Remove or rename one of the two."),
    )
)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A leaf: its text, and whether it was quoted or a block (``plain`` is False for both)."""

    location: Location
    text: str
    plain: bool

    @property
    def is_blank(self) -> bool:
        """Nothing was written: ``key:`` with no value."""
        return self.plain and self.text == ""

    def at(self, offset: int) -> Location:
        """Place of character ``offset`` of the text; exact for text written on one line without escapes."""
        return self.location.shifted(offset if self.plain else offset + 1)


@dataclass(frozen=True, slots=True)
class Entry:
    """One ``key: value`` of a mapping."""

    key: Scalar
    value: Node


@dataclass(frozen=True, slots=True)
class Mapping:
    """Keys and values in the order written."""

    location: Location
    entries: tuple[Entry, ...]

    def get(self, key: str) -> Node | None:
        """The value under ``key``, or None."""
        for entry in self.entries:
            if entry.key.text == key:
                return entry.value
        return None

    def entry(self, key: str) -> Entry | None:
        """The entry of ``key``, or None."""
        for entry in self.entries:
            if entry.key.text == key:
                return entry
        return None

    def names(self) -> list[str]:
        """Key texts in the order written."""
        return [entry.key.text for entry in self.entries]

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)


@dataclass(frozen=True, slots=True)
class Sequence:
    """Items in the order written."""

    location: Location
    items: tuple[Node, ...]

    def __iter__(self) -> Iterator[Node]:
        return iter(self.items)


Node = Scalar | Mapping | Sequence


def kind_of(node: Node) -> str:
    """What a node is, in the words of an error message."""
    if isinstance(node, Mapping):
        return "a mapping"
    if isinstance(node, Sequence):
        return "a list"
    return "nothing" if node.is_blank else "a single value"


def read_text(path: Path, name: str, findings: Findings) -> str | None:
    """The text of ``path``, reported as ``name``; None with findings when it is unusable."""
    start = Location(name)
    try:
        size = path.stat().st_size
        if size > MAX_SOURCE_BYTES:
            message = f"the file has {size} bytes; at most {MAX_SOURCE_BYTES} are read"
            findings.error("source.size", start, message)
            return None
        raw = path.read_bytes()
    except OSError as error:
        findings.error("source.unreadable", start, f"cannot read the file: {error.strerror}")
        return None
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
        message = f"byte 0x{raw[error.start]:02x} is not UTF-8"
        findings.error("source.encoding", Location(name, line, column), message)
        return None


def load_tree(text: str, name: str, findings: Findings) -> Mapping | None:
    """Parse ``text`` into a tree whose top is a mapping.

    Findings are added to ``findings``; None is returned when there is no usable tree. Duplicate keys,
    anchors, tags and the like are findings too but leave the rest of the tree usable, so that later floors
    can report as well.
    """
    for number, line in enumerate(text.split("\n"), start=1):
        if "\t" in line:
            findings.error("source.tab", Location(name, number, line.index("\t") + 1), "a tab character")
    if findings.has_errors:
        return None  # YAML's own complaints about the same tab would only confuse
    builder = _Builder(name, findings)
    try:
        top = builder.document(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Location(name, mark.line + 1, mark.column + 1) if mark else Location(name)
        context = f" ({error.context})" if error.context else ""
        findings.error("source.syntax", place, f"not YAML: {error.problem}{context}")
        return None
    except yaml.reader.ReaderError as error:
        findings.error("source.encoding", _place_of(text, name, error.position), f"not text: {error.reason}")
        return None
    except _Stop:
        return None
    if top is None or (isinstance(top, Scalar) and top.is_blank):
        findings.error("source.empty", Location(name), "the file says nothing")
        return None
    if not isinstance(top, Mapping):
        message = f"the top of the file is {kind_of(top)}; a mapping is needed"
        findings.error("source.syntax", top.location, message)
        return None
    return top


def load_file(path: Path, findings: Findings, name: str | None = None) -> Mapping | None:
    """:func:`read_text`, then :func:`load_tree`; ``name`` is what locations call the file (default: the
    path).
    """
    shown = name if name is not None else path.as_posix()
    text = read_text(path, shown, findings)
    return None if text is None else load_tree(text, shown, findings)


def _place_of(text: str, name: str, position: int) -> Location:
    before = text[:position]
    return Location(name, before.count("\n") + 1, position - before.rfind("\n"))


class _Stop(Exception):
    """The document cannot be used further; the reason is already a finding."""


class _Builder:
    """Builds the tree from parser events, because only events still show anchors, tags and repeated keys."""

    def __init__(self, name: str, findings: Findings) -> None:
        self._name = name
        self._findings = findings
        self._events: Iterator[Any] = iter(())

    def document(self, text: str) -> Node | None:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self._events = yaml.parse(text, Loader=loader)
        top: Node | None = None
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                place = self._place(event)
                if event.version or event.tags:
                    self._findings.error("source.directive", place, "a YAML directive")
                if documents > 1:
                    self._findings.error("source.documents", place, "a second document starts here")
                    raise _Stop
                top = self._node(next(self._events), 1)
        return top

    def _place(self, event: Any) -> Location:
        return Location(self._name, event.start_mark.line + 1, event.start_mark.column + 1)

    def _node(self, event: Any, depth: int) -> Node:
        place = self._place(event)
        if depth > MAX_DEPTH:
            self._findings.error("source.depth", place, f"nested deeper than {MAX_DEPTH} levels")
            raise _Stop
        if isinstance(event, yaml.AliasEvent):
            self._findings.error("source.alias", place, f"the alias *{event.anchor}")
            return Scalar(place, f"*{event.anchor}", False)
        if event.anchor is not None:
            self._findings.error("source.anchor", place, f"the anchor &{event.anchor}")
        if event.tag is not None:
            self._findings.error("source.tag", place, f"the tag {event.tag}")
        if isinstance(event, yaml.ScalarEvent):
            return Scalar(place, event.value, event.style in (None, ""))
        if isinstance(event, yaml.SequenceStartEvent):
            return Sequence(place, tuple(self._items(depth)))
        return Mapping(place, tuple(self._entries(depth)))

    def _items(self, depth: int) -> Iterator[Node]:
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            yield self._node(event, depth + 1)

    def _entries(self, depth: int) -> Iterator[Entry]:
        seen: dict[str, Location] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._node(event, depth + 1)
            value = self._node(next(self._events), depth + 1)
            if not isinstance(key, Scalar):
                self._findings.error("source.key", key.location, f"a key that is {kind_of(key)}")
                continue
            if key.plain and key.text == "<<":
                self._findings.error("source.merge-key", key.location, "a merge key '<<'")
                continue
            if key.is_blank and not isinstance(event, yaml.AliasEvent):
                self._findings.error("source.key", key.location, "a key that is nothing")
                continue
            if key.text in seen:
                self._findings.error(
                    "source.duplicate-key",
                    key.location,
                    f"the key {key.text!r} is already defined in this mapping",
                    related=(Related("previous definition", seen[key.text]),),
                )
                continue
            seen[key.text] = key.location
            yield Entry(key, value)
