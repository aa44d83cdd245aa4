"""UTF-8 decoding in pieces: B26, B27, B28."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.text import ContentDelta, Pipeline, Utf8Decoder

from .splitting import cuts, singles


def decoded(pieces: list[bytes]) -> str:
    decoder = Utf8Decoder()
    return "".join(map(decoder.feed, pieces)) + decoder.finish()


@given(st.binary(max_size=40).flatmap(lambda data: st.tuples(st.just(data), cuts(data))))
def test_any_split_decodes_like_the_whole(case: tuple[bytes, list[bytes]]) -> None:
    data, pieces = case
    assert decoded(pieces) == data.decode("utf-8", "replace")
    assert decoded(singles(data)) == data.decode("utf-8", "replace")


@given(st.text(max_size=20))
def test_never_more_than_three_bytes_are_held(text: str) -> None:
    decoder = Utf8Decoder()
    for byte in singles(text.encode()):
        decoder.feed(byte)
        assert len(decoder.pending) <= 3


@pytest.mark.parametrize(
    "pieces, text",
    [
        ([b"\xf0\x9f", b"\x98\x80"], "😀"),
        ([b"\xe6", b"\xad\xaa"], "歪"),
        (singles("👨‍👩‍👧‍👦".encode()), "👨‍👩‍👧‍👦"),
    ],
)
def test_b26_a_character_over_several_pieces_is_exact_and_waits_without_output(
    pieces: list[bytes], text: str
) -> None:
    pipeline = Pipeline()
    outputs = [pipeline.feed(piece) for piece in pieces]
    assert outputs[0] == []
    assert "".join(piece.text for output in outputs for piece in output) == text
    assert pipeline.finish() == []


def test_b27_a_stray_continuation_byte_is_one_replacement_and_the_stream_goes_on() -> None:
    assert decoded([b"\xe2\x9c\x85", b"\x85", b" ok"]) == "✅\ufffd ok"


def test_b28_a_dangling_beginning_is_one_replacement_at_the_end() -> None:
    pipeline = Pipeline()
    assert pipeline.feed(b"hi") == [ContentDelta("hi")]
    assert pipeline.feed(b"\xf0\x9f") == []
    assert pipeline.finish(length_limited=True) == [ContentDelta("\ufffd")]
    assert pipeline.finish() == []


def test_b28_a_dangling_beginning_behind_a_stop_is_dropped_with_the_rest() -> None:
    pipeline = Pipeline(stops=["END"])
    pieces = pipeline.feed(b"hi END\xf0\x9f") + pipeline.finish()
    assert "".join(piece.text for piece in pieces if isinstance(piece, ContentDelta)) == "hi "


def test_the_seam_of_an_echoed_prompt_is_decoded_as_one_character() -> None:
    prompt = Utf8Decoder()
    assert prompt.feed(b"A\xe2") == "A"
    pipeline = Pipeline(pending=prompt.pending)
    assert pipeline.feed(b"\x82\xac") == [ContentDelta("€")]
