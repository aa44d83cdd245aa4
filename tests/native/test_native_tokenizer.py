"""The native tokenizer gives the ids of the `tokenizers` library, for every kind of tokenizer it accepts."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from engine.native.build import SOURCES, NoCompiler, compile_program
from engine.native.unicode_table import TABLES
from tests.native.texts import LINES, compose, corpus

NANO = Path(__file__).parents[2] / "engine" / "nano" / "model"
UNITS = (
    *(
        "added",
        "base",
        "json",
        "merging",
        "names",
        "normalizer",
        "pattern",
        "pretokenizer",
        "tokenizer",
        "unicode",
    ),
    *("utf8", "vocabulary"),
)
VOCABULARY = 700
GPT4 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
QWEN2 = GPT4.replace(r"\p{N}{1,3}", r"\p{N}")
GPT4O = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def split(pattern: str) -> Any:
    """A Split by a regular expression, then the byte alphabet."""
    cut = pre_tokenizers.Split(Regex(pattern), behavior="isolated")
    return pre_tokenizers.Sequence([cut, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


CUTTERS: dict[str, Callable[[], Any]] = {
    "gpt2": lambda: pre_tokenizers.ByteLevel(add_prefix_space=False),
    "whole": lambda: pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    "llama3": lambda: split(GPT4),
    "qwen2": lambda: split(QWEN2),
    "gpt4o": lambda: split(GPT4O),
    "digit-runs": lambda: pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=False), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    ),
    "matches-only": lambda: pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"\w+|[^\w\s]+"), behavior="removed", invert=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    ),
    "string": lambda: pre_tokenizers.Sequence(
        [pre_tokenizers.Split("e", behavior="removed"), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    ),
}


def trained(name: str, lines: list[str]) -> Tokenizer:
    """A tokenizer of a kind with merges learnt from some lines, and added tokens of every kind."""
    tokenizer = Tokenizer(models.BPE(ignore_merges=name == "llama3"))
    tokenizer.pre_tokenizer = CUTTERS[name]()
    tokenizer.decoder = decoders.ByteLevel()
    if name == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - 20,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(lines, trainer)
    tokenizer.add_special_tokens(["<|user|>", "<|user", "<|endoftext|>", "[gMASK]"])
    tokenizer.add_tokens(
        [
            AddedToken("<think>", normalized=False),
            AddedToken("</think>", lstrip=True, rstrip=True, normalized=False),
            AddedToken("hour", single_word=True, normalized=True),
            AddedToken("é", normalized=True),
        ]
    )
    return tokenizer


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The test program, with the sources of the tokenizer."""
    units = [SOURCES / f"{name}.c" for name in UNITS]
    target = tmp_path_factory.mktemp("program") / "tokenize_texts"
    try:
        return compile_program(target, [*units, Path(__file__).with_name("tokenize_texts.c")], ("-O1",))
    except NoCompiler as error:
        pytest.skip(str(error))


@cache
def texts() -> tuple[bytes, ...]:
    return tuple(corpus())


def test_the_committed_corpus_is_the_one_its_script_makes() -> None:
    assert len(texts()) == LINES
    assert list(texts()) == compose()


def native_ids(program: Path, directory: Path, vocabulary: int) -> list[str]:
    """One line per text of the corpus."""
    stdin = b"".join(b"%d\n%s\n" % (len(text), text) for text in texts())
    command = [str(program), str(directory), str(vocabulary)]
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode("ascii").split("\n")[:-1]


def library_ids(tokenizer: Tokenizer) -> list[str]:
    """The same from the library; "invalid" where Python finds no UTF-8."""
    lines = []
    for text in texts():
        try:
            ids = tokenizer.encode(text.decode("utf-8"), add_special_tokens=False).ids
        except UnicodeDecodeError:
            lines.append("invalid")
        else:
            lines.append(" ".join(map(str, ids)))
    return lines


def assert_equal(found: list[str], expected: list[str]) -> None:
    """All lines, or the first text that differs."""
    assert len(found) == len(expected) == LINES
    for text, ours, theirs in zip(texts(), found, expected, strict=True):
        assert ours == theirs, text


def test_corpus_is_varied() -> None:
    kinds = library_ids(Tokenizer.from_file(str(NANO / "tokenizer.json")))
    assert kinds.count("invalid") > 500
    assert len(set(texts())) > 8000


def test_ids_of_the_embedded_model(program: Path) -> None:
    vocabulary = json.loads((NANO / "config.json").read_text())["vocab_size"]
    expected = library_ids(Tokenizer.from_file(str(NANO / "tokenizer.json")))
    assert_equal(native_ids(program, NANO, vocabulary), expected)


@pytest.mark.parametrize("name", CUTTERS)
def test_ids_of_other_tokenizers(name: str, program: Path, tmp_path: Path) -> None:
    lines = [text.decode("utf-8", "replace") for text in texts()[:1500]]
    tokenizer = trained(name, lines)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    assert_equal(native_ids(program, tmp_path, VOCABULARY), library_ids(tokenizer))


@pytest.mark.parametrize("name", TABLES)
def test_committed_tables_are_current(name: str) -> None:
    import unicodedata

    committed = (SOURCES / name).read_text(encoding="ascii")
    if f"Unicode {unicodedata.unidata_version}." not in committed:
        pytest.skip(f"this Python has Unicode {unicodedata.unidata_version}")
    assert committed == TABLES[name]()
