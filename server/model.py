"""The model that is served: what its directory says about it, and which family speaks for its engine."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from generated.families import FAMILIES, Family, family_for_model_type
from server.model_files import read_model_file

AUTO: Final = "auto"
"""The family setting that means: read ``model_type`` in config.json."""

_CONTEXT_KEYS: Final = ("max_position_embeddings", "seq_length", "n_positions", "max_sequence_length")


class ModelError(Exception):
    """The model cannot be served; the text is one line for the operator."""


@dataclass(frozen=True, slots=True)
class ServedModel:
    """One model. ``created`` is Unix seconds, ``context_length`` tokens (None: config.json does not say)."""

    id: str
    directory: Path
    family: Family
    created: int
    context_length: int | None

    @property
    def tokenizer_path(self) -> Path:
        """Where a Hugging Face tokenizer would be."""
        return self.directory / "tokenizer.json"


def embedded_model() -> Path:
    """Directory of the model that comes with the project."""
    return Path(__file__).resolve().parent.parent / "engine" / "nano" / "model"


def load_model(directory: str | None, *, model_id: str | None, arch: str, context: str | None) -> ServedModel:
    """Read ``config.json`` in ``directory`` (None: the embedded model).

    ``arch`` is a family's name or ``auto``; ``context`` the CTX variable that the engine is given, if any.
    Raises ModelError.
    """
    path = embedded_model() if directory is None else Path(directory)
    if not path.is_dir():
        raise ModelError(f"the model directory {path} does not exist")
    config_path = path / "config.json"
    config = _read_config(config_path)
    family = _family(config, arch, config_path)
    return ServedModel(
        id=model_id or _name(directory, path),
        directory=path,
        family=family,
        created=int(config_path.stat().st_mtime),
        context_length=_context_length(config, context),
    )


def _name(directory: str | None, path: Path) -> str:
    """The directory's name; the embedded model's is that of the package around it."""
    return path.parent.name if directory is None else path.resolve().name


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(read_model_file(path))
    except FileNotFoundError:
        raise ModelError(f"{path.parent} is not a model directory: it has no {path.name}") from None
    except (OSError, ValueError, RecursionError) as fault:
        raise ModelError(f"{path} cannot be read: {fault}") from None
    if not isinstance(config, dict):
        raise ModelError(f"{path} is not a JSON object")
    return config


def _family(config: dict[str, Any], arch: str, path: Path) -> Family:
    if arch != AUTO:
        return FAMILIES[arch]
    model_type = config.get("model_type")
    family = family_for_model_type(model_type) if isinstance(model_type, str) else None
    if family is None:
        raise ModelError(
            f"{path} has the model_type {model_type!r}, which no family serves; name one with --arch: "
            + ", ".join(FAMILIES)
        )
    return family


def _context_length(config: dict[str, Any], context: str | None) -> int | None:
    own = next((config[key] for key in _CONTEXT_KEYS if type(config.get(key)) is int), None)
    if context is not None and context.isascii() and context.isdigit():
        asked = int(context)
        return asked if own is None else min(asked, own)
    return own
