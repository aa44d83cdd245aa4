"""The frame reader and the frame writers, against the strategies that follow from the spec."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generated import frames, limits, wire
from generated.testing import strategies as given_by_spec

SHAPES = {shape.message.KIND: shape for shape in given_by_spec.FRAME_SHAPES if not shape.lead}
READY = given_by_spec.FRAME_SHAPES[-1]
WAYS = [(kind, way) for kind, shape in SHAPES.items() for way in given_by_spec.ways_of(shape, fatal=True)]

BEFORE = b"ECHO 9 2 0 nan 0\n\n\n\n"
AFTER = b"DATA 9 3\nok\n\nACCEPT 9 1 more\n"


def read(pieces: list[bytes], *, handshake: bool = False) -> list[object]:
    """Everything a fresh reader says to ``pieces`` and to the end of the stream."""
    reader = frames.FrameReader(handshake=handshake)
    said = [item for piece in pieces for item in reader.feed(piece)]
    end = reader.eof()
    return said if end is None else [*said, end]


def bytewise(data: bytes) -> list[bytes]:
    return [data[place : place + 1] for place in range(len(data))]


def assert_fault(item: object, kind: str, field: str, rule: str) -> None:
    assert isinstance(item, frames.ProtocolFault)
    assert (item.kind, item.field, item.rule) == (kind, field, rule)


def test_every_frame_of_the_spec_has_a_shape() -> None:
    assert [frame.KIND for frame in frames.FRAMES] == list(SHAPES)


@pytest.mark.parametrize("kind", SHAPES)
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_a_valid_frame_is_read_whole_bytewise_and_with_more_behind_it(kind: str, data: st.DataObject) -> None:
    sample = data.draw(given_by_spec.valid(SHAPES[kind]))
    [message] = read([sample.data])
    assert given_by_spec.same(message, sample.message)
    assert repr(read(bytewise(sample.data))) == repr([sample.message])
    assert repr(read([sample.data + BEFORE + AFTER])) == repr([sample.message, *read([BEFORE, AFTER])])


@settings(max_examples=80, deadline=None)
@given(st.lists(given_by_spec.valid_frames(), min_size=1, max_size=6), st.data())
def test_any_split_of_any_stream_gives_the_same_frames(
    samples: list[given_by_spec.Sample], data: st.DataObject
) -> None:
    stream = b"".join(sample.data for sample in samples)
    pieces = data.draw(given_by_spec.pieces(stream))
    assert repr(read(pieces)) == repr([sample.message for sample in samples])


@pytest.mark.parametrize(("kind", "way"), WAYS, ids=lambda name: name)
@settings(max_examples=5, deadline=None)
@given(st.data())
def test_each_malformation_raises_its_own_fault_and_nothing_else(
    kind: str, way: str, data: st.DataObject
) -> None:
    bad = data.draw(given_by_spec.broken(SHAPES[kind], way, fatal=True))
    stream = BEFORE + bad.data + AFTER
    said = []
    for pieces in ([stream], bytewise(stream), data.draw(given_by_spec.pieces(stream))):
        first, fault = read(pieces)
        assert repr([first]) == repr(read([BEFORE]))
        assert_fault(fault, bad.kind, bad.field, bad.rule)
        said.append(repr(fault))
    assert len(set(said)) == 1, "what a fault shows must not depend on the split"


@pytest.mark.parametrize("kind", SHAPES)
@settings(max_examples=8, deadline=None)
@given(st.data())
def test_a_stream_that_ends_inside_a_frame_is_truncated(kind: str, data: st.DataObject) -> None:
    spelled = data.draw(given_by_spec.spellings(SHAPES[kind]))
    whole = spelled.data()
    end = data.draw(st.integers(1, len(whole) - 1))
    [fault] = read([whole[:end]])
    header_is_complete = end > len(spelled.header())
    assert_fault(fault, kind if header_is_complete else "", "", "truncated")


@settings(max_examples=40, deadline=None)
@given(given_by_spec.valid(READY), st.binary(max_size=60), st.data())
def test_the_banner_is_discarded_and_ready_comes_first(
    ready: given_by_spec.Sample, banner: bytes, data: st.DataObject
) -> None:
    stream = banner.replace(frames.SENTINEL, b"") + ready.data + AFTER
    expected = repr([ready.message, *read([AFTER])])
    for pieces in ([stream], bytewise(stream), data.draw(given_by_spec.pieces(stream))):
        assert repr(read(pieces, handshake=True)) == expected


@pytest.mark.parametrize("stream", [b"", b"loading\n", frames.SENTINEL, frames.SENTINEL + b"STAT 0 0 0"])
def test_an_engine_that_ends_before_it_is_ready_is_truncated(stream: bytes) -> None:
    [fault] = read([stream], handshake=True)
    assert_fault(fault, "READY", "", "truncated")


@pytest.mark.parametrize("line", [b"DATA 1 2\n", b"ACCEPT 1 2\n", b"stat 0 0 0 0\n"])
def test_only_the_stat_line_may_follow_the_sentinel(line: bytes) -> None:
    [fault] = read([frames.SENTINEL + line], handshake=True)
    assert_fault(fault, "READY", "", "constant")


def test_a_second_handshake_is_no_frame() -> None:
    [_, fault] = read([frames.SENTINEL + b"STAT 0 0 0 0\nSTAT 0 0 0 0\n"], handshake=True)
    assert_fault(fault, "", "", "unknown_kind")


def test_the_banner_is_not_kept() -> None:
    reader = frames.FrameReader()
    for _ in range(100):
        assert reader.feed(b"\x01\x01READY" * 1000) == []
    assert len(reader._banner or b"") < len(frames.SENTINEL)


# ---------------------------------------------------------------- limits


@pytest.mark.parametrize("split", [1 << 20, 64 * 1024])
def test_a_line_of_the_limit_is_read_and_one_byte_more_is_not(split: int) -> None:
    def chop(data: bytes) -> list[bytes]:
        return [data[place : place + split] for place in range(0, len(data), split)]

    words = b"PERF "
    longest = words + b"x" * (limits.FRAME_LINE_BYTES - len(words))
    [message] = read(chop(longest + b"\n"))
    assert isinstance(message, frames.Perf)
    assert len(message.text) == limits.FRAME_LINE_BYTES - len(words)
    for stream in (longest + b"x\n", longest + b"x", longest + b"x\nDATA 1 0\n\n"):
        [fault] = read(chop(stream))
        assert_fault(fault, "", "", "line_limit")
        assert isinstance(fault, frames.ProtocolFault)
        assert fault.excerpt == longest[: wire.EXCERPT_BYTES]


def test_the_line_limit_is_noticed_before_the_line_ends() -> None:
    reader = frames.FrameReader(handshake=False)
    for _ in range(limits.FRAME_LINE_BYTES // 4096):
        assert reader.feed(b"x" * 4096) == []
    [fault] = reader.feed(b"x")
    assert_fault(fault, "", "", "line_limit")


@pytest.mark.parametrize(("end", "rule"), [(b"", "range"), (b".", "range"), (b"x", "word"), (b".0.", "word")])
def test_a_number_as_long_as_a_line_is_judged_at_once(end: bytes, rule: str) -> None:
    """In more than linear time this would take hours."""
    digits = b"1" * (limits.FRAME_LINE_BYTES - 100)
    [fault] = read([b"PROF " + digits + end + b" 1 1 1 1 1 1 1 1\n"])
    assert_fault(fault, "PROF", "wall_s", rule)


def test_the_largest_payload_is_read_and_a_larger_one_is_refused_before_it_comes() -> None:
    payload = bytes(range(256)) * (limits.PAYLOAD_BYTES // 256)
    stream = b"DATA 3 %d\n%b\n" % (len(payload), payload)
    assert read([stream]) == [frames.Data(3, payload)]
    assert read([stream[place : place + 1000] for place in range(0, len(stream), 1000)]) == [
        frames.Data(3, payload)
    ]
    reader = frames.FrameReader(handshake=False)
    [fault] = reader.feed(b"DATA 3 %d\n" % (limits.PAYLOAD_BYTES + 1))
    assert_fault(fault, "DATA", "size", "range")


def test_after_a_fault_nothing_is_said_any_more() -> None:
    reader = frames.FrameReader(handshake=False)
    assert len(reader.feed(b"DATA 1 x\n")) == 1
    assert reader.feed(b"DATA 1 1\na\n") == []
    assert reader.eof() is None


def test_many_different_headers_are_not_all_remembered() -> None:
    reader = frames.FrameReader(handshake=False)
    for number in range(1, 9001):
        assert reader.feed(b"DATA %d 1\na\n" % number) == [frames.Data(number, b"a")]
    assert len(reader._headers) <= 4096


def test_bytes_like_input_is_taken() -> None:
    reader = frames.FrameReader(handshake=False)
    assert reader.feed(bytearray(b"DATA 1 1\n")) == []
    assert reader.feed(memoryview(b"a\n")) == [frames.Data(1, b"a")]


def test_a_fault_says_where_and_what_in_one_line() -> None:
    [fault] = read([b"ECHO 7 2 0 nan 33\nhi\n"])
    assert str(fault) == ("message ECHO, field k: the value is out of range (range), at b'ECHO 7 2 0 nan 33'")


# ---------------------------------------------------------------- tables


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_reading_a_table_at_once_agrees_with_reading_it_word_by_word(data: st.DataObject) -> None:
    """Random words in the place of a table: both roads accept the same lines with the same values."""
    word = st.sampled_from(
        [
            "0",
            "-0",
            "7",
            "007",
            "1.5",
            "-1.5",
            "-0.0",
            "5.",
            ".5",
            "+1",
            "nan",
            "-inf",
            "1e5",
            "x",
            "2147483648",
        ]
    )
    count = data.draw(st.integers(0, 3))
    words = data.draw(st.lists(word, min_size=2 * count, max_size=2 * count))
    head = data.draw(st.sampled_from(["ECHO 7 0 1 -0.5", "ECHO 7 0 -0 1", "DATA 7 0 -2", "DATA 1.0 0 -2"]))
    line = " ".join([head, str(count), *words])
    plain = read([line.encode() + b"\n\n"])
    careful = read([line.replace(" ", "  ").encode() + b"\n\n"])
    if isinstance(plain[0], frames.ProtocolFault):
        assert isinstance(careful[0], frames.ProtocolFault)
        assert (plain[0].field, plain[0].rule) == (careful[0].field, careful[0].rule)
    else:
        assert repr(plain) == repr(careful)


# ---------------------------------------------------------------- writers


def in_writer_form(message: wire.Message) -> bytes:
    """``message`` through its writer."""
    writer = getattr(frames, f"write_{message.KIND.lower()}")
    values = message.as_dict()
    for name in ("words", "names"):
        if name in values:
            rest = values.pop(name)
            return bytes(writer(*values.values(), *rest))
    return bytes(
        writer(
            **{
                name: () if value is None and name.startswith("token") else value
                for name, value in values.items()
            }
        )
    )


def rounded(value: object, decimals: int) -> object:
    if isinstance(value, float) and math.isfinite(value):
        return float(f"{value:.{decimals}f}")
    return tuple(rounded(part, decimals) for part in value) if isinstance(value, tuple) else value


@pytest.mark.parametrize("kind", [*SHAPES, "READY"])
@settings(max_examples=15, deadline=None)
@given(st.data())
def test_what_a_writer_writes_is_read_back(kind: str, data: st.DataObject) -> None:
    """Up to the decimals of the writer, which are the spec's."""
    shape = READY if kind == "READY" else SHAPES[kind]
    message = data.draw(given_by_spec.valid(shape)).message
    if any("\ufffd" in word for name in ("words", "names") for word in getattr(message, name, ())):
        return  # bytes that are no UTF-8 have no spelling in text
    written = in_writer_form(message)
    [again] = read([written], handshake=kind == "READY")
    assert in_writer_form(again) == written
    for name, value in message.as_dict().items():
        assert repr(getattr(again, name)) in {repr(rounded(value, 3)), repr(rounded(value, 6))}


