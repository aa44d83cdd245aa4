"""The reasoning split: B76, B77, B79 and its properties against a plain whole-text rule."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.text import ContentDelta, Pipeline, ReasoningDelta, Thinking
from server.text.reasoning import CLOSE, OPEN, ReasoningSplitter

from .splitting import cuts, dense_texts, singles


def split(pieces: list[str], inside: bool) -> tuple[str, str]:
    splitter = ReasoningSplitter(inside)
    stretches = [stretch for piece in pieces for stretch in splitter.feed(piece)] + splitter.finish()
    return (
        "".join(text for is_reasoning, text in stretches if is_reasoning),
        "".join(text for is_reasoning, text in stretches if not is_reasoning),
    )


def ruled(text: str, inside: bool) -> tuple[str, str]:
    """The rule of http.md §15, read off the whole text."""
    remove = re.compile(f"{OPEN}|{CLOSE}").sub
    if not inside:
        return "", remove("", text)
    thought, close, answer = text.partition(CLOSE)
    return remove("", thought), remove("", answer) if close else ""


@given(st.data(), dense_texts([OPEN, CLOSE]), st.booleans())
def test_any_split_gives_the_rule_for_the_whole_text(data: st.DataObject, text: str, inside: bool) -> None:
    assert split([text], inside) == ruled(text, inside)
    assert split(singles(text), inside) == ruled(text, inside)
    assert split(data.draw(cuts(text)), inside) == ruled(text, inside)


@given(dense_texts([OPEN, CLOSE]), st.booleans())
def test_what_is_held_is_a_proper_prefix_of_a_marker(text: str, inside: bool) -> None:
    splitter = ReasoningSplitter(inside)
    for place, char in enumerate(text):
        splitter.feed(char)
        if not splitter.idle:
            fed = text[: place + 1]
            assert any(
                fed.endswith(marker[:length]) for marker in (OPEN, CLOSE) for length in range(1, len(marker))
            )


@given(st.text(alphabet="ab<", max_size=10))
def test_stretches_are_never_empty(text: str) -> None:
    splitter = ReasoningSplitter(True)
    for char in text + CLOSE + text:
        assert all(stretch for _, stretch in splitter.feed(char))


@pytest.mark.parametrize("pieces", [["abc</thi", "nk>def"], singles("abc</think>def")])
def test_b79_a_marker_split_over_pieces_or_glued_to_text(pieces: list[str]) -> None:
    assert split(pieces, True) == ("abc", "def")


def test_b79_marker_stop_prefix_and_character_held_at_once() -> None:
    pipeline = Pipeline(stops=["</stop>"], thinking=Thinking.ON)
    assert pipeline.feed(b"abc</") == [ReasoningDelta("abc")]
    assert pipeline.feed(b"think>\xf0\x9f\x99") == []
    assert pipeline.feed(b"\x82</sto") == [ContentDelta("🙂")]
    assert pipeline.finish() == [ContentDelta("</sto")]


def test_b76_an_answer_inside_reasoning_that_never_closes_is_all_reasoning() -> None:
    pipeline = Pipeline(thinking=Thinking.ON)
    assert pipeline.feed(b"Paris.") + pipeline.finish() == [ReasoningDelta("Paris.")]
    assert pipeline.finish_reason == "stop"


def test_b77_a_cut_inside_reasoning_is_reasoning_only_and_length() -> None:
    pipeline = Pipeline(thinking=Thinking.ON)
    assert pipeline.feed(b"let me") + pipeline.finish(length_limited=True) == [ReasoningDelta("let me")]
    assert pipeline.finish_reason == "length"


def test_thinking_off_removes_stray_markers_and_keeps_the_text() -> None:
    pipeline = Pipeline(thinking=Thinking.OFF)
    pieces = pipeline.feed(b"why</think>a<think>ns") + pipeline.finish()
    assert "".join(piece.text for piece in pieces if isinstance(piece, ContentDelta)) == "whyans"
    assert not any(isinstance(piece, ReasoningDelta) for piece in pieces)


def test_later_markers_change_nothing() -> None:
    assert split(["a<think>b</think>c</think>d<think>e"], True) == ("ab", "cde")


def test_raw_completions_keep_every_marker() -> None:
    assert Pipeline().feed(b"a<think>b</think>") == [ContentDelta("a<think>b</think>")]
