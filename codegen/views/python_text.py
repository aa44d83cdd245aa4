"""Python source text in the formatter's style: what fits on a line stays on it, else one item a line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from codegen.render import python_literal

WIDTH = 110


def listing(opening: str, items: Sequence[str], closing: str, *, indent: int, used: int) -> str:
    """``opening items closing`` on one line if it fits after ``used`` columns, else one item a line.

    ``indent`` is the column of the line that holds the opening; items of a split listing go four further in.
    """
    flat = opening + ", ".join(items) + closing
    if used + len(flat) + 1 <= WIDTH:
        return flat
    return exploded(opening, items, closing, indent=indent)


def exploded(opening: str, items: Iterable[str], closing: str, *, indent: int) -> str:
    """One item a line, each with a trailing comma; an empty listing stays on its line."""
    lines = [f"{' ' * (indent + 4)}{item},\n" for item in items]
    return f"{opening}\n{''.join(lines)}{' ' * indent}{closing}" if lines else opening + closing


def tuple_text(values: Sequence[object], *, indent: int, used: int) -> str:
    """A tuple of literals."""
    return tuple_of([python_literal(value) for value in values], indent=indent, used=used)


def tuple_of(items: Sequence[str], *, indent: int, used: int) -> str:
    """A tuple of expressions."""
    if len(items) == 1 and "\n" not in items[0] and used + len(items[0]) + 4 <= WIDTH:
        return f"({items[0]},)"
    if any("\n" in item for item in items):
        return exploded("(", items, ")", indent=indent)
    return listing("(", items, ")", indent=indent, used=used)


def frozenset_text(values: Iterable[str], *, indent: int, used: int) -> str:
    """A frozenset of texts in the given order."""
    items = [python_literal(value) for value in values]
    if not items:
        return "frozenset()"
    flat = "frozenset({" + ", ".join(items) + "})"
    if used + len(flat) + 1 <= WIDTH:
        return flat
    inner = " " * (indent + 4)
    set_text = listing("{", items, "}", indent=indent + 4, used=indent + 4)
    return f"frozenset(\n{inner}{set_text}\n{' ' * indent})"


@dataclass(frozen=True, slots=True)
class Call:
    """An expression with parts: ``opening`` (a name and its bracket), the parts, and the closing bracket."""

    opening: str
    parts: tuple[Call | str, ...]
    closing: str = ")"

    def flat(self) -> str:
        """All on one line."""
        inner = ", ".join(part if isinstance(part, str) else part.flat() for part in self.parts)
        is_tuple = self.opening == "(" or self.opening.endswith("=(")
        lonely = "," if is_tuple and len(self.parts) == 1 else ""
        return f"{self.opening}{inner}{lonely}{self.closing}"

    def text(self, *, indent: int, used: int) -> str:
        """On one line if it fits after ``used`` columns with a comma behind it, else one part a line."""
        flat = self.flat()
        if used + len(flat) + 1 <= WIDTH:
            return flat
        inner = indent + 4
        items = [
            part if isinstance(part, str) else part.text(indent=inner, used=inner) for part in self.parts
        ]
        return exploded(self.opening, items, self.closing, indent=indent)
