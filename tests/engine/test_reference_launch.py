"""Whatever keeps the reference engine from serving is one clear line on stderr and exit code 2, before
READY.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.reference.__main__ import main
from engine.reference.checkpoint import bfloat16_to_float32
from engine.reference.launch import choose_threads
from generated import launch as names
from tests.engine.checkpoints import RECIPES, random_tensors, write_checkpoint, write_safetensors
from tests.engine.engine_process import ROOT

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
TENSOR = "model.layers.1.mlp.down_proj.weight"


def edit_json(path: Path, change: Callable[[dict], None]) -> None:
    """Apply `change` to the JSON object in a file."""
    value = json.loads(path.read_text(encoding="utf-8"))
    change(value)
    path.write_text(json.dumps(value), encoding="utf-8")


def config(**entries: object) -> Callable[[Path], None]:
    """A fault that sets entries of config.json; a value of None removes the entry."""

    def change(values: dict) -> None:
        for name, value in entries.items():
            values.pop(name, None)
            if value is not None:
                values[name] = value

    return lambda directory: edit_json(directory / "config.json", change)


def tensors(change: Callable[[dict], None], dtype: str = "F32") -> Callable[[Path], None]:
    """A fault that changes the dictionary of tensors."""

    def damage(directory: Path) -> None:
        values = random_tensors(RECIPES["qwen2"])
        change(values)
        write_safetensors(directory / WEIGHTS, values, dtype)

    return damage


def raw(file_name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    """A fault that rewrites the bytes of a file."""

    def damage(directory: Path) -> None:
        path = directory / file_name
        path.write_bytes(change(path.read_bytes()))

    return damage


def remove(file_name: str) -> Callable[[Path], None]:
    """A fault that deletes a file."""
    return lambda directory: (directory / file_name).unlink()


def pipe(file_name: str) -> Callable[[Path], None]:
    """A fault that puts a pipe nobody writes to in a file's place."""

    def damage(directory: Path) -> None:
        (directory / file_name).unlink()
        os.mkfifo(directory / file_name)

    return damage


def shards(change: Callable[[Path], None]) -> Callable[[Path], None]:
    """A fault of a checkpoint in three shards."""

    def damage(directory: Path) -> None:
        (directory / WEIGHTS).unlink()
        write_checkpoint(directory, replace(RECIPES["qwen2"], shards=3))
        change(directory)

    return damage


def bad_dtype(directory: Path) -> None:
    """An integer tensor where a matrix belongs."""
    path = directory / WEIGHTS
    path.write_bytes(path.read_bytes().replace(b'"dtype": "F32"', b'"dtype": "I32"', 1))


def nan_in(values: dict[str, np.ndarray]) -> None:
    """A weight that is not a number."""
    values[TENSOR][3, 4] = np.nan


def foreign_shard(values: dict) -> None:
    """A shard outside the model directory."""
    values["weight_map"][TENSOR] = "../secret.safetensors"


def lost_shard(values: dict) -> None:
    """A shard that is not there."""
    values["weight_map"][TENSOR] = "absent.safetensors"


def unkept_promise(values: dict) -> None:
    """A tensor listed under a shard without it."""
    values["weight_map"]["model.extra"] = "model-00001-of-00003.safetensors"


