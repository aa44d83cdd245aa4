"""What every item of the resolved model has in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from .findings import Location

JsonValue = None | bool | int | float | str | tuple["JsonValue", ...] | Mapping[str, "JsonValue"]


@dataclass(frozen=True, slots=True)
class Deprecation:
    """What replaces an item, since when it is deprecated, and in which version it goes."""

    replaced_by: str | None
    since: str
    remove_in: str | None
    note: str


@dataclass(frozen=True, slots=True)
class Item:
    """What every item of the spec has in common."""

    path: str
    name: str
    doc: str
    location: Location
    since: str
    stability: Literal["stable", "experimental"]
    deprecated: Deprecation | None
    allow: Mapping[str, str]
    """Lint rules this one item is excused from, each with the reason."""
