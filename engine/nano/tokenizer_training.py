"""Train the byte-level BPE tokenizer of the embedded model and write its Hugging Face files.

Digits stand alone, every byte has a token, turn markers are ``special`` (dropped when decoding) and the
think and tool tags are single visible tokens. Needs only the ``tokenizers`` library.
"""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Final

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from engine.nano.documents import documents
from engine.nano.layout import SPECIAL_TOKENS, TAG_TOKENS
from generated import markup

VOCABULARY_SIZE: Final = 1024
SAMPLE_DOCUMENTS: Final = 12_000
_SAMPLE_SEED: Final = 7


def train_tokenizer() -> Tokenizer:
    """A tokenizer of ``VOCABULARY_SIZE`` entries trained on a fixed sample of the training documents."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    added = len(SPECIAL_TOKENS) + len(TAG_TOKENS)
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE - added,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
        min_frequency=2,
    )
    markers = (*SPECIAL_TOKENS, *TAG_TOKENS)

    def texts() -> list[str]:
        result = []
        for document in islice(documents(_SAMPLE_SEED), SAMPLE_DOCUMENTS):
            text = "".join(segment.text for segment in document)
            for marker in markers:
                text = text.replace(marker, "\n")
            result.append(text)
        return result

    tokenizer.train_from_iterator(texts(), trainer)
    tokenizer.add_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL_TOKENS])
    tokenizer.add_tokens([AddedToken(token, special=False, normalized=False) for token in TAG_TOKENS])
    if tokenizer.get_vocab_size() != VOCABULARY_SIZE:
        raise ValueError(f"the tokenizer has {tokenizer.get_vocab_size()} entries, not {VOCABULARY_SIZE}")
    return tokenizer


def save_tokenizer(tokenizer: Tokenizer, directory: Path) -> None:
    """Write tokenizer.json and tokenizer_config.json."""
    directory.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(directory / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "model_max_length": 2048,
        "eos_token": markup.GLM_END_OF_TEXT,
        "pad_token": markup.GLM_END_OF_TEXT,
        "padding_side": "left",
        "add_prefix_space": False,
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
