"""Assembly of log probabilities (http.md §9.3; bugs B57, B61, B62, B64, B66)."""

from __future__ import annotations

import itertools
import json
import math
import time
import tracemalloc
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.logprobs import (
    CompletionScores,
    EchoOutOfPlace,
    EchoRecords,
    Record,
    Records,
    chat_content,
    record_texts,
    surviving,
)
from server.text.stop import StopFilter
from server.text.utf8 import Utf8Decoder


def records(*rows: Record) -> Records:
    collected = Records()
    for row in rows:
        collected.add(row)
    return collected


def token(payload: bytes | str, logprob: float | None = -0.5, *table: tuple[int, float]) -> Record:
    data = payload.encode() if isinstance(payload, str) else payload
    return Record(data, logprob, [entry[0] for entry in table], [entry[1] for entry in table])


def completion(
    generated: Sequence[Record],
    *,
    top: int = 5,
    prompt: Sequence[Record] = (),
    removed: Sequence[tuple[int, int | None]] = (),
) -> dict[str, Any]:
    scores = CompletionScores(top)
    pending = b""
    if prompt:
        decoder = Utf8Decoder()
        decoder.feed(b"".join(record.payload for record in prompt))
        pending = decoder.pending
        scores.add_prompt(records(*prompt), complete=not generated)
    scores.add_generated(records(*generated), pending, removed)
    answer: dict[str, Any] = json.loads(b"".join(scores.chunks()))
    answer["prompt_text"] = scores.prompt_text
    return answer


def chat(generated: Sequence[Record], top: int) -> list[dict[str, Any]]:
    collected = records(*generated)
    answer = json.loads(b"".join(chat_content(collected, record_texts(collected), top)))
    assert answer["refusal"] is None
    content: list[dict[str, Any]] = answer["content"]
    return content


def test_section_9_3_the_table_entry_with_the_own_value_bears_the_text_and_others_their_ids() -> None:
    answer = completion([token("cat", -0.8, (999, -0.05), (7, -0.8))])
    assert answer["tokens"] == ["cat"]
    assert answer["token_logprobs"] == [-0.8]
    assert answer["top_logprobs"] == [{"<token_id:999>": -0.05, "cat": -0.8}]
    assert answer["text_offset"] == [0]


def test_section_9_3_of_equal_values_the_first_in_wire_order_takes_the_text() -> None:
    assert completion([token("cat", -0.25, (1, -0.25), (2, -0.25))])["top_logprobs"] == [
        {"cat": -0.25, "<token_id:2>": -0.25}
    ]


def test_section_9_3_the_own_value_is_its_records_even_when_the_table_lacks_it() -> None:
    answer = completion([token("cat", -9.0, (1, -0.1), (2, -0.2))])
    assert answer["token_logprobs"] == [-9.0]
    assert answer["top_logprobs"] == [{"<token_id:1>": -0.1, "<token_id:2>": -0.2}]


def test_section_9_3_and_b66_tables_are_cut_to_what_was_asked_the_best_first() -> None:
    row = token("c", -0.3, (3, -0.3), (1, -0.1), (4, -0.4), (2, -0.2))
    assert list(completion([row], top=2)["top_logprobs"][0].items()) == [
        ("<token_id:1>", -0.1),
        ("<token_id:2>", -0.2),
    ]
    assert [entry["token"] for entry in chat([row], 3)[0]["top_logprobs"]] == [
        "<token_id:1>",
        "<token_id:2>",
        "c",
    ]
    assert chat([row], 0)[0]["top_logprobs"] == []


def test_b66_a_token_listed_twice_is_listed_once_in_chat() -> None:
    row = token("c", -0.1, (5, -0.1), (6, -0.7), (6, -0.9))
    assert [(entry["token"], entry["logprob"]) for entry in chat([row], 5)[0]["top_logprobs"]] == [
        ("c", -0.1),
        ("<token_id:6>", -0.7),
    ]


