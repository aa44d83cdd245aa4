"""A few seconds of each fuzz target that this machine can run; `invoke fuzz` runs them for a minute each."""

from __future__ import annotations

import pytest

from . import fuzzing

SECONDS = 5


def test_python_readers_survive_a_few_seconds_of_fuzzing(tmp_path):
    command = fuzzing.python_command()
    if command is None:
        pytest.skip("atheris is not installed")
    fuzzing.seeds(tmp_path)
    outcome = fuzzing.run("Python readers", command, tmp_path, SECONDS)
    assert outcome.failure == ""
    assert outcome.inputs > 100


def test_c_header_survives_a_few_seconds_of_fuzzing(tmp_path):
    command = fuzzing.header_command(tmp_path)
    if command is None:
        pytest.skip("clang with libFuzzer is not installed")
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    fuzzing.seeds(corpus)
    outcome = fuzzing.run("C header", command, corpus, SECONDS)
    assert outcome.failure == ""
    assert outcome.inputs > 1000