WRITTEN = [
    (frames.write_accept(7, 12), b"ACCEPT 7 12\n"),
    (frames.write_data(7, b"abc"), b"DATA 7 3\nabc\n"),
    (frames.write_data(7, b"", -0.5), b"DATA 7 0 -0.500000 0\n\n"),
    (frames.write_data(7, b"a", math.nan, [42, 5], [-0.5, -math.inf]),
     b"DATA 7 1 nan 2 42 -0.500000 5 -inf\na\n"),
    (frames.write_echo(7, b"hi", 0, math.nan), b"ECHO 7 2 0 nan 0\nhi\n"),
    (frames.write_tool(7, b""), b"TOOL 7 0\n\n"),
    (frames.write_done(7, 2, 2.5, 0.0, 1.0), b"DONE 7 STAT 2 2.500 0.000 1.000\n"),
    (frames.write_done(7, 2, 2.5, 0.0, 1.0, 7, 0), b"DONE 7 STAT 2 2.500 0.000 1.000 7 0\n"),
    (frames.write_error(7, "CONTEXT_EXCEEDED", "9", "8"), b"ERROR 7 CONTEXT_EXCEEDED 9 8\n"),
    (frames.write_error(0), b"ERROR 0\n"),
    (frames.write_ready(0, 0.0, 0.0, 1.0), b"\x01\x01READY\x01\x01\nSTAT 0 0.000 0.000 1.000\n"),
    (frames.write_hwinfo(16.0, 64.0, 32.0, 0.0, 0.0, "A", "CPU|"),
     b"HWINFO 16.000 64.000 32.000 0.000 0.000 A CPU|\n"),
    (frames.write_emap(1, 2, "0a0b"), b"EMAP 1 2 0a0b\n"),
    (frames.write_grpp(9, 0, math.nan, 0, b"ZZ"), b"GRPP 9 2 0 nan 0\nZZ\n"),
]  # fmt: skip