FAULTS: dict[str, tuple[Callable[[Path], None], str]] = {
    "config missing": (remove("config.json"), r"config\.json is missing"),
    "config not JSON": (raw("config.json", lambda data: data[:40]), r"config\.json is not valid JSON"),
    "config a list": (raw("config.json", lambda data: b"[]"), r"config\.json must hold a JSON object"),
    "unknown type": (
        config(model_type="mamba"),
        r"model_type 'mamba' is not supported \(supported: glm, .*\)",
    ),
    "type absent": (config(model_type=None), r"model_type None is not supported"),
    "size absent": (config(hidden_size=None), r"hidden_size is missing"),
    "size zero": (config(num_hidden_layers=0), r"num_hidden_layers must be a positive integer, not 0"),
    "context zero": (
        config(max_position_embeddings=0),
        r"max_position_embeddings must be a positive integer, not 0",
    ),
    "size boolean": (config(vocab_size=True), r"vocab_size must be a positive integer, not True"),
    "heads uneven": (config(num_key_value_heads=3), r"num_attention_heads \(4\) must be a multiple"),
    "activation": (config(hidden_act="gelu"), r"hidden_act must be 'silu', not 'gelu'"),
    "sliding window": (config(use_sliding_window=True), r"use_sliding_window is not supported"),
    "yarn": (config(rope_scaling={"rope_type": "yarn"}), r"rope_type 'yarn' is not supported"),
    "end token word": (config(eos_token_id="</s>"), r"eos_token_id must be a token id"),
    "tensor missing": (tensors(lambda values: values.pop(TENSOR)), rf"lacks tensor {re.escape(TENSOR)}$"),
    "tensor shape": (
        tensors(lambda values: values.update({TENSOR: values[TENSOR].T})),
        rf"tensor {re.escape(TENSOR)} has shape \[80, 48\], expected \[48, 80\]",
    ),
    "tensor dtype": (bad_dtype, r"has dtype I32 \(supported: F32, F16, BF16\)"),
    "tensor not finite": (tensors(nan_in), rf"tensor {re.escape(TENSOR)} holds values that are not finite"),
    "weights missing": (remove(WEIGHTS), r"model\.safetensors is missing"),
    "weights empty": (raw(WEIGHTS, lambda data: b""), r"model\.safetensors is not a valid safetensors file"),
    "weights truncated": (raw(WEIGHTS, lambda data: data[:-100]), r"is not a valid safetensors file"),
    "header beyond file": (
        raw(WEIGHTS, lambda data: (1 << 40).to_bytes(8, "little") + data[8:]),
        r"is not a valid safetensors file",
    ),
    "header garbage": (
        raw(WEIGHTS, lambda data: data[:8] + b"!" + data[9:]),
        r"is not a valid safetensors file",
    ),
    "weights a pipe": (pipe(WEIGHTS), r"model\.safetensors is not a regular file"),
    "config a pipe": (pipe("config.json"), r"config\.json is not a regular file"),
    "tokenizer a pipe": (pipe("tokenizer.json"), r"tokenizer\.json is not a regular file"),
    "config nested": (
        raw("config.json", lambda data: b"[" * 300_000),
        r"config\.json is (not valid JSON: )?nested too deeply",
    ),
    "layers without end": (
        config(num_hidden_layers=2**70),
        r"num_hidden_layers must be .*, not 1180591620717411303424",
    ),
    "vocabulary too large": (config(vocab_size=2**40), r"vocab_size must be .*, not 1099511627776"),
    "heads too wide": (config(head_dim=2**40), r"head_dim must be .*, not 1099511627776"),
    "shard missing": (
        shards(lambda directory: edit_json(directory / INDEX, lost_shard)),
        r"absent\.safetensors is missing",
    ),
    "shard lacks tensor": (
        shards(lambda directory: edit_json(directory / INDEX, unkept_promise)),
        r"lacks tensor model\.extra which model\.safetensors\.index\.json promises",
    ),
    "shard elsewhere": (
        shards(lambda directory: edit_json(directory / INDEX, foreign_shard)),
        r"weight_map must name files of the same directory",
    ),
    "index without map": (shards(raw(INDEX, lambda data: b"{}")), r"weight_map must map tensor names"),
    "tokenizer missing": (remove("tokenizer.json"), r"tokenizer\.json is missing"),
    "tokenizer corrupt": (raw("tokenizer.json", lambda data: data[:500]), r"is not a valid tokenizer"),
    "tokenizer without end token": (config(eos_token_id=[281]), r"lacks the model's end token 281"),
    "tokenizer too large": (config(vocab_size=200), r"token id 275, but the model's vocabulary ends at 199"),
    "tokenizer decoder": (
        lambda directory: edit_json(directory / "tokenizer.json", lambda value: value.update(decoder=None)),
        r"decoder None is not supported",
    ),
}


def launch(monkeypatch: pytest.MonkeyPatch, arguments: list[str], environment: dict[str, str]) -> int:
    """Run the engine's entry point in this process with exactly these launch parameters."""
    for name in (names.SNAP, names.NGEN, names.KV_SLOTS, names.CTX, names.SEED):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setattr(sys, "argv", ["coli-engine-reference", *arguments])
    return main()


def assert_one_line(text: str, pattern: str) -> None:
    """Exactly one line on stderr that says what is wrong."""
    assert text.endswith("\n") and text.count("\n") == 1, text
    assert text.startswith("coli-engine-reference: "), text
    assert re.search(pattern, text.rstrip("\n")), text


