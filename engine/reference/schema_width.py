"""How many items a JSON Schema puts into one row of llguidance's parser.

The library bounds its rows, but meets a row only when the text has come to it: behind the `{` of an object
with thousands of optional properties, say. What such an object takes can be read off the schema before, so
that it is refused with its request instead of ending an answer that has begun.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

ITEMS_OF_A_PROPERTY: Final = 4
ITEMS_OF_A_CHOICE: Final = 7
"""As llguidance 1.9 writes objects: one of n optional properties takes 4n + 7 items."""
_MOST: Final = 10**9
"""Choices of choices multiply; nobody asks how far beyond this."""

Schema = dict[str, Any]


class _Width(NamedTuple):
    """How many objects or arrays a value has to choose from, and the optional properties of all of them
    together. Texts and numbers count nothing: however many there are, they are one lexeme.
    """

    choices: int
    properties: int


def _either(widths: Iterable[_Width]) -> _Width:
    choices, properties = map(sum, zip((0, 0), *widths, strict=True))
    return _Width(min(choices, _MOST), min(properties, _MOST))


def _both(one: _Width, other: _Width) -> _Width:
    """Every choice of one joined with every choice of the other."""
    properties = one.properties * other.choices + other.properties * one.choices
    return _Width(min(one.choices * other.choices, _MOST), min(properties, _MOST))


def _branches(schema: Schema, keyword: str) -> list[Schema]:
    found = schema.get(keyword)
    return [branch for branch in found if isinstance(branch, dict)] if isinstance(found, list) else []


def _own(schema: Schema) -> _Width:
    """Of a schema without those it refers to."""
    kinds = schema.get("type", ["object"])
    if not any(kind in ("object", "array") for kind in (kinds if isinstance(kinds, list) else [kinds])):
        return _Width(0, 0)
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(values, list):
        return _Width(sum(isinstance(value, dict | list) for value in values), 0)
    return _Width(1, _optional_run(schema))


def _optional_run(schema: Schema) -> int:
    """The most optional properties in a row of text: a required one is not passed over."""
    properties, required = schema.get("properties"), schema.get("required")
    needed = set(map(str, required)) if isinstance(required, list) else set()
    run = longest = 0
    for name in properties if isinstance(properties, dict) else ():
        run = 0 if name in needed else run + 1
        longest = max(longest, run)
    return longest


class _Widths:
    """The widths of the schemas in a document."""

    def __init__(self, document: Schema) -> None:
        self._document = document
        self._known: dict[int, _Width] = {}

    def of(self, schema: Schema) -> _Width:
        """A loop, as references make chains of any length; one that comes back to its start adds nothing."""
        waiting = [schema]
        entered: set[int] = set()
        while waiting:
            now = waiting[-1]
            if id(now) not in entered and id(now) not in self._known:
                entered.add(id(now))
                waiting += [part for part in self._parts(now) if id(part) not in entered]
                continue
            waiting.pop()
            if id(now) not in self._known:
                self._known[id(now)] = self._combined(now)
        return self._known[id(schema)]

    def _parts(self, schema: Schema) -> Iterator[Schema]:
        for keyword in ("anyOf", "oneOf", "allOf"):
            yield from _branches(schema, keyword)
        yield from self._target(schema)

    def _combined(self, schema: Schema) -> _Width:
        width = _own(schema)
        for keyword in ("anyOf", "oneOf"):
            branches = _branches(schema, keyword)
            if branches:
                width = _both(width, _either(map(self._of_part, branches)))
        for part in (*_branches(schema, "allOf"), *self._target(schema)):
            width = _both(width, self._of_part(part))
        return width

    def _of_part(self, part: Schema) -> _Width:
        return self._known.get(id(part), _Width(1, 0))

    def _target(self, schema: Schema) -> list[Schema]:
        """What a `$ref` within the document names; the library refuses those to nothing."""
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#"):
            return []
        found: Any = self._document
        for step in unquote(reference[1:]).split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list):
                is_place = name.isdecimal() and len(name) <= len(str(len(found)))  # int() bears no length
                found = found[int(name)] if is_place and int(name) < len(found) else None
            else:
                found = found.get(name) if isinstance(found, dict) else None
        return [found] if isinstance(found, dict) else []


def widest_row(document: Schema) -> int:
    """The items of the largest row that begins a value of the schema, or of one anywhere in it."""
    widths = _Widths(document)
    waiting: list[Any] = [document]
    widest = 0
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            choices, properties = widths.of(value)
            widest = max(widest, ITEMS_OF_A_CHOICE * choices + ITEMS_OF_A_PROPERTY * properties)
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return widest
