"""Text to token ids through the `tokenizers` library, and token ids back to the exact bytes each stands for.

Guarantees: `piece(token)` is the token's own bytes, so that pieces joined in order are the generated text
byte for byte even where one token ends inside a UTF-8 character (a decoder working on whole strings cannot
give that). Added tokens such as turn markers are their literal text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from engine.reference.config import read_file
from engine.reference.errors import LaunchError

TOKENIZER_FILE = "tokenizer.json"
_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_SPACE_MARK = "\u2581"


def byte_level_alphabet() -> dict[str, int]:
    """Byte of each character of the byte-level BPE alphabet.

    Printable Latin-1 characters stand for themselves; the other bytes, in order, for the code points from 256
    up.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    alphabet = {chr(byte): byte for byte in printable}
    rest = (byte for byte in range(256) if byte not in set(printable))
    return alphabet | {chr(256 + index): byte for index, byte in enumerate(rest)}


class TextTokenizer:
    """The tokenizer of a model directory."""

    def __init__(self, directory: Path, vocabulary: int, end_tokens: Iterable[int]) -> None:
        """Load tokenizer.json for a model with `vocabulary` token ids.

        Raises LaunchError when the file is missing or unreadable, when it has ids the model lacks, when an
        end token of the model is unknown to it, or when its token texts cannot be turned into bytes.
        """
        path = directory / TOKENIZER_FILE
        try:
            text = read_file(path).decode("utf-8")
            description = json.loads(text)
            self._tokenizer = Tokenizer.from_str(text)
        except LaunchError:
            raise
        except Exception as error:  # the library raises bare Exception for whatever it finds wrong
            raise LaunchError(f"{path} is not a valid tokenizer: {error}") from None
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.vocabulary = vocabulary
        self._pieces, self.special_tokens = self._read_pieces(path, description)
        missing = [token for token in sorted(end_tokens) if token not in self._known]
        if missing:
            raise LaunchError(f"{path} lacks the model's end token {missing[0]}")

    def _read_pieces(self, path: Path, description: dict[str, Any]) -> tuple[list[bytes], frozenset[int]]:
        added = {token["id"]: token for token in description.get("added_tokens") or ()}
        words = {token: word for word, token in self._tokenizer.get_vocab(with_added_tokens=True).items()}
        too_large = [token for token in words if token >= self.vocabulary]
        if too_large:
            raise LaunchError(
                f"{path} has token id {max(too_large)}, but the model's vocabulary ends at"
                f" {self.vocabulary - 1}"
            )
        self._known = frozenset(words)
        self.added_tokens = {entry["content"]: token for token, entry in added.items()}
        """Token ids of the added tokens by their literal texts."""
        convert = _piece_converter(path, description)
        # A normaliser may shorten a text and an unknown token may swallow any length of it: only without both
        # do the tokens' lengths bound that of the text.
        self._bounded = convert.byte_level and description.get("normalizer") is None
        pieces = [b""] * self.vocabulary
        for token, word in words.items():
            pieces[token] = word.encode("utf-8") if token in added else convert(word)
        return pieces, frozenset(token for token, entry in added.items() if entry.get("special"))

    def encode(self, text: str) -> list[int]:
        """Token ids of `text` as it stands; markers in it become their tokens, and nothing is added at either
        end.
        """
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def piece(self, token: int) -> bytes:
        """The bytes of a token; empty for an id of the model that the tokenizer does not know."""
        return self._pieces[token]

    @property
    def longest_piece(self) -> int | None:
        """Most bytes of a text that become one token; None where that has no bound."""
        return max(map(len, self._pieces)) if self._bounded else None

    @property
    def pieces(self) -> list[bytes]:
        """The bytes of every token id, in order."""
        return self._pieces


class _PieceConverter:
    """Turns a vocabulary word into bytes, by the alphabet its decoder implies."""

    def __init__(self, byte_level: bool) -> None:
        self._alphabet = byte_level_alphabet() if byte_level else None

    @property
    def byte_level(self) -> bool:
        """Every text has tokens, byte by byte if need be."""
        return self._alphabet is not None

    def __call__(self, word: str) -> bytes:
        if self._alphabet is None:
            byte = _BYTE_TOKEN.fullmatch(word)
            return bytes([int(byte[1], 16)]) if byte else word.replace(_SPACE_MARK, " ").encode("utf-8")
        try:
            return bytes(self._alphabet[character] for character in word)
        except KeyError:
            return word.encode("utf-8")


def _piece_converter(path: Path, description: dict[str, Any]) -> _PieceConverter:
    """Byte-level or SentencePiece-style words, as declared by the decoder of tokenizer.json."""
    decoder = description.get("decoder") or {}
    kinds = {part.get("type") for part in (decoder, *decoder.get("decoders", ()))}
    if "ByteLevel" in kinds:
        return _PieceConverter(byte_level=True)
    if kinds & {"ByteFallback", "Metaspace"}:
        return _PieceConverter(byte_level=False)
    raise LaunchError(
        f"{path}: decoder {decoder.get('type')!r} is not supported (supported: byte level, byte fallback)"
    )
