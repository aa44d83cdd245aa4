"""What the resolving modules share: access to shaped nodes, common keys of an item, references.

Guarantees: values handed out are immutable; an unknown reference is one finding at its own column, listing
what exists; a reference to an item that was cut out for a fault of its own is silent, because that fault is
reported already.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, TypedDict

from . import values
from .findings import Findings, Location, Related, Rule, alternatives
from .model import Deprecation, JsonValue
from .source import Entry, Node, Scalar, Sequence
from .source import Mapping as Tree

FIRST_RELEASE: Final = "1.0.0"
"""The version an item without `since` belongs to."""

_EMPTY: Final = Tree(Location(""), ())

RULES: Final = tuple(
    Rule(f"resolve.{name}", purpose, advice)
    for name, purpose, advice in (
        ("unknown-reference", "A reference names an item that exists.", "Use one of the listed names."),
        ("range", "A range has its lower end first.", "Swap or correct the ends."),
    )
)


class Frozen(dict[str, Any]):
    """A dict that refuses to change, so that the model stays immutable and still prints as JSON."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("the model is immutable")

    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.items()))


def freeze(value: values.Json) -> JsonValue:
    """Lists become tuples, objects become :class:`Frozen`."""
    if isinstance(value, list):
        return tuple(freeze(part) for part in value)
    if isinstance(value, dict):
        return Frozen({key: freeze(part) for key, part in value.items()})
    return value


class ItemKeys(TypedDict):
    """The keys every item of the model has."""

    path: str
    name: str
    doc: str
    location: Location
    since: str
    stability: Any
    deprecated: Deprecation | None
    allow: Mapping[str, str]


def as_tree(node: Node | None) -> Tree:
    """The mapping ``node`` is; an empty one for anything else."""
    return node if isinstance(node, Tree) else _EMPTY


def as_items(node: Node | None) -> tuple[Node, ...]:
    """The items of the list ``node`` is; a single value counts as a list of one; nothing is an empty list."""
    if isinstance(node, Sequence):
        return node.items
    return (node,) if isinstance(node, Scalar) else ()


def as_scalar(node: Node | None) -> Scalar | None:
    """The single value ``node`` is, or None."""
    return node if isinstance(node, Scalar) else None


def text_of(tree: Tree, key: str, default: str = "") -> str:
    """Text under ``key``."""
    node = tree.get(key)
    return node.text if isinstance(node, Scalar) else default


def optional_text(tree: Tree, key: str) -> str | None:
    """Text under ``key``; None when it is absent or a plain ``null``."""
    node = tree.get(key)
    if not isinstance(node, Scalar) or (node.plain and node.text == "null"):
        return None
    return node.text


def flag_of(tree: Tree, key: str, default: bool = False) -> bool:
    """Whether ``key`` says true."""
    return text_of(tree, key, "true" if default else "false") == "true"


def integer_of(tree: Tree, key: str) -> int | None:
    """Integer under ``key``, or None."""
    return values.parse_integer(text_of(tree, key))


def texts_of(tree: Tree, key: str) -> tuple[str, ...]:
    """Texts of the list under ``key``."""
    return tuple(item.text for item in as_items(tree.get(key)) if isinstance(item, Scalar))


def item_keys(entry: Entry, path: str, doc: str = "", parent: ItemKeys | None = None) -> ItemKeys:
    """The common keys of the item written at ``entry``.

    ``doc`` is what it says when it has none of its own; stability and since come from ``parent``.
    """
    tree = as_tree(entry.value)
    deprecated = tree.get("deprecated")
    gone = as_tree(deprecated)
    allow = {
        rule.key.text: rule.value.text
        for rule in as_tree(tree.get("allow"))
        if isinstance(rule.value, Scalar)
    }
    return ItemKeys(
        path=path,
        name=entry.key.text,
        doc=" ".join(text_of(tree, "doc", doc).split()),
        location=entry.key.location,
        since=text_of(tree, "since", parent["since"] if parent else FIRST_RELEASE),
        stability=text_of(tree, "stability", parent["stability"] if parent else "stable"),
        deprecated=None
        if deprecated is None
        else Deprecation(
            replaced_by=optional_text(gone, "replaced_by"),
            since=text_of(gone, "since"),
            remove_in=optional_text(gone, "remove_in"),
            note=text_of(gone, "note"),
        ),
        allow=Frozen(allow),
    )