@pytest.mark.parametrize(
    "table", [((5, -0.9), (5, -0.2)), ((5, -0.2), (5, -0.9))], ids=["lower first", "higher first"]
)
def test_section_9_3_where_two_labels_collide_the_higher_value_stays(
    table: tuple[tuple[int, float], ...],
) -> None:
    assert completion([token("x", -3.0, *table)])["top_logprobs"] == [{"<token_id:5>": -0.2}]


def test_section_9_3_a_text_that_spells_another_label_collides_too() -> None:
    row = token("<token_id:7>", -0.5, (1, -0.5), (7, -0.1))
    assert completion([row])["top_logprobs"] == [{"<token_id:7>": -0.1}]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_section_9_3_numbers_that_are_not_finite_become_null(value: float) -> None:
    row = token("x", value, (1, -0.5), (2, value))
    answer = completion([row])
    assert answer["token_logprobs"] == [None]
    other = "<token_id:2>" if math.isnan(value) else "x"
    assert answer["top_logprobs"] == [{"<token_id:1>": -0.5, other: None}]
    assert chat([row], 2)[0]["logprob"] is None


def test_section_9_3_a_record_without_numbers_has_null_and_an_empty_table() -> None:
    answer = completion([token("x", None)])
    assert (answer["token_logprobs"], answer["top_logprobs"]) == ([None], [{}])


def test_section_9_3_the_first_prompt_token_is_null_with_an_empty_table() -> None:
    answer = completion([token("c", -0.1)], prompt=[token("a", math.nan), token("b", -0.5, (9, -0.5))])
    assert answer["token_logprobs"] == [None, -0.5, -0.1]
    assert answer["top_logprobs"] == [{}, {"b": -0.5}, {}]
    assert (answer["tokens"], answer["text_offset"], answer["prompt_text"]) == (
        ["a", "b", "c"],
        [0, 1, 2],
        "ab",
    )


def test_section_9_3_and_b62_offsets_count_code_points() -> None:
    answer = completion([token("🙂"), token("é"), token("x")])
    assert answer["text_offset"] == [0, 1, 2]


def test_section_9_3_and_b64_the_finisher_holds_a_split_character_and_bytes_stay_the_frames_own() -> None:
    pieces = [token(b"\xf0\x9f"), token(b"\x98\x80"), token("!")]
    assert completion(pieces)["tokens"] == ["", "😀", "!"]
    content = chat(pieces, 0)
    assert [entry["bytes"] for entry in content] == [[240, 159], [152, 128], [33]]
    assert bytes(byte for entry in content for byte in entry["bytes"]).decode() == "😀!"


def test_section_9_3_one_decoder_spans_prompt_and_completion() -> None:
    answer = completion([token(b"\x82\xac")], prompt=[token("A", math.nan), token(b"\xe2")])
    assert (answer["tokens"], answer["prompt_text"]) == (["A", "", "€"], "A")
    assert answer["text_offset"] == [0, 1, 1]


@pytest.mark.parametrize("side", ["generated", "prompt"])
def test_section_9_3_a_dangling_tail_goes_to_the_last_token(side: str) -> None:
    pieces = [token("a"), token(b"\xc3")]
    answer = completion(pieces) if side == "generated" else completion([], prompt=pieces)
    assert answer["tokens"] == ["a", "\ufffd"]


def test_section_9_3_records_of_removed_text_are_dropped_and_offsets_follow_the_returned_text() -> None:
    pieces = [token("<e>"), token(" h"), token("i"), token("<e>"), token("lost")]
    answer = completion(pieces, removed=[(0, 3), (6, None)], prompt=[token("P", math.nan)])
    assert answer["tokens"] == ["P", " h", "i"]
    assert answer["text_offset"] == [0, 1, 3]


def test_section_9_3_a_record_that_straddles_the_stop_is_dropped() -> None:
    kept = surviving(records(token("ok "), token("a STOP"), token("x")), b"", [(5, None)])
    assert kept == [True, False, False]


