"""Many pieces in one go: what passes by the pipeline comes out as if it had been fed piece by piece."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from server.text.pieces import ContentDelta
from server.text.pipeline import Pipeline, Thinking

PIECES = st.lists(st.sampled_from([b"a", b"bc", b" ", b"</", b"think>", b"X", b"EN", b"D"]), max_size=8)


def started(**options: object) -> Pipeline:
    pipeline = Pipeline(**options)  # type: ignore[arg-type]
    pipeline.feed(b"a")
    return pipeline


@given(
    st.lists(PIECES, max_size=5), st.sampled_from([(), ("END",), ("b", "X")]), st.sampled_from(list(Thinking))
)
def test_section_15_passing_by_equals_feeding(
    batches: list[list[bytes]], stops: tuple[str, ...], thinking: Thinking
) -> None:
    one, other = (started(stops=stops, thinking=thinking) for _ in range(2))
    texts, fed = [], []
    for batch in batches:
        if one.pass_by(b"".join(batch)):
            texts += [ContentDelta(piece.decode()) for piece in batch]
        else:
            texts += [piece for data in batch for piece in one.feed(data)]
        fed += [piece for data in batch for piece in other.feed(data)]
    assert texts + one.finish() == fed + other.finish()
    assert one.removed == other.removed
    assert one.stop_sequence == other.stop_sequence


def test_text_with_half_a_character_before_it_does_not_pass_by() -> None:
    pipeline = started()
    assert pipeline.pass_by(b"plain")
    assert pipeline.feed(b"\xc3") == []
    assert not pipeline.pass_by(b"plain")
    assert pipeline.feed(b"\xa9") == [ContentDelta("é")]


def test_reasoning_and_text_that_may_begin_a_marker_do_not_pass_by() -> None:
    assert not started(thinking=Thinking.ON).pass_by(b"plain")
    assert not started(stops=("END",)).pass_by(b"blEnd")
    assert started(stops=("END",)).pass_by(b"blend")
