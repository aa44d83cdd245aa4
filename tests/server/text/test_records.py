"""Which records survive the stop filter (http.md §9.3)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from server.text import ContentDelta, Pipeline, RecordSpans

from .splitting import cuts, dense_texts


def survivors(payloads: list[bytes], stops: list[str], leading: bool = False) -> tuple[str, list[bool]]:
    pipeline = Pipeline(stops=stops, ignore_leading_stop=leading)
    spans = RecordSpans()
    pieces = [piece for payload in payloads for piece in pipeline.feed(payload)]
    for payload in payloads:
        spans.add(payload)
    spans.finish()
    pieces += pipeline.finish()
    text = "".join(piece.text for piece in pieces if isinstance(piece, ContentDelta))
    return text, spans.survivors(pipeline.removed)


def test_records_of_the_stop_and_after_it_are_dropped() -> None:
    assert survivors([b"ok ", b"STOP", b"x"], ["STOP"]) == ("ok ", [True, False, False])


def test_a_record_that_straddles_the_stop_is_dropped() -> None:
    assert survivors([b"ok ", b"a ST", b"OP"], ["STOP"]) == ("ok a ", [True, False, False])


def test_an_ignored_leading_marker_costs_only_its_own_records() -> None:
    assert survivors([b" ", b"<|user|>", b"an", b"swer"], ["<|user|>"], True) == (
        "answer",
        [False, False, True, True],
    )


def test_a_token_that_only_begins_a_character_shares_its_fate() -> None:
    assert survivors([b"a", b"\xe2", b"\x82\xac", b"b"], ["€"]) == ("a", [True, False, False, False])
    assert survivors([b"\xe2", b"\x82\xac", b"STOP"], ["STOP"]) == ("€", [True, True, False])


def test_a_swallowed_token_keeps_its_record_unless_it_lies_behind_the_stop() -> None:
    assert survivors([b"ok", b""], ["STOP"]) == ("ok", [True, True])
    assert survivors([b"ok", b"", b"STOP", b""], ["STOP"]) == ("ok", [True, True, False, False])


def test_add_returns_the_text_of_the_record_and_finish_the_dangling_tail() -> None:
    spans = RecordSpans()
    assert [spans.add(b"\xe2"), spans.add(b"\x82\xac!"), spans.add(b"\xf0"), spans.finish()] == [
        "",
        "€!",
        "",
        "\ufffd",
    ]
    assert len(spans) == 3


@given(st.data(), dense_texts(["STOP", "é", "<|user|>"]), st.booleans())
def test_without_straddling_the_surviving_records_spell_the_surviving_text(
    data: st.DataObject, text: str, leading: bool
) -> None:
    encoded = text.encode()
    payloads = data.draw(cuts(encoded))
    stops = ["STOP", "<|user|>"]
    surviving, flags = survivors(payloads, stops, leading)
    kept = b"".join(payload for payload, flag in zip(payloads, flags, strict=True) if flag)
    single = [encoded[place : place + 1] for place in range(len(encoded))]
    text_of_singles, single_flags = survivors(single, stops, leading)
    exact = b"".join(payload for payload, flag in zip(single, single_flags, strict=True) if flag)
    assert text_of_singles == surviving == exact.decode()
    assert len(kept) <= len(exact)
