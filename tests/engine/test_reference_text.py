"""Tokenizer, sampling and grammar of the reference engine."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from engine.model import InvalidGrammar
from engine.reference.errors import LaunchError
from engine.reference.model import ReferenceModel
from engine.reference.sampling import Sampler, log_probabilities, token_numbers
from engine.reference.tokenizer import TextTokenizer, byte_level_alphabet
from tests.engine.checkpoints import BASE, END_NAMES, RECIPES, build_tokenizer, write_checkpoint

VOCABULARY = BASE["vocab_size"]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("glm"), RECIPES["glm"])


@pytest.fixture(scope="module")
def tokenizer(directory: Path) -> TextTokenizer:
    return TextTokenizer(directory, VOCABULARY, ())


@pytest.fixture(scope="module")
def model(directory: Path) -> ReferenceModel:
    return ReferenceModel(directory, slots=2, context=None, seed=11)


def generate(
    model: ReferenceModel, request: int, temperature: float, grammar: bytes, limit: int = 400
) -> bytes:
    """Sampled text of one request, to its end."""
    prompt = model.encode("<|user|>json<|assistant|>")
    chooser = model.chooser(request, prompt, temperature, 1.0, grammar)
    reused = model.begin(0, prompt, reuse=True)
    row = model.prefill(0, prompt[reused:], every_position=False)[-1]
    text = b""
    for _ in range(limit):
        token = chooser.choose(row)
        if token in model.end_tokens:
            return text
        text += model.piece(token)
        if chooser.complete:
            return text
        row = model.decode([0], [token])[0]
    raise AssertionError(f"no end within {limit} tokens: {text!r}")


def test_alphabet_covers_every_byte_once() -> None:
    assert sorted(byte_level_alphabet().values()) == list(range(256))


@pytest.mark.parametrize(
    "text", ["", "the 12 other", "日本語 🎈 é", "<|user|>hi<think></think>", "\x00\x7f\u2028", "a" * 5000]
)
def test_pieces_of_a_text_are_its_bytes(tokenizer: TextTokenizer, text: str) -> None:
    assert b"".join(tokenizer.piece(token) for token in tokenizer.encode(text)) == text.encode()


def test_ids_equal_the_library_and_nothing_is_added(tokenizer: TextTokenizer) -> None:
    text = "[gMASK]<sop><|user|>the other in 12<|assistant|>"
    assert tokenizer.encode(text) == build_tokenizer().encode(text, add_special_tokens=False).ids


def test_a_character_split_over_tokens_gives_partial_bytes(tokenizer: TextTokenizer) -> None:
    assert [tokenizer.piece(token) for token in tokenizer.encode("é")] == [b"\xc3", b"\xa9"]


def test_ids_beyond_the_tokenizer_have_empty_pieces(tokenizer: TextTokenizer) -> None:
    assert tokenizer.piece(VOCABULARY - 1) == b""


def test_sentencepiece_words_become_bytes(tmp_path: Path) -> None:
    vocabulary = {"<unk>": 0, "<0x41>": 1, "<0xC3>": 2, "\u2581the": 3, "a\u2581b": 4}
    description = {
        "version": "1.0",
        "added_tokens": [],
        "model": {
            "type": "BPE",
            "vocab": vocabulary,
            "merges": [],
            "unk_token": "<unk>",
            "byte_fallback": True,
        },
        "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]},
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(description), encoding="utf-8")
    loaded = TextTokenizer(tmp_path, 5, ())
    assert loaded.pieces[1:] == [b"A", b"\xc3", b" the", b"a b"]


def test_end_token_unknown_to_the_tokenizer(directory: Path) -> None:
    with pytest.raises(LaunchError, match="lacks the model's end token 280"):
        TextTokenizer(directory, VOCABULARY, [280])


def test_greedy_takes_the_lowest_of_equal_maxima() -> None:
    logits = np.array([1.0, 3.0, 3.0, 2.0], dtype=np.float32)
    assert Sampler(0.0, 0.5, (1,)).choose(logits) == 1
    assert Sampler(1e-50, 0.5, (1,)).choose(logits) == 1
    with np.errstate(over="ignore"):
        assert Sampler(1e-40, 0.5, (1,)).choose(logits) in (1, 2)


def test_sampling_follows_temperature_and_nucleus() -> None:
    logits = np.log(np.array([0.5, 0.25, 0.15, 0.1], dtype=np.float32))
    drawn = np.zeros(4)
    sampler = Sampler(1.0, 1.0, (5,))
    for _ in range(4000):
        drawn[sampler.choose(logits)] += 1
    assert np.abs(drawn / 4000 - [0.5, 0.25, 0.15, 0.1]).max() < 0.03
    nucleus = Sampler(1.0, 0.7, (5,))
    assert {nucleus.choose(logits) for _ in range(500)} == {0, 1}
    exact = Sampler(1.0, 1e-6, (5,))
    assert {exact.choose(logits) for _ in range(100)} == {0}
    cold = Sampler(0.05, 1.0, (5,))
    assert {cold.choose(logits) for _ in range(200)} == {0}


def test_nucleus_equals_a_plain_full_sort() -> None:
    generator = np.random.default_rng(3)
    for seed in range(200):
        logits = (generator.standard_normal(300) * 4).astype(np.float32)
        top_p = float(generator.uniform(0.05, 0.999))
        weights = np.exp(logits.astype(np.float64) - logits.max())
        order = np.argsort(-weights, kind="stable")
        kept = int(np.searchsorted(np.cumsum(weights[order]), weights.sum() * top_p)) + 1
        chosen = Sampler(1.0, top_p, (seed,)).choose(logits)
        assert chosen in order[:kept]


def test_draws_depend_on_seed_and_request_only() -> None:
    logits = np.zeros(1000, dtype=np.float32)

    def draws(*seed: int) -> list[int]:
        sampler = Sampler(1.0, 0.9, seed)
        return [sampler.choose(logits) for _ in range(20)]

    assert draws(1, 7) == draws(1, 7)
    assert draws(1, 7) != draws(1, 8)
    assert draws(1, 7) != draws(2, 7)


def test_numbers_of_the_log_probability_channel() -> None:
    logits = np.array([2.0, 0.0, 1.0, 2.0, -np.inf], dtype=np.float32)
    total = 2 * math.exp(2) + math.exp(0) + math.exp(1)
    logprob, tokens, values = token_numbers(logits, 2, 3)
    assert logprob == pytest.approx(1 - math.log(total))
    assert tokens == [0, 3, 2]
    assert values == pytest.approx([2 - math.log(total), 2 - math.log(total), 1 - math.log(total)])
    assert token_numbers(logits, 4, 0) == (-math.inf, [], [])
    assert len(token_numbers(logits, 0, 32)[1]) == 5
    assert np.exp(log_probabilities(logits)).sum() == pytest.approx(1.0)


SCHEMAS = [
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 6},
            "age": {"type": "integer", "minimum": 0, "maximum": 150},
        },
        "required": ["name", "age"],
        "additionalProperties": False,
    },
    {"type": "array", "items": {"enum": ["red", "blue", 3, None]}, "minItems": 1, "maxItems": 3},
    {"type": "boolean"},
    {"const": {"nested": [1, 2, {"deep": "é"}]}},
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: json.dumps(schema)[:30])
def test_json_output_always_validates(model: ReferenceModel, schema: dict) -> None:
    for request in range(12):
        text = generate(
            model, request, random.Random(request).choice([0.0, 0.7, 1.5]), json.dumps(schema).encode()
        )
        jsonschema.validate(json.loads(text), schema)


@pytest.mark.parametrize(
    ("grammar", "language"),
    [
        ('root ::= "yes" | "no"', r"yes|no"),
        ('root ::= item+ "!"\nitem ::= [a-c] "é"\n', r"([a-c]é){1,}!"),
        ('start: /[0-9]{2}/ "-" /[0-9]{2}/', r"\d\d-\d\d"),
    ],
)
def test_text_stays_in_the_language(model: ReferenceModel, grammar: str, language: str) -> None:
    import re

    for request in range(6):
        text = generate(model, request, 1.0, grammar.encode()).decode()
        assert re.fullmatch(language, text), text


@pytest.mark.parametrize(
    "grammar",
    [
        b"root ::= (",
        b"root ::= missing",
        b"not a grammar",
        b" ",
        b"\xff",
        b"[1]",
        b'{"type":"banana"}',
        b'{"type":"object"',
        b'{"$ref":"#/nope"}',
        b"false",
        b"[" * 100000,
    ],
)
def test_invalid_grammars_are_refused(model: ReferenceModel, grammar: bytes) -> None:
    with pytest.raises(InvalidGrammar):
        model.chooser(1, [0], 0.0, 1.0, grammar)


def test_model_ends_are_the_checkpoints(model: ReferenceModel) -> None:
    assert model.end_tokens == {build_tokenizer().token_to_id(name) for name in END_NAMES}
