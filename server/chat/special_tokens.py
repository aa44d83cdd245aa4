"""Which texts are control tokens of a model, from the tokenizer files of its directory (http.md §8).

Tokenizers come in several forms: `tokenizer.json` names all added tokens; models with a vocabulary of another
form (tiktoken, SentencePiece) name theirs in `tokenizer_config.json`, `special_tokens_map.json` or
`added_tokens.json`. A control token is what one of these calls special, and what was added and is not merely
a word or blanks.

Guarantees: every file counts, whichever others are there; what has another form than these files have names
nothing, and takes nothing from what the rest names.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from server.model_files import read_model_file

_LISTS = ("additional_special_tokens", "extra_special_tokens", "model_specific_special_tokens")
_ROLE_ENDING = "_token"


def control_tokens(directory: Path, config: Mapping[str, Any]) -> frozenset[str]:
    """The control tokens that the files of a model directory name. `config` is its `tokenizer_config.json`.
    Absent and unreadable files name none."""
    named = (
        *_added(_members(_read(directory / "tokenizer.json").get("added_tokens"))),
        *_added(_members(config.get("added_tokens_decoder"))),
        *_declared(config),
        *_declared(_read(directory / "special_tokens_map.json")),
        *_added(_read(directory / "added_tokens.json")),
    )
    return frozenset(filter(None, named))


def _read(path: Path) -> Mapping[str, Any]:
    try:
        value = json.loads(read_model_file(path))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _members(value: object) -> Iterable[object]:
    """The members of a list, the values of an object; nothing of anything else."""
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def token_text(token: object) -> str:
    """The text of a token written as a string or as an object with `content`; `""` for anything else."""
    text = token.get("content") if isinstance(token, dict) else token
    return text if isinstance(text, str) else ""


def _added(tokens: Iterable[object]) -> Iterator[str]:
    for token in tokens:
        text = token_text(token)
        if (isinstance(token, dict) and token.get("special")) or _is_markup(text):
            yield text


def _declared(config: Mapping[str, Any]) -> Iterator[str]:
    """The tokens listed as special, and those given a role such as `eos_token`. A role alone does not make a
    word or a single character special: some models pad with `!`."""
    for name in _LISTS:
        yield from map(token_text, _members(config.get(name)))
    for name, value in config.items():
        if name.endswith(_ROLE_ENDING):
            text = token_text(value)
            if len(text) > 1 and _is_markup(text):
                yield text


def _is_markup(token: str) -> bool:
    return token != "" and not token.isspace() and not token.replace(" ", "").isalnum()
