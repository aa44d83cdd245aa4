"""Markdown pieces of the generated pages."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..model import Item
from ..render import markdown_cell


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A Markdown table; cells are escaped."""
    names = list(head)
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(markdown_cell(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def code(text: object) -> str:
    """Text as inline code; empty stays empty."""
    return f"`{text}`" if text not in ("", None) else ""


def anchor_name(path: str) -> str:
    """Name of an item's anchor: its path in the spec, with ``-`` for what an address does not take."""
    return re.sub(r"[^A-Za-z0-9_.]+", "-", path).strip("-")


def anchor(path: str) -> str:
    """A place that links can point at, for the item of the spec at ``path``."""
    return f'<a id="{anchor_name(path)}"></a>'


def meaning(item: Item) -> str:
    """What an item is for, and what replaces it when it is on its way out."""
    if item.deprecated is None:
        return item.doc
    gone = f", gone in {item.deprecated.remove_in}" if item.deprecated.remove_in else ""
    instead = f": use `{item.deprecated.replaced_by}`" if item.deprecated.replaced_by else ""
    return f"{item.doc} *Deprecated since {item.deprecated.since}{gone}{instead}.*"
