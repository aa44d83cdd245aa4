"""Copies of JSON values with their leaves changed, whatever their depth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from server.json_pieces import LargeList


def rewritten(value: Any, leaf: Callable[[Any], Any], key: Callable[[str], str] | None = None) -> Any:
    """A copy of ``value`` with ``leaf`` of everything that is no object or array, and ``key`` of every name.

    Tuples become lists. Without recursion: a request may nest as deeply as the body limit says, whatever the
    stack holds.
    """
    top = [value]
    left: list[Any] = [top]
    while left:
        container = left.pop()
        places = container.items() if isinstance(container, dict) else enumerate(container)
        for place, member in places:  # no place comes or goes
            if isinstance(member, Mapping):
                names = dict(member) if key is None else {key(name): inner for name, inner in member.items()}
                container[place] = names
                left.append(names)
            elif isinstance(member, (list, tuple)):
                copied: list[Any] = LargeList() if isinstance(member, LargeList) else []
                copied += member
                container[place] = copied
                left.append(copied)
            else:
                container[place] = leaf(member)
    return top[0]
