"""First floor of validation: which keys an item may and must have, and what a single value looks like.

Shapes are data (:mod:`codegen.notation` has the whole file's); this module holds their kinds and the walk.
No cross-references are looked at here. Guarantees: after :func:`check_spec` every item that is left has all
its required keys and only known keys, and every scalar has the spelling its shape asks for; items with a
fault are cut out (so that one fault makes one finding and the next floor can go on with the rest) and their
names kept in ``Shaped.dropped``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from . import values
from .findings import Findings, Location, Rule, alternatives, did_you_mean
from .source import Entry, Mapping, Node, Scalar, Sequence, kind_of

RULES: Final = (
    *(
        Rule(f"shape.{name}", purpose, advice)
        for name, purpose, advice in (
            ("unknown-key", "An item has only keys that mean something.", "Use one of the valid keys."),
            ("missing-key", "An item says everything it must.", "Add the key."),
            (
                "kind",
                "A value is of the right kind: a mapping, a list or a single value.",
                "Rewrite the value.",
            ),
            ("value", "A single value is spelled as its key asks.", "Use one of the valid forms."),
            ("choice", "An item is exactly one of several alternatives.", "Keep exactly one of the keys."),
        )
    ),
    Rule("name.case", "A name is spelled as its section asks.", "Rename the item."),
)


@dataclass(frozen=True, slots=True)
class Context:
    """Where the walk is, in the reader's words, and where findings go."""

    findings: Findings
    item: str = ""

    def inside(self, label: str) -> Context:
        """The context of something inside the present item."""
        return Context(self.findings, f"{self.item}, {label}" if self.item else label)

    def error(self, rule: str, location: Location, message: str, hint: str = "") -> None:
        """Record an error of the present item."""
        self.findings.error(rule, location, message, item=self.item, hint=hint)


class Shape:
    """What a value may look like. ``check`` records findings and says whether the value is usable."""

    def check(self, node: Node, context: Context) -> bool:
        """Whether ``node`` has this shape; every fault is a finding."""
        raise NotImplementedError

    def describe(self) -> str:
        """The shape in the words of an error message."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Leaf(Shape):
    """A single value whose text satisfies ``test``. ``blank`` permits an empty quoted text."""

    what: str
    test: Callable[[str], object]
    choices: tuple[str, ...] = ()

    def check(self, node: Node, context: Context) -> bool:
        if not isinstance(node, Scalar):
            context.error("shape.kind", node.location, f"{kind_of(node)} where {self.what} is needed")
            return False
        if node.is_blank:
            context.error("shape.kind", node.location, f"nothing where {self.what} is needed")
            return False
        if self.test(node.text):
            return True
        hint = alternatives(node.text, self.choices, "values") if self.choices else ""
        context.error("shape.value", node.location, f"{node.text!r} is not {self.what}", hint)
        return False

    def describe(self) -> str:
        return self.what


def choice(*words: str) -> Leaf:
    """One of a closed set of words."""
    return Leaf("one of the valid values", frozenset(words).__contains__, words)


def pattern(what: str, expression: str) -> Leaf:
    """Text that matches ``expression`` from end to end."""
    return Leaf(what, re.compile(rf"(?:{expression})\Z").match)


TEXT: Final = Leaf("text", lambda text: True)
BOOLEAN: Final = Leaf("true or false", lambda text: text in ("true", "false"), ("true", "false"))
INTEGER: Final = Leaf("an integer such as 12 or 2^64-1", lambda text: values.parse_integer(text) is not None)
NUMBER: Final = Leaf("a number", lambda text: values.parse_number(text) is not None)
RANGE: Final = Leaf("a range such as 0..32 or 1..$limits.top_k", values.parse_range)
VERSION: Final = pattern("a version such as 1.0.0", r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")


@dataclass(frozen=True, slots=True)
class Anything(Shape):
    """Any tree: an example's values, a JSON body."""

    def check(self, node: Node, context: Context) -> bool:
        return True

    def describe(self) -> str:
        return "any value"


@dataclass(frozen=True, slots=True)
class ListOf(Shape):
    """A list of alike items."""

    item: Shape
    label: str = ""

    def check(self, node: Node, context: Context) -> bool:
        if not isinstance(node, Sequence):
            context.error("shape.kind", node.location, f"{kind_of(node)} where {self.describe()} is needed")
            return False
        good = True
        for number, item in enumerate(node, start=1):
            inner = context.inside(f"{self.label} {number}") if self.label else context
            good = self.item.check(item, inner) and good
        return good

    def describe(self) -> str:
        return f"a list of {self.item.describe()}"


