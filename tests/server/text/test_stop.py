"""The stop filter: B37, B38, B39, B42, B45, B47 and its properties against a plain whole-text search."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.text import ContentDelta, Pipeline, ReasoningDelta, StopMatched, Thinking
from server.text.stop import StopFilter

from .splitting import cuts, dense_texts, singles

GLM = ["<|user|>", "<|observation|>"]
Outcome = tuple[str, str | None, list[tuple[int, int | None]]]


def filtered(pieces: list[str], stops: list[str], leading: bool = False) -> Outcome:
    stop_filter = StopFilter(stops, leading)
    text = "".join(map(stop_filter.feed, pieces)) + stop_filter.finish()
    return text, stop_filter.matched, stop_filter.removed


def searched(text: str, stops: list[str], leading: bool) -> Outcome:
    """The rule of http.md §15, read off the whole text."""
    removed: list[tuple[int, int | None]] = []
    begin = 0
    while True:
        matches = [(place, -len(stop), stop) for stop in stops if (place := text.find(stop, begin)) >= 0]
        if not matches:
            return text[begin:], None, removed
        place, negative_length, stop = min(matches)
        if leading and (place == begin or text[begin:place].isspace()):
            removed.append((begin, place - negative_length))
            begin = place - negative_length
            continue
        return text[begin:place], stop, [*removed, (place, None)]


small_stops = st.lists(st.text(alphabet="ab ", min_size=1, max_size=6), min_size=1, max_size=4)
small_texts = st.text(alphabet="ab c", max_size=24)


@settings(max_examples=400)
@given(st.data(), small_stops, small_texts, st.booleans())
def test_any_split_gives_the_whole_text_search(
    data: st.DataObject, stops: list[str], text: str, leading: bool
) -> None:
    expected = searched(text, stops, leading)
    assert filtered([text], stops, leading) == expected
    assert filtered(singles(text), stops, leading) == expected
    assert filtered(data.draw(cuts(text)), stops, leading) == expected


@settings(max_examples=150)
@given(st.data(), dense_texts([*GLM, "<|endoftext|>"]), st.booleans())
def test_any_split_with_template_markers(data: st.DataObject, text: str, leading: bool) -> None:
    expected = searched(text, GLM, leading)
    assert filtered(singles(text), GLM, leading) == expected
    assert filtered(data.draw(cuts(text)), GLM, leading) == expected


@settings(max_examples=100)
@given(
    st.data(), small_stops, small_texts, st.sampled_from(["c" * 300, "ab" * 200, "a" * 257]), st.booleans()
)
def test_a_long_piece_is_searched_whole_with_the_same_result(
    data: st.DataObject, stops: list[str], text: str, long: str, leading: bool
) -> None:
    whole = text[:5] + long + text[5:]
    assert filtered([text[:5], long + text[5:]], stops, leading) == searched(whole, stops, leading)


@given(small_stops, small_texts)
def test_what_is_held_is_a_proper_prefix_of_a_stop(stops: list[str], text: str) -> None:
    stop_filter = StopFilter(stops)
    fed = released = ""
    for char in text:
        fed += char
        released += stop_filter.feed(char)
        if stop_filter.matched is not None:
            break
        held = fed[len(released) :]
        assert fed.startswith(released)
        assert not held or any(stop.startswith(held) for stop in stops)


def test_b37_a_prefix_of_a_stop_never_leaks() -> None:
    stop_filter = StopFilter(["\nUser:"])
    assert stop_filter.feed("ok\nUser") == "ok"
    assert stop_filter.feed(":x") == ""
    assert stop_filter.matched == "\nUser:"


@pytest.mark.parametrize(
    "pieces, stop, text",
    [
        (["AB", "CDEF"], "DE", "ABC"),
        (["be", "ta ga", "mma"], "beta gamma", ""),
    ],
)
def test_b38_a_stop_is_found_across_and_inside_pieces(pieces: list[str], stop: str, text: str) -> None:
    assert filtered(pieces, [stop])[:2] == (text, stop)


def test_b39_held_text_that_was_no_stop_comes_out() -> None:
    assert filtered(["a<", "b"], ["<|end|>"]) == ("a<b", None, [])
    assert filtered(["answer ST"], ["STOP"]) == ("answer ST", None, [])


def test_b39_a_stop_at_the_very_last_character_matches() -> None:
    assert filtered(["answer ST", "OP"], ["STOP"]) == ("answer ", "STOP", [(7, None)])


@pytest.mark.parametrize("length_limited", [False, True])
def test_b39_held_text_comes_out_however_the_generation_ended(length_limited: bool) -> None:
    pipeline = Pipeline(stops=["<|end|>"])
    assert pipeline.feed(b"a<|en") == [ContentDelta("a")]
    assert pipeline.finish(length_limited=length_limited) == [ContentDelta("<|en")]


def test_b42_text_that_cannot_match_is_not_delayed() -> None:
    stop_filter = StopFilter(["<|a very long stop sequence|>"])
    assert stop_filter.feed("hello") == "hello"
    assert stop_filter.feed("x<|a w") == "x<|a w"
    assert stop_filter.feed("<|a") == ""


def test_b45_a_stop_inside_the_reasoning_ends_the_turn_and_appears_nowhere() -> None:
    pipeline = Pipeline(stops=["9.8"], thinking=Thinking.ON)
    pieces = pipeline.feed(b"9.11 vs 9.8 more</think>ans") + pipeline.finish()
    assert pieces == [ReasoningDelta("9.11 vs "), StopMatched()]
    assert pipeline.finish_reason == "stop"


def test_b47_the_stop_that_matched_is_told_apart_from_the_end_of_the_turn() -> None:
    stopped = Pipeline(stops=["AB", "ABC"])
    stopped.feed(b"xAB")
    assert (stopped.stopped, stopped.stop_sequence) == (True, "AB")
    stopped.feed(b"C")
    stopped.finish()
    assert stopped.stop_sequence == "ABC"
    ended = Pipeline(stops=["AB"])
    ended.feed(b"x")
    ended.finish()
    assert (ended.stopped, ended.stop_sequence) == (False, None)


def test_an_earlier_start_wins_over_an_earlier_end() -> None:
    assert filtered(singles("abcdX"), ["abcde", "bcd"])[:2] == ("a", "bcd")
    assert filtered(singles("abcdeX"), ["abcde", "bcd"])[:2] == ("", "abcde")
    assert filtered(singles("abcd"), ["abcde", "bcd"])[:2] == ("a", "bcd")


@pytest.mark.parametrize("rest, text, stop", [("X", "a", "bcd"), ("e", "", "abcde")])
def test_a_long_piece_decides_between_a_match_and_an_earlier_start(rest: str, text: str, stop: str) -> None:
    stops = ["abcde", "bcd"]
    assert filtered(["abcd", rest * 300], stops)[:2] == (text, stop)
    assert filtered(["abcd" + rest * 300], stops)[:2] == (text, stop)


def test_leading_markers_go_with_their_blanks_and_later_ones_stop() -> None:
    assert filtered([" \n<|us", "er|> <|observation|>", "answer<|user|>x"], GLM, True) == (
        "answer",
        "<|user|>",
        [(0, 10), (10, 26), (32, None)],
    )


def test_without_tolerance_a_leading_stop_is_strict() -> None:
    assert filtered(["Hello"], ["H"]) == ("", "H", [(0, None)])


def test_blanks_alone_are_not_lost_at_the_end() -> None:
    assert filtered([" ", "\n"], GLM, True) == (" \n", None, [])


def test_a_matched_stop_is_announced_once_after_the_text_before_it() -> None:
    pipeline = Pipeline(stops=["STOP"])
    assert pipeline.feed(b"a ST") == [ContentDelta("a ")]
    assert pipeline.feed(b"OP!") == [StopMatched()]
    assert pipeline.feed(b"more") == []
    assert pipeline.finish() == []


def test_a_stop_of_a_megabyte_costs_what_the_text_spells_of_it() -> None:
    pipeline = Pipeline(stops=["a" * 1_000_000 + "b"])
    assert pipeline.feed(b"aaac") == [ContentDelta("aaac")]
    assert pipeline.feed(b"a" * 1000) == []
    assert pipeline.finish() == [ContentDelta("a" * 1000)]


@pytest.mark.parametrize(
    ("stops", "text"),
    [
        (["aaa", "a" * 3000 + "c"], "a" * 12_000 + "b"),
        (["a", "a" * 50 + "c"], "a" * 20_000),
        (["ab", " ab" * 40 + "c", "b"], " ab" * 5000 + "c b" + "ab"),
        ([" " * 5000 + "c"], " " * 20_000 + "c" + " " * 5000 + "c"),
    ],
    ids=["long", "fifty", "with blanks", "of blanks"],
)
def test_leading_matches_are_removed_while_a_long_stop_could_still_match(stops: list[str], text: str) -> None:
    """As many places as characters to begin again at, and at each of them thousands that match already."""
    expected = searched(text, stops, leading=True)
    assert filtered([text], stops, leading=True) == expected
    assert filtered(list(text), stops, leading=True) == expected
    assert (
        filtered([text[place : place + 700] for place in range(0, len(text), 700)], stops, True) == expected
    )