@pytest.mark.parametrize(("written", "expected"), WRITTEN, ids=range(len(WRITTEN)))
def test_the_bytes_of_a_writer(written: bytes, expected: bytes) -> None:
    assert written == expected


REFUSED = [
    (lambda: frames.write_accept(0, 12), "ACCEPT", "id", "range"),
    (lambda: frames.write_accept(2**64, 12), "ACCEPT", "id", "range"),
    (lambda: frames.write_data(7, b"x" * 65537), "DATA", "size", "range"),
    (lambda: frames.write_data(7, b"", None, [1], [0.5]), "DATA", "logprob", "missing"),
    (lambda: frames.write_data(7, b"", -1.0, [1], []), "DATA", "token_logprob", "count"),
    (lambda: frames.write_data(7, b"", -1.0, [0] * 33, [0.0] * 33), "DATA", "k", "range"),
    (lambda: frames.write_data(7, b"", -1.0, [-1], [0.5]), "DATA", "token", "range"),
    (lambda: frames.write_echo(7, b"", 2**32, -1.0), "ECHO", "position", "range"),
    (lambda: frames.write_done(7, 1, math.inf, 0.0, 0.0), "DONE", "tokens_per_second", "range"),
    (lambda: frames.write_done(7, 1, 0.0, 0.0, 0.0, None, 1), "DONE", "prompt_tokens", "missing"),
    (lambda: frames.write_done(7, 1, 0.0, 0.0, 0.0, 1, 2), "DONE", "length_limited", "range"),
    (lambda: frames.write_error(7, "two words"), "ERROR", "words", "word"),
    (lambda: frames.write_error(7, ""), "ERROR", "words", "word"),
    (lambda: frames.write_error(7, "\ud800"), "ERROR", "words", "word"),
    (lambda: frames.write_perf(), "PERF", "words", "word_count"),
    (lambda: frames.write_emap(1, 1, "0g"), "EMAP", "cells", "word"),
    (lambda: frames.write_emap(1, 1, ""), "EMAP", "cells", "word"),
]


