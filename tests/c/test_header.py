"""The C header: it compiles everywhere without a warning, and it is of one mind with the Python reader."""

from __future__ import annotations

import json
import math
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codegen.resolve import load_model
from generated.commands import CommandReader, Refusal
from generated.frames import FrameReader, ProtocolFault

from .conftest import C_COMPILERS, CPP_COMPILERS, INCLUDE, NO_COMPILER, ROOT, build

MODEL = load_model(ROOT / "spec" / "protocol.yaml")
FRAMES = [example.data for message in MODEL.frames for example in message.examples]
COMMANDS = [example.data for message in MODEL.commands for example in message.examples]

pytestmark = pytest.mark.skipif(not C_COMPILERS, reason=NO_COMPILER)


@pytest.mark.parametrize("sides", [(), ("-DCOLIBRI_GATEWAY_SIDE",)], ids=["engine-side", "both-sides"])
@pytest.mark.parametrize(
    ("compiler", "standard"),
    [(name, "c11") for name in C_COMPILERS] + [(name, "c++17") for name in CPP_COMPILERS],
)
def test_compiles_without_a_warning(tmp_path, compiler, standard, sides):
    source = tmp_path / ("main.c" if standard == "c11" else "main.cpp")
    source.write_text('#include "colibri_wire.h"\nint main(void) { return 0; }\n')
    build(source, tmp_path / "main", compiler, f"-std={standard}", "-O2", *sides)


def test_every_reader_and_writer_compiles_optimised_without_a_warning(tmp_path):
    """Some warnings need the optimiser, which skips what is not called; this program calls everything."""
    build(INCLUDE / "agree.c", tmp_path / "agree", C_COMPILERS[0], "-std=c11", "-O1")


def test_header_needs_no_allocation_and_no_stdio_on_the_engine_side():
    text = (INCLUDE / "colibri_wire.h").read_text()
    engine_side, gateway_side = "", False
    for line in text.splitlines():
        gateway_side = gateway_side or line == "#ifdef COLIBRI_GATEWAY_SIDE"
        engine_side += "" if gateway_side else line + "\n"
        gateway_side = gateway_side and not line.startswith("#endif")
    code = re.sub(r"/\*.*?\*/|//[^\n]*", "", engine_side, flags=re.DOTALL)
    forbidden = r"\b(malloc|calloc|realloc|free|alloca|FILE|printf|sprintf|snprintf|puts|stdio)\b"
    assert "colibri_write_echo" in code and "colibri_read_command" in code
    assert re.findall(forbidden, code) == []


@pytest.mark.parametrize("compiler", C_COMPILERS)
def test_fixed_point_bytes_equal_snprintf(tmp_path, compiler):
    program = build(Path(__file__).parent / "fixed.c", tmp_path / "fixed", compiler, "-std=c11", "-O2")
    done = subprocess.run([str(program)], capture_output=True, text=True, timeout=100)
    assert done.stdout == "equal\n"


# ---------------------------------------------------------------- agreement with Python


def first_of(direction: str, data: bytes):
    """What Python makes of the first message in ``data``; None when it is not complete."""
    reader = FrameReader(handshake=False) if direction == "frame" else CommandReader()
    found = reader.feed(data)
    return found[0] if found else None


def assert_agreement(agree, direction: str, data: bytes) -> None:
    """C and Python accept the same bytes, give the same values, refuse with the same fault."""
    ours = first_of(direction, data)
    theirs = agree.ask(direction, data)
    if ours is None:
        assert theirs == "more"
    elif isinstance(ours, Refusal):
        assert theirs == f"refused {ours.id} {ours.code} {ours.field} {ours.rule}"
    elif isinstance(ours, ProtocolFault):
        assert theirs == f"fault {ours.field} {ours.rule}"
    else:
        *values, written = theirs.split(" ")
        assert values[:2] == [direction, ours.KIND]
        assert_same_values(ours, dict(value.split("=", 1) for value in values[2:]))
        again = first_of(direction, bytes.fromhex(written))
        if ours.as_dict().get("id") == 0 and ours.KIND != "ERROR":
            assert again is None  # it names no request, and no writer writes that
        else:
            assert_close(ours, again)


def assert_same_values(message, printed: dict[str, str]) -> None:
    for name in message.__match_args__:
        value = getattr(message, name)
        if value is None:
            assert name not in printed
            continue
        text = printed.pop(name)
        if isinstance(value, bool | int):
            assert int(text) == value
        elif isinstance(value, float):
            assert same_float(float.fromhex(text), value)
        elif isinstance(value, bytes):
            assert bytes.fromhex(text) == value
        elif isinstance(value, str):
            assert bytes.fromhex(text).decode("utf-8", "replace") == value
        else:
            assert_same_list(value, text)
    assert set(printed) <= {"k"}


