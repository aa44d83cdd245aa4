"""The frame reader on what real engines wrote (``../shared/transcripts``), for any split of the bytes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from generated.frames import Frame, FrameReader, ProtocolFault, Ready

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "transcripts"
TRANSCRIPTS = sorted(FOLDER.glob("*.bin"))

pytestmark = pytest.mark.skipif(not TRANSCRIPTS, reason="../shared/transcripts is not here")


def read(data: bytes, sizes: list[int]) -> tuple[list[Frame | ProtocolFault], ProtocolFault | None]:
    reader = FrameReader()
    said, start = [], 0
    for size in sizes:
        said += reader.feed(data[start : start + size])
        start += size
    said += reader.feed(data[start:])
    return said, reader.eof()


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_every_transcript_is_read_to_its_end_for_any_split(path: Path) -> None:
    data = path.read_bytes()
    said, end = read(data, [])
    assert not any(isinstance(item, ProtocolFault) for item in said)
    assert isinstance(said[0], Ready)
    assert end is None or end.rule == "truncated"
    expected = repr(read(data, []))
    rng = random.Random(path.stem)
    for sizes in (
        [1] * len(data),
        *([rng.randint(0, 40) for _ in range(len(data) // 20)] for _ in range(20)),
    ):
        assert repr(read(data, sizes)) == expected


@pytest.mark.parametrize(
    ("stem", "kinds"),
    [
        ("sigterm_idle", ["READY", "HWINFO", "TIERS", "EMAP"]),
        ("qwen_oversize", ["READY", "HWINFO", "TIERS", "EMAP", "ERROR", "ERROR", "ERROR"]),
    ],
)
def test_what_some_transcripts_hold(stem: str, kinds: list[str]) -> None:
    said, _ = read((FOLDER / f"{stem}.bin").read_bytes(), [])
    assert [frame.KIND for frame in said if not isinstance(frame, ProtocolFault)] == kinds


def test_an_echoed_id_that_is_no_number_names_no_request() -> None:
    said, end = read((FOLDER / "qwen_malformed.bin").read_bytes(), [])
    ids = [frame.id for frame in said if frame.KIND in ("ACCEPT", "DATA", "DONE")]
    assert ids[-4:] == [0, 0, 0, 0]
    assert end is None
