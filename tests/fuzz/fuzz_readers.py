"""Fuzz target for the Python readers. Run by `invoke fuzz`; all arguments go to libFuzzer.

For any bytes: no exception, the same outcome however the bytes are cut, and nothing after a fault.
"""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[2]))

with atheris.instrument_imports(include=["generated"]):
    from generated import commands, frames


def outcome(reader, pieces: list[bytes]) -> list[str]:
    """Everything the reader says of the pieces, as text (nan is not equal to itself)."""
    found = [item for piece in pieces for item in reader.feed(piece)]
    faults = [place for place, item in enumerate(found) if isinstance(item, frames.ProtocolFault)]
    assert not faults or faults == [len(found) - 1], "something came after a fault"
    end = reader.eof()
    return [f"{type(item).__name__} {item}" for item in found] + [str(end)]


def one_input(data: bytes) -> None:
    """First byte: which reader; second: where to cut the rest."""
    if len(data) < 2:
        return
    kind, cut, rest = data[0] % 3, data[1], data[2:]

    def make():
        return commands.CommandReader() if kind == 2 else frames.FrameReader(handshake=kind == 1)

    whole = outcome(make(), [rest])
    place = cut % (len(rest) + 1)
    assert outcome(make(), [rest[:place], rest[place:]]) == whole
    step = cut % 7 + 1
    assert outcome(make(), [rest[at : at + step] for at in range(0, len(rest), step)]) == whole


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