@pytest.mark.parametrize("name", FAULTS)
def test_faulty_model_directory(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    damage, pattern = FAULTS[name]
    damage(write_checkpoint(tmp_path, RECIPES["qwen2"]))
    assert launch(monkeypatch, ["0"], {"SNAP": str(tmp_path)}) == 2
    output, errors = capfd.readouterr()
    assert output == ""
    assert_one_line(errors, pattern)


@pytest.mark.parametrize(
    ("arguments", "environment", "pattern"),
    [
        (["0"], {"SNAP": "/nowhere/at/all"}, r"model directory /nowhere/at/all does not exist"),
        (["0"], {"SNAP": ""}, r"SNAP must name the model directory"),
        (["0"], {"CTX": "0"}, r"CTX must be an integer from 1 to \d+, not '0'"),
        (["0"], {"CTX": "1"}, r"context 1 has no room for a prompt and an answer"),
        (["0"], {"CTX": "513"}, r"context 513 exceeds the model's max_position_embeddings 512"),
        (["0"], {"CTX": "-5"}, r"CTX must be an integer"),
        (["0"], {"KV_SLOTS": "0"}, r"KV_SLOTS must be an integer from 1 to 512, not '0'"),
        (["0"], {"KV_SLOTS": "513"}, r"KV_SLOTS must be an integer from 1 to 512, not '513'"),
        (["0"], {"KV_SLOTS": "two"}, r"KV_SLOTS must be an integer"),
        (["0"], {"SEED": "1.5"}, r"SEED must be an integer"),
        (["0"], {"NGEN": "many"}, r"NGEN must be an integer"),
        (["-1"], {}, r"cap must be an integer from 0 to \d+, not '-1'"),
        (["0", "1"], {}, r"expected no more arguments than \[cap\], not \['0', '1'\]"),
    ],
)
def test_faulty_launch_parameters(
    arguments: list[str],
    environment: dict[str, str],
    pattern: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    directory = write_checkpoint(tmp_path, RECIPES["qwen2"])
    assert launch(monkeypatch, arguments, {"SNAP": str(directory), **environment}) == 2
    output, errors = capfd.readouterr()
    assert output == ""
    assert_one_line(errors, pattern)


def test_no_thread_with_any_stack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Every smaller stack is tried, then one line says it; threads of this process keep their own size."""
    sizes, before = [], threading.stack_size()

    def refuse(thread: threading.Thread) -> None:
        sizes.append(threading.stack_size())
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    monkeypatch.setattr("engine.stdio.restore_default_signals", lambda: None)
    monkeypatch.setattr("gc.freeze", lambda: None)
    directory = write_checkpoint(tmp_path, RECIPES["qwen2"])
    with np.errstate():  # what the engine sets for its process ends here
        assert launch(monkeypatch, ["0"], {"SNAP": str(directory)}) == 2
    assert sizes == [1 << power for power in range(30, 19, -1)]
    assert threading.stack_size() == before
    output, errors = capfd.readouterr()
    assert output == ""
    assert_one_line(errors, r"no thread with a stack of 1048576 bytes: can't start new thread")


def test_process_exits_with_code_2_and_one_line(tmp_path: Path) -> None:
    """The same through a real process: no traceback, nothing on stdout."""
    environment = {**os.environ, "SNAP": str(tmp_path / "absent")}
    command = [sys.executable, "-m", "engine.reference", "0"]
    options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "timeout": 60}
    finished = subprocess.run(command, env=environment, cwd=ROOT, check=False, **options)
    assert finished.returncode == 2
    assert finished.stdout == b""
    assert_one_line(finished.stderr.decode(), r"model directory .*absent does not exist")


def test_bfloat16_is_decoded_exactly() -> None:
    bits = np.array([0x0000, 0x3F80, 0xBF80, 0x4049, 0x0001, 0x7F7F, 0x8000], dtype=np.uint16)
    expected = [0.0, 1.0, -1.0, 3.140625, 2.0**-133, 3.3895313892515355e38, -0.0]
    values = bfloat16_to_float32(bits)
    assert values.dtype == np.float32
    assert values.tolist() == expected
    assert np.signbit(values[-1])


def test_small_model_uses_one_thread_unless_told_otherwise(tmp_path: Path) -> None:
    (tmp_path / WEIGHTS).write_bytes(b"x" * 1000)
    environment: dict[str, str] = {}
    choose_threads(tmp_path, environment)
    assert environment == {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    environment = {"OMP_NUM_THREADS": "3"}
    choose_threads(tmp_path, environment)
    assert environment == {"OMP_NUM_THREADS": "3"}
