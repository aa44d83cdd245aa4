"""The command reader and the command writers: framing before meaning, and exact bytes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generated import commands, limits, wire
from generated.commands import Cancel, CommandReader, Image, ProtocolFault, Refusal, Stop, Submit
from generated.testing import strategies as given_by_spec

SHAPES = {shape.message.KIND: shape for shape in given_by_spec.COMMAND_SHAPES}
WAYS = [(kind, way) for kind, shape in SHAPES.items() for way in given_by_spec.ways_of(shape, fatal=False)]
BEFORE = b"CANCEL 9\n"
AFTER = b"SUBMIT 9 0 8 1 0 1\nCANCEL 8\nSTOP 9\n"
"""A payload that looks like a command, and a command."""


def read(pieces: list[bytes]) -> list[object]:
    """Everything a fresh reader says to ``pieces`` and to the end of the stream."""
    reader = CommandReader()
    said = [item for piece in pieces for item in reader.feed(piece)]
    end = reader.eof()
    return said if end is None else [*said, end]


def bytewise(data: bytes) -> list[bytes]:
    return [data[place : place + 1] for place in range(len(data))]


def test_every_command_of_the_spec_has_a_shape() -> None:
    assert [command.KIND for command in commands.COMMANDS] == list(SHAPES)


@pytest.mark.parametrize("kind", SHAPES)
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_valid_command_is_read_however_it_is_cut(kind: str, data: st.DataObject) -> None:
    sample = data.draw(given_by_spec.valid(SHAPES[kind]))
    stream = sample.data + AFTER
    expected = repr([sample.message, *read([AFTER])])
    for pieces in ([stream], bytewise(stream), data.draw(given_by_spec.pieces(stream))):
        assert repr(read(pieces)) == expected


@pytest.mark.parametrize(("kind", "way"), WAYS, ids=lambda name: name)
@settings(max_examples=12, deadline=None)
@given(st.data())
def test_each_malformation_is_refused_by_its_rule_and_the_stream_goes_on(
    kind: str, way: str, data: st.DataObject
) -> None:
    bad = data.draw(given_by_spec.broken(SHAPES[kind], way, fatal=False))
    stream = BEFORE + bad.data + AFTER
    for pieces in ([stream], bytewise(stream), data.draw(given_by_spec.pieces(stream))):
        said = read(pieces)
        assert said[0] == Cancel(9)
        if bad.fatal:
            fault = said[1]
            assert isinstance(fault, ProtocolFault)
            assert (fault.kind, fault.field, fault.rule) == (bad.kind, bad.field, bad.rule)
            assert (fault.wire_code, fault.id) == ("BAD_FRAME", bad.request_id)
            assert len(said) == 2
        else:
            refusal = Refusal(bad.request_id, "BAD_REQUEST", bad.field, bad.rule, bad.kind)
            assert said[1:] == [refusal, *read([AFTER])]


@pytest.mark.parametrize("kind", SHAPES)
@settings(max_examples=20, deadline=None)
@given(st.data())
def test_a_stream_that_ends_inside_a_command_is_truncated(kind: str, data: st.DataObject) -> None:
    spelled = data.draw(given_by_spec.spellings(SHAPES[kind]))
    whole = spelled.data()
    end = data.draw(st.integers(1, len(whole) - 1))
    [fault] = read([whole[:end]])
    assert isinstance(fault, ProtocolFault)
    assert (fault.rule, fault.wire_code) == ("truncated", "BAD_FRAME")
    assert fault.kind == (kind if end > len(spelled.header()) else "")


# ---------------------------------------------------------------- framing before meaning


def test_the_payload_of_a_refused_header_is_never_read_as_commands() -> None:
    payload = b"hello\nCANCEL 1\nSUBMIT 2 0 3 1 0 1\nabc\n"
    stream = b"SUBMIT 5 0 %d 16 9.5 1\n%b\nSTOP 1\n" % (len(payload), payload)
    assert read([stream]) == [Refusal(5, "BAD_REQUEST", "temperature", "range", "SUBMIT"), Stop(1)]


@pytest.mark.parametrize(
    ("header", "payload_bytes", "refusal"),
    [
        (b"SUBMIT 5 0 5", 5, Refusal(5, "BAD_REQUEST", "", "word_count", "SUBMIT")),
        (b"SUBMIT 5 0 5 16 0", 5, Refusal(5, "BAD_REQUEST", "", "word_count", "SUBMIT")),
        (b"SUBMIT 0 0 5 16 0 1", 5, Refusal(0, "BAD_REQUEST", "id", "range", "SUBMIT")),
        (b"SUBMIT x 0 5 16 0 1", 5, Refusal(0, "BAD_REQUEST", "id", "word", "SUBMIT")),
        (b"SUBMIT 5 -1 5 16 0 1", 5, Refusal(5, "BAD_REQUEST", "slot", "range", "SUBMIT")),
        (b"SUBMIT 5 0 5 16 0 1 4 wish=1", 9, Refusal(5, "BAD_REQUEST", "wish", "unknown_key", "SUBMIT")),
        (b"SUBMIT 5 0 5 16 0 1 4x", 5, Refusal(5, "BAD_REQUEST", "extra_size", "word", "SUBMIT")),
        (b"SUBMIT 5 0 16777217 16 0 1", 16777217, Refusal(5, "BAD_REQUEST", "prompt_size", "range", "SUBMIT")),  # noqa: E501
        (b"SUBMIT 5 0 1 16 0 1 1048577", 1048578, Refusal(5, "BAD_REQUEST", "extra_size", "range", "SUBMIT")),
        (b"IMAGE 5 7 0 2", 7, Refusal(5, "BAD_REQUEST", "grid_h", "range", "IMAGE")),
        (b"IMAGE 5 7", 7, Refusal(5, "BAD_REQUEST", "", "word_count", "IMAGE")),
        (b"IMAGE 5 67108865 2 2", 67108865, Refusal(5, "BAD_REQUEST", "image_size", "range", "IMAGE")),
    ],
)  # fmt: skip
def test_whatever_is_wrong_with_a_header_its_payload_is_consumed(
    header: bytes, payload_bytes: int, refusal: Refusal
) -> None:
    reader = CommandReader()
    said = reader.feed(header + b"\n")
    piece, held = b"STOP 9\n" * 9362, 0  # 64 KiB that would be commands if anybody read them
    for start in range(0, payload_bytes, len(piece)):
        assert said == []
        said = reader.feed(piece[: payload_bytes - start])
        held = max(held, reader._held)
    assert held <= len(piece), "a payload that will be refused is not kept"
    assert said + reader.feed(b"\nSTOP 1\n") == [refusal, Stop(1)]


@pytest.mark.parametrize(
    ("header", "refusal"),
    [
        (b"SUBMIT 5 0", Refusal(5, "BAD_REQUEST", "", "word_count", "SUBMIT")),
        (b"SUBMIT 5 0 five 16 0 1", Refusal(5, "BAD_REQUEST", "prompt_size", "word", "SUBMIT")),
        (b"SUBMIT 5 0 -5 16 0 1", Refusal(5, "BAD_REQUEST", "prompt_size", "range", "SUBMIT")),
        (
            b"SUBMIT 5 0 99999999999999999999 16 0 1",
            Refusal(5, "BAD_REQUEST", "prompt_size", "range", "SUBMIT"),
        ),
        (b"STOP", Refusal(0, "BAD_REQUEST", "", "word_count", "STOP")),
        (b"CANCEL 5 6", Refusal(5, "BAD_REQUEST", "", "word_count", "CANCEL")),
        (b"HELLO 5", Refusal(0, "BAD_REQUEST", "", "unknown_kind")),
        (b"submit 5 0 5 16 0 1", Refusal(0, "BAD_REQUEST", "", "unknown_kind")),
    ],
)
def test_a_header_that_names_no_payload_is_refused_at_once(header: bytes, refusal: Refusal) -> None:
    assert read([header + b"\nSTOP 1\n"]) == [refusal, Stop(1)]


def test_a_wrong_terminator_after_a_refused_header_is_fatal_too() -> None:
    [fault] = read([b"SUBMIT 5 0 2 16 9 1\nhiX\nSTOP 1\n"])
    assert isinstance(fault, ProtocolFault)
    assert (fault.kind, fault.rule, fault.wire_code, fault.id) == ("SUBMIT", "terminator", "BAD_FRAME", 5)


def test_a_stream_that_ends_in_a_payload_to_be_dropped_is_truncated() -> None:
    [fault] = read([b"SUBMIT 5 0 20 16 9 1\nhi"])
    assert isinstance(fault, ProtocolFault)
    assert (fault.kind, fault.rule, fault.id) == ("SUBMIT", "truncated", 5)


@pytest.mark.parametrize("cut", [1, 100, 4096, 10000])
def test_a_line_over_the_limit_is_fatal(cut: int) -> None:
    longest = b"STOP 7" + b" " * (limits.COMMAND_LINE_BYTES - 6)
    assert read([longest + b"\n"]) == [Stop(7)]
    stream = BEFORE + longest + b" \nSTOP 1\n"
    first, fault = read([stream[place : place + cut] for place in range(0, len(stream), cut)])
    assert first == Cancel(9)
    assert isinstance(fault, ProtocolFault)
    assert (fault.kind, fault.rule, fault.wire_code, fault.id) == ("", "line_limit", "BAD_FRAME", 0)


def test_single_precision_decides_about_a_tiny_top_p() -> None:
    """7.0064923e-46 and less round to 0 in single precision, 7.0064924e-46 does not."""
    head = b"SUBMIT 5 0 0 1 0 "
    [good] = read([head + b"7.0064924e-46\n\n"])
    assert isinstance(good, Submit)
    assert good.top_p == 7.0064924e-46
    for tiny in (b"7.0064923e-46", b"1e-50", b"0", b"0e9"):
        assert read([head + tiny + b"\n\n"]) == [Refusal(5, "BAD_REQUEST", "top_p", "range", "SUBMIT")]


# ---------------------------------------------------------------- writers


GOLDEN = [
    (commands.write_submit(1, 0, b"hi", 16, 0.7, 0.9), b"SUBMIT 1 0 2 16 0.7 0.9\nhi\n"),
    (commands.write_submit(1, 0, b"", 1, 0.0, 1.0), b"SUBMIT 1 0 0 1 0 1\n\n"),
    (commands.write_submit(1, 0, b"x", 1, 0.1 + 0.2, 1 / 3), b"SUBMIT 1 0 1 1 0.3 0.33333333\nx\n"),
    (commands.write_submit(1, 0, b"x", 1, 0.123456789012, 1e-5), b"SUBMIT 1 0 1 1 0.12345679 1e-05\nx\n"),
    (commands.write_submit(8, 0, b"hi", 16, 0, 1, b"root"), b"SUBMIT 8 0 2 16 0 1 4\nhiroot\n"),
    (commands.write_submit(7, 1, b"7 2", 16, 0, 1, logprobs=2, ids=1),
     b"SUBMIT 7 1 3 16 0 1 0 logprobs=2 ids=1\n7 2\n"),
    (commands.write_submit(7, 1, b"x", 16, 0, 1, b"g", logprobs=0, ids=0, pin=1),
     b"SUBMIT 7 1 1 16 0 1 1 logprobs=0 ids=0 pin=1\nxg\n"),
    (commands.write_submit(7, 1, b"x", 0, 0, 1, logprobs=1), b"SUBMIT 7 1 1 0 0 1 0 logprobs=1\nx\n"),
    (commands.write_image(3, b"abcd", 2, 2), b"IMAGE 3 4 2 2\nabcd\n"),
    (commands.write_stop(7), b"STOP 7\n"),
    (commands.write_cancel(2**64 - 1), b"CANCEL 18446744073709551615\n"),
]  # fmt: skip


@pytest.mark.parametrize(("written", "expected"), GOLDEN, ids=range(len(GOLDEN)))
def test_the_bytes_of_a_writer(written: bytes, expected: bytes) -> None:
    assert written == expected


REFUSED = [
    (lambda: commands.write_submit(0, 0, b"", 1, 0, 1), "id", "range"),
    (lambda: commands.write_submit(1, 512, b"", 1, 0, 1), "slot", "range"),
    (lambda: commands.write_submit(1, 0, b"x" * 16777217, 1, 0, 1), "prompt_size", "range"),
    (lambda: commands.write_submit(1, 0, b"", 2**31, 0, 1), "max_tokens", "range"),
    (lambda: commands.write_submit(1, 0, b"", 0, 0, 1), "max_tokens", "range"),
    (lambda: commands.write_submit(1, 0, b"", 0, 0, 1, logprobs=0), "max_tokens", "range"),
    (lambda: commands.write_submit(1, 0, b"", 1, 2.0000001, 1), "temperature", "range"),
    (lambda: commands.write_submit(1, 0, b"", 1, float("nan"), 1), "temperature", "range"),
    (lambda: commands.write_submit(1, 0, b"", 1, 0, 0), "top_p", "range"),
    (lambda: commands.write_submit(1, 0, b"", 1, 0, 1.0000001), "top_p", "range"),
    (lambda: commands.write_submit(1, 0, b"", 1, 0, 7.0064923e-46), "top_p", "range"),
    (lambda: commands.write_submit(1, 0, b"", 1, 0, 1, b"x" * 1048577), "extra_size", "range"),
    (lambda: commands.write_submit(1, 0, b"", 1, 0, 1, logprobs=33), "logprobs", "range"),
    (lambda: commands.write_submit(1, 0, b"", 1, 0, 1, ids=2), "ids", "range"),
    (lambda: commands.write_submit(1, 0, b"", 1, 0, 1, pin=-1), "pin", "range"),
    (lambda: commands.write_image(1, b"", 2, 2), "image_size", "range"),
    (lambda: commands.write_image(1, b"x", 0, 2), "grid_h", "range"),
    (lambda: commands.write_stop(0), "id", "range"),
    (lambda: commands.write_cancel(2**64), "id", "range"),
]


@pytest.mark.parametrize(("write", "field", "rule"), REFUSED, ids=range(len(REFUSED)))
def test_a_writer_refuses_what_the_wire_does_not_carry(write: object, field: str, rule: str) -> None:
    with pytest.raises(wire.FieldError) as caught:
        write()  # type: ignore[operator]
    assert (caught.value.field, caught.value.rule) == (field, rule)


@settings(max_examples=80, deadline=None)
@given(given_by_spec.valid(SHAPES["SUBMIT"]))
def test_a_written_submit_is_read_back_in_single_precision(sample: given_by_spec.Sample) -> None:
    """``%.8g`` loses no bit that single precision keeps, and what was accepted once is accepted again."""
    submit = sample.message
    assert isinstance(submit, Submit)
    try:
        written = commands.write_submit(**submit.as_dict())
    except wire.FieldError as error:
        assert error.field == "top_p", "only a top_p that %.8g would round to 0 cannot be written"
        assert submit.top_p < 1e-44
        return
    [again] = read([written])
    assert isinstance(again, Submit)
    assert again.temperature == float(f"{submit.temperature:.8g}")
    assert again.top_p == float(f"{submit.top_p:.8g}")
    expected = submit.as_dict() | {"temperature": again.temperature, "top_p": again.top_p}
    assert again.as_dict() == expected
    assert commands.write_submit(**again.as_dict()) == written


def test_commands_of_different_kinds_are_never_equal() -> None:
    assert Stop(7) != Cancel(7)
    assert Stop(7) == Stop(7)
    assert Image(1, b"", 1, 1) != Submit(1, 0, b"", 1, 0.0, 1.0)
