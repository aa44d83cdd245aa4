"""Hypothesis strategies: texts dense in markers, and ways to cut a text or its bytes into pieces."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TypeVar

from hypothesis import strategies as st

Cut = TypeVar("Cut", str, bytes)


def dense_texts(fragments: Sequence[str], max_size: int = 12) -> st.SearchStrategy[str]:
    """Texts of whole fragments, halves of them and single characters."""
    halves = st.sampled_from(fragments).flatmap(
        lambda fragment: st.integers(0, len(fragment)).map(lambda place: fragment[:place])
    )
    tails = st.sampled_from(fragments).flatmap(
        lambda fragment: st.integers(0, len(fragment)).map(lambda place: fragment[place:])
    )
    loose = st.sampled_from(["a", " ", "\n", "<", ">", "é", "🙂", "x y", "f"])
    return st.lists(st.one_of(st.sampled_from(fragments), halves, tails, loose), max_size=max_size).map(
        "".join
    )


@st.composite
def cuts(draw: st.DrawFn, whole: Cut) -> list[Cut]:
    """The same input in pieces, some of them possibly empty."""
    places = sorted(draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    edges = [0, *places, len(whole)]
    return [whole[start:end] for start, end in itertools.pairwise(edges)]


def singles(whole: Cut) -> list[Cut]:
    """The same input one unit a piece."""
    return [whole[place : place + 1] for place in range(len(whole))]
