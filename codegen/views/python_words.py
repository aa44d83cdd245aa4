"""View of ``generated/words.py``: the words that the JSON shapes of the spec allow, as constants and enums.

Guarantees: a property that always has the same word is one constant, a choice of words is one enum in the
order of the spec; words that an item of the spec says more about (``http.health_statuses``) are left to its
module.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from codegen import names
from codegen.model import JsonObject, Model

View = dict[str, Any]


def words_view(model: Model) -> View:
    """Everything ``words.py.j2`` prints."""
    elsewhere = {tuple(status.name for status in model.http.health_statuses)}
    found = [
        (item, place, literals)
        for item in model.objects
        for place, literals in _literals(item)
        if literals not in elsewhere
    ]
    return {
        "constants": [
            {
                "constant": names.macro(f"{item.name}_{place}"),
                "word": literals[0],
                "doc": f"{_said(place)} of {item.name}. (spec: {item.path})",
            }
            for item, place, literals in found
            if len(literals) == 1
        ],
        "enums": [
            {
                "class_name": names.pascal(f"{item.name}_{place or 'word'}"),
                "doc": f"{_said(place)} of {item.name}. (spec: {item.path})",
                "members": [{"constant": names.macro(word), "word": word} for word in literals],
            }
            for item, place, literals in found
            if len(literals) > 1
        ],
    }


def _literals(item: JsonObject) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(property, its words) of an object; of a choice of types ("", the words among them)."""
    for entry in item.properties:
        if entry.type.kind == "literal":
            yield entry.name, entry.type.literals
    for kind in item.any_of:
        if kind.kind == "literal":
            yield "", kind.literals


def _said(place: str) -> str:
    return f"``{place}``" if place else "A word in place"