@pytest.mark.parametrize(("write", "kind", "field", "rule"), REFUSED, ids=range(len(REFUSED)))
def test_a_writer_refuses_what_the_wire_does_not_carry(
    write: object, kind: str, field: str, rule: str
) -> None:
    with pytest.raises(wire.FieldError) as caught:
        write()  # type: ignore[operator]
    assert (caught.value.kind, caught.value.field, caught.value.rule) == (kind, field, rule)


def test_frames_of_different_kinds_are_never_equal() -> None:
    alike = [frames.Perf(("x",)), frames.Entropy(("x",)), frames.Gpus(("x",))]
    assert all(left != right for left, right in pairwise(alike))
    assert frames.Perf(("x",)) == frames.Perf(("x",))


def test_groups_of_kinds() -> None:
    assert [kind.KIND for kind in frames.NO_EFFECT] == ["GRPP", "GRPG", "GRPS", "GRPE"]
    assert [kind.KIND for kind in frames.ADVISORY] == ["PERF", "ENTROPY", "GPUS", "TOPK", "REPIN"]
    assert [kind.KIND for kind in frames.TELEMETRY] == [
        "PROF", "TIERS", "HWINFO", "EMAP", "HITS", "PERF", "ENTROPY", "GPUS", "TOPK", "REPIN"
    ]  # fmt: skip
