"""Whatever keeps the native engine from serving is one clear line on stderr and exit code 2, before READY.

And what its build says where it cannot build.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.native import build
from tests.engine.checkpoints import RECIPES, write_checkpoint
from tests.engine.test_reference_launch import FAULTS, WEIGHTS, edit_json, raw

NAME = "coli-engine-native: "
SPELLINGS = {"'mamba'": "'mamba'", "None": "null", "True": "true"}
"""Values are shown as JSON where the reference shows Python."""


def tokenizer(change: Callable[[dict], None]) -> Callable[[Path], None]:
    """A fault of tokenizer.json."""
    return lambda directory: edit_json(directory / "tokenizer.json", change)


def swap_offsets(data: bytes) -> bytes:
    """Two tensors that overlap: the second begins where the first does."""
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    names = [name for name in header if name != "__metadata__"]
    first, second = header[names[1]], header[names[2]]
    assert first["shape"] == second["shape"]
    second["data_offsets"] = first["data_offsets"]
    text = json.dumps(header).encode()
    assert len(text) <= size
    return data[:8] + text.ljust(size) + data[8 + size :]


OWN_FAULTS: dict[str, tuple[Callable[[Path], None], str]] = {
    "overlap": (raw(WEIGHTS, swap_offsets), r"byte ranges with a gap or an overlap"),
    "data behind the tensors": (raw(WEIGHTS, lambda data: data + b"x"), r"data behind the last tensor"),
    "header of 7 bytes": (raw(WEIGHTS, lambda data: data[:7]), r"too short for a header"),
    "header too deep": (
        raw(WEIGHTS, lambda data: (4000).to_bytes(8, "little") + b"[" * 4000),
        r"safetensors file: nested too deeply",
    ),
    "config too deep": (
        raw("config.json", lambda data: b'{"a":' * 100000),
        r"config\.json is not valid JSON: nested too deeply at byte \d+",
    ),
    "config not UTF-8": (raw("config.json", lambda data: b'{"a": "\xff"}'), r"not UTF-8 text"),
    "end token word": (
        lambda directory: edit_json(directory / "config.json", lambda c: c.update(eos_token_id=[1, -1])),
        r"eos_token_id must be a token id or a list of them, not a list",
    ),
    "normalizer": (
        tokenizer(lambda value: value.update(normalizer={"type": "Lowercase"})),
        r"the normalizer 'Lowercase' is not supported \(supported: NFC\)",
    ),
    "pre-tokenizer": (
        tokenizer(lambda value: value.update(pre_tokenizer={"type": "Metaspace"})),
        r"the pre-tokenizer 'Metaspace' is not supported",
    ),
    "pattern": (
        tokenizer(
            lambda value: value.update(
                pre_tokenizer={
                    "type": "Split",
                    "pattern": {"Regex": "(?<=a)b"},
                    "behavior": "Isolated",
                    "invert": False,
                }
            )
        ),
        r"the pre-tokenizer's pattern has a group of an unknown kind, which is not supported",
    ),
    "tokenizer model": (
        tokenizer(lambda value: value["model"].update(type="Unigram")),
        r"the model 'Unigram' is not supported \(supported: BPE\)",
    ),
    "merge without words": (
        tokenizer(lambda value: value["model"].update(merges=[["q", "zz"]])),
        r"merge 0 has a word that is not in the vocab",
    ),
}


def run(command: list[str], arguments: list[str], environment: dict[str, str]) -> str:
    """Start the engine with exactly these launch parameters; it must refuse. The line it says, without its
    name."""
    names = ("SNAP", "NGEN", "KV_SLOTS", "CTX", "SEED")
    inherited = {name: value for name, value in os.environ.items() if name not in names}
    done = subprocess.run(
        [*command, *arguments],
        env={**inherited, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    text = done.stderr.decode()
    assert (done.returncode, done.stdout) == (2, b""), text
    assert text.startswith(NAME) and text.endswith("\n") and text.count("\n") == 1, text
    return text[len(NAME) : -1]


@pytest.mark.parametrize("name", FAULTS)
def test_faults_of_the_reference_engine(name: str, command: list[str], tmp_path: Path) -> None:
    damage, pattern = FAULTS[name]
    damage(write_checkpoint(tmp_path, RECIPES["qwen2"]))
    for python, ours in SPELLINGS.items():
        pattern = pattern.replace(python, ours)
    assert re.search(pattern, run(command, ["0"], {"SNAP": str(tmp_path)}))


@pytest.mark.parametrize("name", OWN_FAULTS)
def test_faulty_model_directory(name: str, command: list[str], tmp_path: Path) -> None:
    damage, pattern = OWN_FAULTS[name]
    damage(write_checkpoint(tmp_path, RECIPES["qwen2"]))
    assert re.search(pattern, run(command, ["0"], {"SNAP": str(tmp_path)}))


@pytest.mark.parametrize(
    ("arguments", "environment", "pattern"),
    [
        (["0"], {"SNAP": "/nowhere/at/all"}, r"^model directory /nowhere/at/all does not exist$"),
        (["0"], {"SNAP": ""}, r"^SNAP must name the model directory$"),
        (["0"], {"CTX": "0"}, r"^CTX must be an integer from 1 to \d+, not '0'$"),
        (["0"], {"CTX": "1"}, r"^context 1 has no room for a prompt and an answer$"),
        (["0"], {"CTX": "513"}, r"^context 513 exceeds the model's max_position_embeddings 512$"),
        (["0"], {"KV_SLOTS": "0"}, r"^KV_SLOTS must be an integer from 1 to 512, not '0'$"),
        (["0"], {"KV_SLOTS": "513"}, r"^KV_SLOTS must be an integer from 1 to 512, not '513'$"),
        (["0"], {"KV_SLOTS": " 2"}, r"^KV_SLOTS must be an integer"),
        (["0"], {"SEED": "1.5"}, r"^SEED must be an integer"),
        (["0"], {"NGEN": "many"}, r"^NGEN must be an integer"),
        (["-1"], {}, r"^cache bound must be an integer from 0 to \d+, not '-1'$"),
        (["0", "1"], {}, r"^expected one argument, the cache bound, not 2$"),
    ],
)
def test_faulty_launch_parameters(
    arguments: list[str], environment: dict[str, str], pattern: str, command: list[str], tmp_path: Path
) -> None:
    directory = write_checkpoint(tmp_path, RECIPES["qwen2"])
    assert re.search(pattern, run(command, arguments, {"SNAP": str(directory), **environment}))


def test_without_a_compiler_one_sentence_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    assert build.main(["--directory", str(tmp_path)]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err == "no C compiler on this machine (cc, gcc, clang); set CC to use another one\n"
    monkeypatch.setenv("CC", "no-such-compiler")
    assert build.main(["--directory", str(tmp_path)]) == 2
    assert capsys.readouterr().err == "the compiler no-such-compiler of CC does not exist\n"


def test_a_build_that_is_current_is_kept(command: list[str]) -> None:
    program = Path(command[0])
    before = program.stat().st_mtime_ns
    assert build.build(program.parent) == program
    assert program.stat().st_mtime_ns == before


def test_an_installed_package_builds_into_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(build, "HERE", tmp_path / "site-packages" / "engine" / "native")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert build.default_directory() == tmp_path / "cache" / "colibri-serve" / "native"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert build.default_directory() == tmp_path / ".cache" / "colibri-serve" / "native"


def test_finding_the_program_does_not_build_it(
    command: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(build, "default_directory", lambda: tmp_path)
    assert build.main(["--find"]) == 2
    assert capsys.readouterr().out == "the native engine is not built\n"
    (tmp_path / build.PROGRAM).symlink_to(command[0])
    assert build.main(["--find"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / build.PROGRAM}\n"