@dataclass(frozen=True, slots=True)
class Either(Shape):
    """A shape per kind of node: a single value, a list, or a mapping."""

    scalar: Shape | None = None
    sequence: Shape | None = None
    mapping: Shape | None = None

    def check(self, node: Node, context: Context) -> bool:
        shape = self._for(node)
        if shape is None:
            context.error("shape.kind", node.location, f"{kind_of(node)} where {self.describe()} is needed")
            return False
        return shape.check(node, context)

    def _for(self, node: Node) -> Shape | None:
        if isinstance(node, Scalar):
            return self.scalar
        return self.sequence if isinstance(node, Sequence) else self.mapping

    def describe(self) -> str:
        shapes = (self.scalar, self.sequence, self.mapping)
        return " or ".join(shape.describe() for shape in shapes if shape is not None)


@dataclass(frozen=True, slots=True)
class Record(Shape):
    """A mapping with known keys. ``one_of`` names groups of keys of which exactly one must be there."""

    required: dict[str, Shape] = field(default_factory=dict)
    optional: dict[str, Shape] = field(default_factory=dict)
    one_of: tuple[tuple[str, ...], ...] = ()
    label: str = ""

    def check(self, node: Node, context: Context) -> bool:
        if not isinstance(node, Mapping):
            context.error("shape.kind", node.location, f"{kind_of(node)} where {self.describe()} is needed")
            return False
        inner = context.inside(self.label) if self.label else context
        good = True
        for entry in node:
            shape = self.shape_of(entry.key.text)
            if shape is None:
                good = False
                name = entry.key.text
                hint = alternatives(name, [*self.required, *self.optional], "keys")
                if isinstance(entry.value, Scalar) and entry.value.is_blank:
                    hint = "a comma ends a value inside {…}: put text with commas in quotes"
                inner.error("shape.unknown-key", entry.key.location, f"unknown key {name!r}", hint)
            elif not shape.check(entry.value, inner):
                good = False
        present = set(node.names())
        for key in self.required:
            if key not in present:
                good = False
                similar = did_you_mean(key, present - set(self.required) - set(self.optional))
                inner.error("shape.missing-key", node.location, f"the key {key!r} is missing", similar)
        return self._check_choices(node, inner) and good

    def _check_choices(self, node: Mapping, context: Context) -> bool:
        good = True
        for group in self.one_of:
            there = [entry.key for entry in node if entry.key.text in group]
            if len(there) != 1:
                good = False
                place = there[1].location if there else node.location
                found = " and ".join(repr(key.text) for key in there) or "none"
                hint = f"exactly one of: {', '.join(group)}"
                context.error("shape.choice", place, f"{found} of several alternatives", hint)
        return good

    def shape_of(self, key: str) -> Shape | None:
        """The shape of the value under ``key``; None for an unknown key."""
        return self.required.get(key) or self.optional.get(key)

    def describe(self) -> str:
        return f"a mapping with {', '.join(self.required)}" if self.required else "a mapping"


@dataclass(frozen=True, slots=True)
class Named(Shape):
    """A mapping of items by name. ``label`` is how one item is called ("frame")."""

    item: Shape
    label: str
    name: Leaf = TEXT

    def check(self, node: Node, context: Context) -> bool:
        if not isinstance(node, Mapping):
            context.error("shape.kind", node.location, f"{kind_of(node)} where {self.describe()} is needed")
            return False
        good = [self.check_entry(entry, context) for entry in node]  # every entry, so that all faults show
        return all(good)

    def check_entry(self, entry: Entry, context: Context) -> bool:
        """Check one item under its own label."""
        inner = context.inside(f"{self.label} {entry.key.text}")
        good = True
        if not self.name.test(entry.key.text):
            good = False
            message = f"the name {entry.key.text!r} is not {self.name.what}"
            inner.error("name.case", entry.key.location, message)
        return self.item.check(entry.value, inner) and good

    def describe(self) -> str:
        return f"a mapping of {self.label} names"


@dataclass(frozen=True, slots=True)
class Shaped:
    """The tree with faulty items cut out, and the names of those items by section."""

    tree: Mapping
    dropped: dict[str, frozenset[str]]


def check_spec(tree: Mapping, top: Record, findings: Findings) -> Shaped:
    """Check the whole file against ``top``: a record of sections, most of them :class:`Named`."""
    context = Context(findings)
    kept: list[Entry] = []
    dropped: dict[str, frozenset[str]] = {}
    for entry in tree:
        name = entry.key.text
        shape = top.shape_of(name)
        if shape is None:
            hint = alternatives(name, [*top.required, *top.optional], "sections")
            context.error("shape.unknown-key", entry.key.location, f"unknown section {name!r}", hint)
        elif isinstance(shape, Named) and isinstance(entry.value, Mapping):
            good = [item for item in entry.value if shape.check_entry(item, context)]
            kept.append(Entry(entry.key, Mapping(entry.value.location, tuple(good))))
            dropped[name] = frozenset(entry.value.names()) - {item.key.text for item in good}
        elif shape.check(entry.value, context.inside(f"section {name}")):
            kept.append(entry)
    missing = [name for name in top.required if name not in tree.names()]
    if missing:
        context.error("shape.missing-key", tree.location, f"missing sections: {', '.join(missing)}")
    return Shaped(Mapping(tree.location, tuple(kept)), dropped)