def assert_same_list(value: tuple, text: str) -> None:
    if text.startswith(",") or not value:
        parts = text.split(",")[1:]
        assert len(parts) == len(value)
        for part, expected in zip(parts, value, strict=True):
            assert (
                int(part) == expected
                if isinstance(expected, int)
                else same_float(float.fromhex(part), expected)
            )
    else:
        words = bytes.fromhex(text).replace(b"\t", b" ").split(b" ")
        assert tuple(word.decode("utf-8", "replace") for word in words if word) == value


def same_float(left: float, right: float) -> bool:
    return left == right or (math.isnan(left) and math.isnan(right))


def assert_close(message, again) -> None:
    """A message written again is the same message up to the decimals of its writer."""
    assert type(again) is type(message)
    for value, other in zip(message.as_dict().values(), again.as_dict().values(), strict=True):
        if isinstance(value, float) and not math.isnan(value) and not math.isinf(value):
            assert other == pytest.approx(value, rel=1e-7, abs=0.00051)
        elif not isinstance(value, float | tuple):
            assert other == value


@pytest.mark.parametrize(("direction", "file"), [("frame", "frames.json"), ("command", "commands.json")])
def test_agrees_on_every_vector(agree, direction, file):
    vectors = json.loads((ROOT / "generated" / "vectors" / file).read_text(encoding="utf-8"))
    assert len(vectors) > 250
    for vector in vectors:
        assert_agreement(agree, direction, bytes.fromhex(vector["hex"]))


@pytest.mark.parametrize("data", FRAMES, ids=range(len(FRAMES)))
def test_agrees_on_every_frame_of_the_spec(agree, data):
    assert_agreement(agree, "frame", data)


@pytest.mark.parametrize("data", COMMANDS, ids=range(len(COMMANDS)))
def test_agrees_on_every_command_of_the_spec(agree, data):
    assert_agreement(agree, "command", data)


WORDS = (
    "0 1 -1 +1 00 -0 2 32 33 65536 65537 1.5 -1.25 1e3 1e-50 .5 5. . nan inf -inf NaN -nan x 1_0 0x10 0a 0g "
    "é 18446744073709551615 18446744073709551616 4294967296 2147483648 123456789.123456789123456789 "
    "logprobs=1 ids=1 pin=2 logprobs= wish=1 =1 logprobs=00000000001 STAT ACCEPT DATA SUBMIT"
)
NUMBERS = st.sampled_from([*WORDS.split(), "", "9" * 400, f"0.{'0' * 400}1", "\x00", "a\rb"]).map(str.encode)


@st.composite
def mutated(draw, examples: list[bytes]) -> bytes:
    """An example with words dropped, doubled, swapped, replaced or glued, or its bytes cut or changed."""
    header, line_feed, rest = draw(st.sampled_from(examples)).partition(b"\n")
    words = header.split(b" ")
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(words) - 1)) if words else 0
        change = draw(st.sampled_from(["drop", "double", "swap", "replace", "glue", "insert"]))
        if not words or change == "insert":
            words.insert(place, draw(NUMBERS))
        elif change == "drop":
            del words[place]
        elif change == "double":
            words.insert(place, words[place])
        elif change == "swap":
            other = draw(st.integers(0, len(words) - 1))
            words[place], words[other] = words[other], words[place]
        elif change == "replace":
            words[place] = draw(NUMBERS)
        else:
            words[place] += draw(NUMBERS)
    separator = draw(st.sampled_from([b" ", b" ", b"  ", b"\t", b" \t "]))
    data = draw(st.sampled_from([b"", b"", b"\n", b" \n"])) + separator.join(words) + line_feed + rest
    if draw(st.booleans()):
        return data
    cut = draw(st.integers(0, len(data)))
    return data[:cut] + draw(st.binary(max_size=2)) + data[draw(st.integers(cut, len(data))) :]


RELAXED = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))


@RELAXED
@given(data=mutated(FRAMES))
def test_agrees_on_mutated_frames(agree, data):
    assert_agreement(agree, "frame", data)


@RELAXED
@given(data=mutated(COMMANDS))
def test_agrees_on_mutated_commands(agree, data):
    assert_agreement(agree, "command", data)


def test_agrees_on_a_header_line_over_the_limit(agree):
    assert_agreement(agree, "command", b"STOP " + b" " * 5000 + b"7\n")
