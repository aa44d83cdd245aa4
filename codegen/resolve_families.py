"""Resolves what an engine can do and what its chats look like: capabilities, markup, families.

Guarantees: a family has capabilities that exist; where its stops name markers, it holds their texts. Whether
its template has a markup is left to lint, so that specs of before 1.1.0 can still be compared with.
"""

from __future__ import annotations

from typing import Any

from . import values
from .findings import alternatives
from .model import Capability, Family, Marker, Markup
from .scope import Scope, as_items, as_tree, item_keys, text_of, texts_of
from .source import Scalar


def resolve_capabilities(scope: Scope) -> tuple[Capability, ...]:
    """What an engine family may be able to do."""
    section = as_tree(scope.section("families").get("capabilities"))
    return tuple(
        Capability(**item_keys(entry, f"families.capabilities.{entry.key.text}")) for entry in section
    )


def resolve_markup(scope: Scope) -> tuple[Markup, ...]:
    """The markers of each template; they are as old as their markup unless they say otherwise."""
    found = []
    for entry in scope.section("markup"):
        path = f"markup.{entry.key.text}"
        keys = item_keys(entry, path)
        markers = tuple(
            Marker(
                **item_keys(part, f"{path}.markers.{part.key.text}", parent=keys),
                text=text_of(as_tree(part.value), "text"),
            )
            for part in as_tree(as_tree(entry.value).get("markers"))
        )
        found.append(Markup(**keys, markers=markers))
    return tuple(found)


def resolve_families(
    scope: Scope, capabilities: tuple[Capability, ...], markup: tuple[Markup, ...]
) -> tuple[Family, ...]:
    """Model families."""
    known = [capability.name for capability in capabilities]
    texts = {kind.name: {marker.name: marker.text for marker in kind.markers} for kind in markup}
    found = []
    for entry in as_tree(scope.section("families").get("members")):
        tree, name = as_tree(entry.value), entry.key.text
        template = text_of(tree, "template")
        found.append(
            Family(
                **item_keys(entry, f"families.members.{name}"),
                model_types=texts_of(tree, "model_types"),
                can=scope.expect_all(tree.get("can"), known, "capabilities", f"family {name}"),
                stops=_stops(scope, tree.get("stops"), texts.get(template, {}), f"family {name}"),
                template=template,
            )
        )
    return tuple(found)


def _stops(scope: Scope, node: Any, markers: dict[str, str], item: str) -> tuple[str, ...]:
    """Stop sequences: plain texts, and ``$markup.NAME`` for a marker of the family's template."""
    found = []
    for leaf in as_items(node):
        if not isinstance(leaf, Scalar):
            continue
        reference = values.parse_reference(leaf.text) if leaf.plain else None
        if reference is None:
            found.append(leaf.text)
        elif reference.section == "markup" and reference.name in markers:
            found.append(markers[reference.name])
        else:
            hint = alternatives(reference.name, markers, "markers of its template")
            scope.error(
                "resolve.unknown-reference",
                leaf.location,
                f"there is no {reference}",
                item=item,
                hint=hint,
            )
    return tuple(found)
