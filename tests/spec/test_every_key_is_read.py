"""Every key the notation allows has a reader: nothing a maintainer writes is silently without effect."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from codegen import notation
from codegen.resolve import load_model
from codegen.shape import Either, ListOf, Named, Record, Shape
from codegen.source import Entry, Mapping, Node, Sequence

ROOT = Path(__file__).resolve().parents[2]


def mappings(node: Node) -> Iterator[Mapping]:
    if isinstance(node, Mapping):
        yield node
        for entry in node.entries:
            yield from mappings(entry.value)
    elif isinstance(node, Sequence):
        for item in node.items:
            yield from mappings(item)


def test_every_key_of_the_spec_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: set[str] = set()
    trees: list[Mapping] = []

    def get(self: Mapping, key: str) -> Node | None:
        found = entry(self, key)
        return None if found is None else found.value

    def entry(self: Mapping, key: str) -> Entry | None:
        for candidate in self.entries:
            if candidate.key.text == key:
                read.add(str(candidate.key.location))
                return candidate
        return None

    def iterate(self: Mapping) -> Iterator[Entry]:
        for candidate in self.entries:
            read.add(str(candidate.key.location))
            yield candidate

    from codegen import resolve

    check = resolve.check_spec

    def check_then_watch(tree: Mapping, *rest: object) -> object:
        shaped = check(tree, *rest)
        trees.append(tree)
        monkeypatch.setattr(Mapping, "get", get)
        monkeypatch.setattr(Mapping, "entry", entry)
        monkeypatch.setattr(Mapping, "__iter__", iterate)
        return shaped

    monkeypatch.setattr(resolve, "check_spec", check_then_watch)
    load_model(ROOT / "spec/protocol.yaml", name="s.yaml")
    (tree,) = trees
    written = [(key.key.location, key.key.text) for inner in mappings(tree) for key in inner.entries]
    assert len(written) > 2000
    unread = [f"{place} {text}" for place, text in written if str(place) not in read]
    top = {str(key.key.location) for key in tree.entries}
    assert [entry for entry in unread if entry.split()[0] not in top] == []


def keys_of(shape: Shape) -> Iterator[str]:
    """Every key that some record inside ``shape`` allows."""
    if isinstance(shape, Record):
        for key, inner in {**shape.required, **shape.optional}.items():
            yield key
            yield from keys_of(inner)
    elif isinstance(shape, Named | ListOf):
        yield from keys_of(shape.item)
    elif isinstance(shape, Either):
        for inner in (shape.scalar, shape.sequence, shape.mapping):
            if inner is not None:
                yield from keys_of(inner)


def test_every_key_of_the_notation_is_named_by_a_reader() -> None:
    readers = "".join(
        (ROOT / "codegen" / name).read_text(encoding="utf-8")
        for name in (
            "scope.py",
            "resolve.py",
            "resolve_wire.py",
            "resolve_http.py",
            "resolve_families.py",
            "resolve_states.py",
        )
    )
    named = set(re.findall(r'"([a-z_]+)"', readers)) | set(notation.FIELD_KINDS)  # those are read in a loop
    allowed = set(keys_of(notation.SPEC))
    assert len(allowed) > 100
    assert allowed - named == set()
