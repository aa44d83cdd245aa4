"""Bytes of server-sent events (http.md §8, §16; bugs B04)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import limits
from server.sse import EventFrame, compact_json, event, event_json, hole, is_plain


def test_section_8_an_event_is_data_and_a_blank_line() -> None:
    assert event({"a": "é"}) == 'data: {"a":"é"}\n\n'.encode()


def test_section_16_a_named_event_names_itself_first() -> None:
    assert event({"type": "ping"}, "ping") == b'event: ping\ndata: {"type":"ping"}\n\n'


@pytest.mark.parametrize(
    ("character", "escape"), [("\u2028", "\\u2028"), ("\u2029", "\\u2029"), ("\u0085", "\\u0085")]
)
def test_section_8_line_breaks_of_unicode_are_escaped_and_survive(character: str, escape: str) -> None:
    written = event_json(f"a{character}b")
    assert written == f'"a{escape}b"'.encode()
    assert json.loads(written) == f"a{character}b"


def test_section_8_other_characters_with_the_same_lead_bytes_are_left_alone() -> None:
    assert event_json("…\u00a0") == '"…\u00a0"'.encode()


def test_section_1_numbers_that_are_not_finite_become_null() -> None:
    assert event({"a": float("nan"), "b": float("-inf")}) == b'data: {"a":null,"b":null}\n\n'


@pytest.mark.parametrize("text", ["", "plain", 'quote " and \\ and \n', "🙂\u2028", "\x00"])
def test_a_frame_filled_with_text_equals_the_event_made_whole(text: str) -> None:
    frame = EventFrame.around({"id": "x", "choices": [{"text": hole(), "n": 1}]})
    assert frame.fill(text) == event({"id": "x", "choices": [{"text": text, "n": 1}]})


def test_a_frame_without_a_hole_is_refused() -> None:
    with pytest.raises(ValueError, match="no hole"):
        EventFrame.around({"text": "fixed"})


def test_section_1_a_body_is_compact_and_unescaped_and_takes_what_orjson_does_not() -> None:
    assert compact_json({"a": ["é\u2028", 1.5]}) == '{"a":["é\u2028",1.5]}'.encode()
    assert compact_json({"a": 10**30, "b": "\ud800", "c": float("nan")}) == (
        b'{"a":1000000000000000000000000000000,"b":"\\ud800","c":null}'
    )


def test_many_plain_texts_at_once_are_the_events_one_by_one() -> None:
    frame = EventFrame.around({"text": hole(), "n": 1})
    texts = [b"a", b" ", b"b c", bytes(range(0x23, 0x5C)), b"]^~"]
    assert all(map(is_plain, texts))
    assert frame.fill_all(texts) == b"".join(frame.fill(text.decode()) for text in texts)


@given(st.binary(max_size=8))
def test_plain_text_is_the_same_inside_a_json_string(text: bytes) -> None:
    frame = EventFrame.around({"text": hole()})
    unchanged = text.isascii() and frame.fill(text.decode("ascii")) == frame.fill_all([text])
    assert is_plain(text) <= unchanged


def test_section_1_a_body_deeper_than_orjson_writes_is_written_and_unescaped() -> None:
    value: object = float("inf")
    for _ in range(limits.JSON_DEPTH):
        value = [value]
    depth = limits.JSON_DEPTH
    assert compact_json({"é": value}) == '{"é":'.encode() + b"[" * depth + b"null" + b"]" * depth + b"}"
    assert compact_json({"é": 10**30}) == '{"é":1000000000000000000000000000000}'.encode()
