"""The files of the stand-in engine, looked at while they are being written."""

from __future__ import annotations

import json
from pathlib import Path

from tests.scripted import ScriptedEngineFiles

FRAME = b"SUBMIT 1 0 2 8 0.7 0.9\nhi\n"


def test_a_record_that_is_still_being_written_is_not_seen_yet(tmp_path: Path) -> None:
    files = ScriptedEngineFiles(tmp_path)
    assert files.records() == []
    first, second = ({"kind": "SUBMIT", "seq": 3, "off": at, "len": len(FRAME)} for at in (0, len(FRAME)))
    whole = "".join(json.dumps(record) + "\n" for record in (first, second)).encode()
    files.log.write_bytes(FRAME + FRAME)
    seen = []
    for length in range(len(whole) + 1):
        Path(f"{files.log}.jsonl").write_bytes(whole[:length])
        seen.append(len(files.records()))
        assert files.submits(3) == [FRAME] * seen[-1]
    assert seen.count(1) == len(json.dumps(second)) + 1  # until the second line's end
    assert seen[-1] == 2 and files.records() == [first, second]
    assert files.submits(2) == []