def test_section_9_3_an_unreported_token_is_an_entry_of_its_own() -> None:
    scores = CompletionScores(1)
    scores.add_unreported(7)
    answer = json.loads(b"".join(scores.chunks()))
    assert answer == {"tokens": [""], "token_logprobs": [None], "top_logprobs": [{}], "text_offset": [7]}


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1], [1, 2, 0]])
def test_section_9_3_echo_is_placed_by_position(order: list[int]) -> None:
    echo = EchoRecords()
    for position in order:
        echo.add(position, token("abc"[position]))
    assert list(echo.placed().payloads()) == [b"a", b"b", b"c"]


@pytest.mark.parametrize("positions", [[0, 5], [0, 0], [1], [0, 1, 1], [0, 2**32 - 1]])
def test_section_9_3_positions_with_gaps_or_repetitions_are_refused(positions: list[int]) -> None:
    echo = EchoRecords()
    for position in positions:
        echo.add(position, token("x"))
    with pytest.raises(EchoOutOfPlace):
        echo.placed()
    assert echo.pending() == b""


pieces_of_bytes = st.lists(st.one_of(st.binary(max_size=5), st.text(max_size=3).map(str.encode)), max_size=12)


@given(prompt=pieces_of_bytes, generated=pieces_of_bytes)
def test_section_9_3_tokens_join_to_the_text_and_offsets_index_it(
    prompt: list[bytes], generated: list[bytes]
) -> None:
    answer = completion([token(piece) for piece in generated], prompt=[token(piece) for piece in prompt])
    pieces = [*prompt, *generated]
    text = b"".join(pieces).decode("utf-8", "replace") if pieces else ""
    assert "".join(answer["tokens"]) == text
    assert len(answer["tokens"]) == len(answer["token_logprobs"]) == len(pieces)
    for place, shown in zip(answer["text_offset"], answer["tokens"], strict=True):
        assert text[place:].startswith(shown)


@given(text=st.text("ab<>", max_size=30), cuts=st.lists(st.integers(0, 30), max_size=8))
def test_section_9_3_surviving_records_index_the_returned_text(text: str, cuts: list[int]) -> None:
    edges = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = [text[start:end] for start, end in itertools.pairwise(edges)]
    stop = StopFilter(["<>"], ignore_leading=True)
    returned = "".join(stop.feed(piece) for piece in pieces) + stop.finish()
    answer = completion([token(piece) for piece in pieces], removed=stop.removed)
    for place, shown in zip(answer["text_offset"], answer["tokens"], strict=True):
        assert returned[place:].startswith(shown)


def test_section_9_3_a_long_echo_stays_under_100_mb() -> None:
    """A sixteenth of 65,536 positions with 32 alternatives must take less than a sixteenth of 100 MB."""
    share, top = 4096, 32
    tokens = list(range(1000, 1000 + top))
    values = [-round((place + 1) * 0.123457, 6) for place in range(top)]  # engines print six decimals
    tracemalloc.start()
    try:
        echo = EchoRecords()
        for position in range(share):
            echo.add(position, Record(b"tok", values[3], tokens, values))
        scores = CompletionScores(top)
        prompt = echo.placed()
        del echo
        scores.add_prompt(prompt, complete=True)
        written = scores.chunks()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(json.loads(b"".join(written))["top_logprobs"][-1]) == top
    assert peak < 100e6 * share / 65_536


@pytest.mark.timed
def test_section_9_3_writing_is_linear_in_the_entries() -> None:
    row = Record(b"tok", -0.25, list(range(32)), [-(place + 1) * 0.25 for place in range(32)])

    def seconds(count: int) -> float:
        collected = records(*[row] * count)
        began = time.process_time()
        scores = CompletionScores(32)
        scores.add_prompt(collected, complete=True)
        scores.chunks()
        return time.process_time() - began

    seconds(200)
    assert seconds(4000) < 20 * max(seconds(1000), 0.002)
