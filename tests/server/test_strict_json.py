"""Nesting and surrogates of any text, across the borders of the slices it is looked through in."""

from __future__ import annotations

import random
import re

import pytest

from generated import limits
from server import strict_json
from server.strict_json import has_lone_surrogate, is_too_deep, without_lone_surrogates

TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|\\["\\]|[\[\]{}]', re.DOTALL)
MARKS = ['"', '"', "\\", "\\", "[", "[", "[", "{", "]", "]", "}", ",", "é", "😀", "a", "[]", "{}", "[[]]"]


def deepest(text: str) -> int:
    """What `is_too_deep` compares with the limit, bracket by bracket."""
    depth = most = 0
    for found in TOKEN.finditer(text):
        depth += (found[0] in "[{") - (found[0] in "]}")
        most = max(most, depth)
    return most


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64 * 1024])
def test_nesting_is_what_counting_every_bracket_says(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(strict_json, "_SLICE", size)
    chosen = random.Random(size)
    outcomes = set()
    for _ in range(3000):
        text = "".join(chosen.choices(MARKS, k=chosen.randrange(60)))
        most = deepest(text)
        for limit in {1, 2, max(most - 1, 1), max(most, 1), most + 1}:
            monkeypatch.setattr(limits, "JSON_DEPTH", limit)
            assert is_too_deep(text) == (most > limit), (text, limit)
            outcomes.add(most > limit)
    assert outcomes == {False, True}


@pytest.mark.parametrize("before", range(6))
@pytest.mark.parametrize("filling", ["[],", '"]",', '{"a":[[1]]},', '"\\\\","\\"[",'])
def test_the_limit_holds_behind_megabytes_side_by_side(filling: str, before: int) -> None:
    wide = " " * before + "[" + filling * (200_000 // len(filling))
    levels = limits.JSON_DEPTH - 1
    assert not is_too_deep(wide + "[" * levels + "]" * levels + "]")
    assert is_too_deep(wide + "[" * (levels + 1) + "]" * (levels + 1) + "]")


@pytest.mark.parametrize("size", [1, 2, 5, 64 * 1024])
def test_half_a_pair_is_found_across_the_borders_of_slices(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(strict_json, "_SLICE", size)
    for before in range(8):
        text = "x" * before + r"\ud83d\ude00" + r"\\ud83d"
        assert not has_lone_surrogate(text)
        assert without_lone_surrogates(text) == text
        assert has_lone_surrogate(text + r"\udc00")
        assert without_lone_surrogates(text + r"\udc00") == text + r"\ufffd"