def absent(section: str) -> Entry:
    """Stand-in for a section the file does not have; what follows from it is empty."""
    place = Location(section)
    return Entry(Scalar(place, section, True), Tree(place, ()))


@dataclass(slots=True)
class Scope:
    """Findings, the shaped tree, and the numbers references may name."""

    findings: Findings
    tree: Tree
    dropped: Mapping[str, frozenset[str]]
    numbers: dict[str, dict[str, int | float]] = field(default_factory=dict)

    def section(self, name: str) -> Tree:
        """The mapping of section ``name``; empty when it is absent."""
        return as_tree(self.tree.get(name))

    def names(self, section: str) -> set[str]:
        """Names of the items of a section, those cut out included."""
        return set(self.section(section).names()) | self.dropped.get(section, frozenset())

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
        self.findings.error(rule, location, message, item=item, hint=hint, related=related)

    def expect(self, node: Scalar, known: Iterable[str], what: str, item: str) -> bool:
        """Whether ``node`` names one of ``known``; a finding otherwise. ``what`` is the plural of the thing
        named.
        """
        known = set(known)
        if node.text in known:
            return True
        hint = alternatives(node.text, known, what)
        message = f"{node.text!r} is none of the {what}"
        self.error("resolve.unknown-reference", node.location, message, item=item, hint=hint)
        return False

    def expect_all(self, node: Node | None, known: Iterable[str], what: str, item: str) -> tuple[str, ...]:
        """The texts of a list (or of a single value) that name one of ``known``; a finding for each that
        does not.
        """
        known = set(known)
        leaves = [leaf for leaf in as_items(node) if isinstance(leaf, Scalar)]
        return tuple(leaf.text for leaf in leaves if self.expect(leaf, known, what, item))

    def bound(self, bound: values.Bound, location: Location, item: str) -> int | float | None:
        """The number of one end of a range; None for ``max``, for facts of the server and for an unknown
        reference.
        """
        if isinstance(bound, int | float):
            return bound
        if isinstance(bound, str) or bound.section == "server":
            return None
        known = self.numbers.get(bound.section)
        if known is None:
            message = f"a range cannot refer to the section {bound.section!r}"
            hint = alternatives(bound.section, [*self.numbers, "server"], "sections")
            self.error("resolve.unknown-reference", location, message, item=item, hint=hint)
            return None
        if bound.name in known:
            return known[bound.name]
        if bound.name not in self.dropped.get(bound.section, frozenset()):
            self.error(
                "resolve.unknown-reference",
                location,
                f"there is no {bound}",
                item=item,
                hint=alternatives(bound.name, known, bound.section),
            )
        return None

    def range(self, node: Scalar | None, item: str) -> Range:
        """Both ends of a range, with where the upper one comes from."""
        parsed = values.parse_range(node.text) if node is not None else None
        if node is None or parsed is None:
            return Range(None, None, None)
        low = self.bound(parsed.low, node.location, item)
        high = self.bound(parsed.high, node.at(parsed.high_offset), item)
        if low is not None and high is not None and low > high:
            message = f"the range {node.text!r} is empty: {low} is above {high}"
            self.error("resolve.range", node.location, message, item=item)
        source = None
        if isinstance(parsed.high, values.Reference):
            source = str(parsed.high)[1:] if parsed.high.section == "server" else parsed.high.name
        return Range(low, high, source)


@dataclass(frozen=True, slots=True)
class Range:
    """Resolved ends; None is open. ``high_from``: the limit (or ``server.FACT``) behind the upper end."""

    low: int | float | None
    high: int | float | None
    high_from: str | None
