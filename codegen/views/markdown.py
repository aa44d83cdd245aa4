"""Markdown pieces of the generated pages."""

from __future__ import annotations

from collections.abc import Iterable

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
