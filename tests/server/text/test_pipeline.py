"""The whole pipeline: splits, order, B43, and its cost in time."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.text import (
    ContentDelta,
    Piece,
    Pipeline,
    ReasoningDelta,
    StopMatched,
    Thinking,
    ToolCall,
)
from server.text.utf8 import Utf8Decoder

from .bodies import BODIES, GLM, MEGABYTE, STARTS, F, filled, glm
from .splitting import cuts, dense_texts, singles

FRAGMENTS = [
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<arg_key>",
    "</arg_key>",
    "<arg_value>",
    "</arg_value>",
    "<tool_call>f<arg_key>x</arg_key><arg_value>é</arg_value></tool_call>",
    *GLM,
    "STOP",
    "f",
]
Joined = tuple[str, str, list[ToolCall], str | None, str]


def run(pieces: list[bytes], make: Callable[[], Pipeline], length_limited: bool = False) -> Joined:
    """Joined reasoning, joined content, calls, the stop that matched and the finish reason."""
    pipeline = make()
    out = [piece for data in pieces for piece in pipeline.feed(data)]
    out += pipeline.finish(length_limited=length_limited)
    assert sum(isinstance(piece, StopMatched) for piece in out) == pipeline.stopped
    assert all(piece.text for piece in out if isinstance(piece, (ContentDelta, ReasoningDelta)))
    return (
        "".join(piece.text for piece in out if isinstance(piece, ReasoningDelta)),
        "".join(piece.text for piece in out if isinstance(piece, ContentDelta)),
        [piece for piece in out if isinstance(piece, ToolCall)],
        pipeline.stop_sequence,
        pipeline.finish_reason,
    )


@settings(max_examples=400)
@given(
    st.data(),
    dense_texts(FRAGMENTS),
    st.sampled_from(Thinking),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.lists(st.sampled_from([*GLM, "STOP", "ink>", "</"]), max_size=3),
    st.binary(max_size=3),
)
def test_any_split_gives_the_same_reasoning_content_and_calls(
    data: st.DataObject,
    text: str,
    thinking: Thinking,
    with_tools: bool,
    leading: bool,
    length_limited: bool,
    stops: list[str],
    noise: bytes,
) -> None:
    encoded = text.encode() + noise + text.encode()[:7]

    def make() -> Pipeline:
        return Pipeline(
            stops=stops, ignore_leading_stop=leading, thinking=thinking, tools=[F] if with_tools else None
        )

    whole = run([encoded], make, length_limited)
    assert run(singles(encoded), make, length_limited) == whole
    assert run(data.draw(cuts(encoded)), make, length_limited) == whole


@settings(max_examples=200)
@given(
    dense_texts([*FRAGMENTS, "<<<<", "aaaaaa", "aaab", "<tool_call>f<<<"]),
    st.sampled_from(Thinking),
    st.booleans(),
    st.booleans(),
    st.lists(st.sampled_from([*GLM, "aaab", "hin", "</", "<" * 3, "a" * 40]), max_size=3),
)
def test_what_is_out_and_what_is_removed_depends_only_on_what_was_fed(
    text: str, thinking: Thinking, with_tools: bool, leading: bool, stops: list[str]
) -> None:
    """Not only at the end: no piece makes another one wait, and none goes out before its time."""

    def make() -> Pipeline:
        return Pipeline(
            stops=stops, ignore_leading_stop=leading, thinking=thinking, tools=[F] if with_tools else None
        )

    def joined(pieces: list[Piece]) -> list[object]:
        runs = itertools.groupby(pieces, key=type)
        return [
            (kind, "".join(piece.text for piece in run))  # type: ignore[union-attr]
            if kind in (ContentDelta, ReasoningDelta)
            else list(run)
            for kind, run in runs
        ]

    slow, out = make(), []
    for place, char in enumerate(text, 1):
        out += slow.feed(char.encode())
        whole = make()
        assert joined(whole.feed(text[:place].encode())) == joined(out)
        assert whole.removed == slow.removed


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>f a<tool_call>f bb<tool_call>f ccc<tool_call>f</tool_call>",
        "<tool_call>f <arg_key>x</arg_key><arg_value>1</arg_value></tool_call><tool_call>f</tool_call>",
        "<tool_call>f</tool_call><tool_call>ff</tool_call><tool_call>f f<tool_call>fff f",
        "<tool_call> g <<tool_call>  gg <<tool_call>g<",
    ],
)
def test_what_was_done_for_a_call_is_not_done_again_for_another(text: str) -> None:
    def make() -> Pipeline:
        return Pipeline(thinking=Thinking.OFF, tools=[F])

    assert run(singles(text.encode()), make) == run([text.encode()], make)


@pytest.mark.parametrize("end", [b"<", b"x", b"\xa9"])
def test_a_piece_that_ends_inside_a_character_may_complete_another_one(end: bytes) -> None:
    start, piece = "<é<é<".encode(), "é".encode()
    pipeline = Pipeline(thinking=Thinking.OFF)
    text = [piece for data in (start, piece, b"<", piece + b"\xc3", end) for piece in pipeline.feed(data)]
    text += pipeline.finish()
    whole = (start + piece + b"<" + piece + b"\xc3" + end).decode("utf-8", "replace")
    assert "".join(piece.text for piece in text if isinstance(piece, ContentDelta)) == whole


@pytest.mark.parametrize("blanks", ["", " ", "\n\n "])
def test_leading_stops_are_removed_with_their_own_blanks(blanks: str) -> None:
    text = f"{blanks}<|user|>{blanks} <|user|>{blanks}\n<|user|>{blanks}hi<|user|>"
    assert run(singles(text.encode()), lambda: Pipeline(stops=GLM, ignore_leading_stop=True)) == (
        "",
        f"{blanks}hi",
        [],
        "<|user|>",
        "stop",
    )


@given(st.binary(max_size=60))
def test_without_stages_nothing_is_lost_or_doubled(data: bytes) -> None:
    assert run(singles(data), Pipeline)[1] == data.decode("utf-8", "replace")


@given(dense_texts(["word ", "<b>", "</thi", "<tool_", "<|us"]))
def test_text_that_spells_no_marker_passes_unchanged_through_every_stage(text: str) -> None:
    if not any(marker in text for marker in ("<think>", "</think>", "<tool_call>", *GLM)):
        joined = run(singles(text.encode()), lambda: Pipeline(stops=GLM, thinking=Thinking.OFF, tools=[F]))
        assert joined == ("", text, [], None, "stop")


def test_b43_the_held_tail_of_the_stop_filter_runs_through_the_later_stages() -> None:
    pipeline = Pipeline(stops=["k>STOP"], thinking=Thinking.ON)
    assert pipeline.feed(b"why</thin") == [ReasoningDelta("why")]
    assert pipeline.feed(b"k>") == []
    assert pipeline.finish() == []

    pipeline = Pipeline(stops=[">STOP"], tools=[F])
    assert pipeline.feed(b"<tool_call>f</tool_call>") == []
    assert pipeline.finish() == [ToolCall("f", "{}")]


def test_a_stop_inside_a_call_recovers_what_is_complete() -> None:
    pipeline = Pipeline(stops=["<|user|>"], tools=[F])
    pieces = pipeline.feed(b"<tool_call>f<arg_key>x</arg_key><arg_value>1</arg_value><|user|>")
    assert pieces + pipeline.finish(length_limited=True) == [StopMatched(), ToolCall("f", '{"x":"1"}')]
    assert pipeline.finish_reason == "tool_calls"


def cpu_seconds(work: Callable[[], None]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def fed(data: bytes, size: int, make: Callable[[], Pipeline] = glm) -> Callable[[], None]:
    def work() -> None:
        pipeline = make()
        for place in range(0, len(data), size):
            pipeline.feed(data[place : place + size])
        pipeline.finish()

    return work


@pytest.mark.timed
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_time_is_linear_in_the_input(body: bytes) -> None:
    """Eight times the input costs about eight times the time; quadratic work would cost sixty-four times."""
    for small_size, pieces in ((MEGABYTE // 128, "bytes"), (MEGABYTE // 16, "whole")):
        small, large = (body * (size // len(body)) for size in (small_size, 8 * small_size))
        steps = (1, 1) if pieces == "bytes" else (len(small), len(large))
        base = min(cpu_seconds(fed(small, steps[0])) for _ in range(3))
        assert cpu_seconds(fed(large, steps[1])) <= 24 * base + 0.02


@pytest.mark.timed
@pytest.mark.parametrize("leading", [False, True])
@pytest.mark.parametrize("stop", ["a" * 1000 + "b", "a" * 20_000 + "b", "ab" * 500 + "c"], ids=len)
def test_stops_that_overlap_themselves_cost_linear_time(stop: str, leading: bool) -> None:
    def make() -> Pipeline:
        return Pipeline(stops=[stop, stop[1:], stop[:2] if leading else stop], ignore_leading_stop=leading)

    text = (stop[:-1] * (MEGABYTE // len(stop) + 1)).encode()
    small, large = text[: MEGABYTE // 128], text[: MEGABYTE // 16]
    for size in (1, MEGABYTE):
        base = min(cpu_seconds(fed(small, size, make)) for _ in range(3))
        assert cpu_seconds(fed(large, size, make)) <= 24 * base + 0.02


def quickest(work: Callable[[], None], enough: float, attempts: int = 5) -> float:
    """CPU seconds of the quickest attempt; no further attempt once one was quick enough."""
    best = cpu_seconds(work)
    for _ in range(attempts - 1):
        if best <= enough:
            break
        best = min(best, cpu_seconds(work))
    return best


@pytest.mark.timed
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
@pytest.mark.parametrize(("thinking", "start"), STARTS.values(), ids=STARTS.keys())
def test_a_megabyte_takes_two_seconds_in_bytes_and_a_fifth_of_a_second_in_one_piece(
    body: bytes, thinking: Thinking, start: bytes
) -> None:
    def make() -> Pipeline:
        return glm(thinking)

    data = filled(start, body)
    assert quickest(fed(data, len(data), make), 0.2) <= 0.2
    assert quickest(fed(data, 1, make), 2.0, attempts=3) <= 2.0


@pytest.mark.timed
@pytest.mark.parametrize(
    "stops",
    [["aaab"], ["a" * 30 + "b"], ["a" * 20_000 + "b"], ["ab" * 500 + "c", "b" * 9, "bb", "<"]],
    ids=["4", "31", "20001", "several"],
)
def test_a_megabyte_of_stops_that_nearly_match_is_as_quick(stops: list[str]) -> None:
    nearly = (stops[0][:-1] * (MEGABYTE // (len(stops[0]) - 1) + 1))[:MEGABYTE].encode()
    for size, enough in ((MEGABYTE, 0.2), (1, 2.0)):
        work = fed(nearly, size, lambda: Pipeline(stops=stops, thinking=Thinking.ON, tools=[F]))
        assert quickest(work, enough, attempts=3) <= enough


@pytest.mark.timed
def test_a_plain_token_costs_three_microseconds_over_decoding_it() -> None:
    tokens = 50_000

    def piped() -> None:
        pipeline = glm()
        for _ in range(tokens):
            pipeline.feed(b" token")

    def decoded() -> None:
        decoder = Utf8Decoder()
        for _ in range(tokens):
            decoder.feed(b" token")

    allowed = 3e-6 * tokens
    assert quickest(piped, allowed) - cpu_seconds(decoded) <= allowed
