"""The handed black-box cases, played against a real ``coli serve`` by the handed runner.

Every case must pass, except those that contradict the contract: they must fail, each as it is written here.
The cases that wait for 12 to 35 seconds of silence are left out.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared"
RUNNER = SHARED / "tools" / "run_cases.py"
CASES = SHARED / "cases" / "contract.jsonl"

_KEEP_ALIVE = "http.md §2: HTTP/1.1 keep-alive for JSON and for SSE"

BELIEVED_WRONG = {
    "A-79": ("SUBMITs: want 1, got 0", "http.md §7: all members are validated before the first SUBMIT"),
    "E-01": (
        "param: want messages, got prompt",
        "http.md §7, wire.md §4; E-02 and V-13 say `prompt` as well",
    ),
    "V-01": ("connection not closed", _KEEP_ALIVE),
    "N-43": ("connection not closed", _KEEP_ALIVE),
}
"""Case → how it differs, and the clause it contradicts."""

GROUPS = ("T,R", "G", "P,L,K,S", "A", "H,V", "N", "E", "Q")


@pytest.mark.skipif(not CASES.exists(), reason="the handed cases of ../shared are not here")
@pytest.mark.parametrize("prefixes", GROUPS)
def test_handed_cases_pass_or_contradict_the_contract(prefixes: str, tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    command = [
        sys.executable, str(RUNNER), "--server-cmd", f"{sys.executable} -m server.cli serve",
        "--cases", str(CASES), "--no-slow", "--keep-going", "--only", prefixes, "--json", str(results),
    ]  # fmt: skip
    played = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)
    assert results.exists(), played.stdout + played.stderr
    judged = json.loads(results.read_text(encoding="utf-8"))
    assert len(judged) > 5
    failed = {case["id"]: "; ".join(case["diffs"]) for case in judged if case["state"] == "fail"}
    expected = {case["id"]: BELIEVED_WRONG[case["id"]][0] for case in judged if case["id"] in BELIEVED_WRONG}
    assert failed == expected
    assert {case["state"] for case in judged} <= {"pass", "fail", "slow"}


@pytest.mark.skipif(not CASES.exists(), reason="the handed cases of ../shared are not here")
def test_every_handed_case_is_in_a_group() -> None:
    with CASES.open(encoding="utf-8") as lines:
        ids = [json.loads(line)["id"] for line in lines if line.strip()]
    prefixes = {prefix for group in GROUPS for prefix in group.split(",")}
    assert {identifier.split("-")[0] for identifier in ids} == prefixes
    assert set(BELIEVED_WRONG) <= set(ids)
