"""config.json of a Hugging Face checkpoint directory, checked and reduced to what the transformer needs.

Guarantees: a `ModelConfig` that was returned describes a model this engine computes exactly as its family
defines it; anything else (unknown model type, a rotary scaling or activation we do not compute, sizes that do
not fit each other) is a `LaunchError` that names the key. No weight file is opened here.
"""

from __future__ import annotations

import json
import math
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.reference.errors import LaunchError

CONFIG_FILE = "config.json"
GENERATION_FILE = "generation_config.json"


@dataclass(frozen=True)
class Family:
    """What is fixed by the model type and not written in config.json."""

    interleaved_rotary: bool
    """Rotary pairs are neighbours (2i, 2i+1); otherwise (i, i + half)."""
    rotary_fraction: float
    """Default share of each head that is rotated."""
    head_dim: int | None
    """Default head size; None: hidden size / heads."""
    query_key_norm: bool = False
    post_norms: bool = False
    """RMS norms on the outputs of attention and MLP, before they are added to the residual."""
    fused_gate_up: bool = False
    """The checkpoint stores one gate_up_proj instead of gate_proj and up_proj."""
    attention_bias: bool | None = None
    """Bias on query, key and value; None: read `attention_bias`, default off."""
    output_bias: bool = False
    """With `attention_bias` the output projection has a bias too."""


FAMILIES: Mapping[str, Family] = {
    "glm": Family(True, 0.5, 128, fused_gate_up=True),
    "glm4": Family(True, 0.5, 128, fused_gate_up=True, post_norms=True),
    "llama": Family(False, 1.0, None, output_bias=True),
    "qwen2": Family(False, 1.0, None, attention_bias=True),
    "qwen3": Family(False, 1.0, 128, query_key_norm=True, output_bias=True),
}


@dataclass(frozen=True)
class ModelConfig:
    """Sizes and switches of one dense decoder-only transformer. Sizes are counts of elements."""

    model_type: str
    family: Family
    vocabulary: int
    hidden: int
    intermediate: int
    layers: int
    heads: int
    key_value_heads: int
    head_dim: int
    norm_epsilon: float
    attention_bias: bool
    output_bias: bool
    mlp_bias: bool
    tied_embeddings: bool
    max_positions: int
    inverse_frequencies: NDArray[np.float64]
    """Radians per position of each rotary pair, shape (rotary_dim / 2,)."""
    end_tokens: frozenset[int]

    @property
    def rotary_dim(self) -> int:
        """Leading elements of each head that are rotated (even)."""
        return 2 * len(self.inverse_frequencies)

    @property
    def group(self) -> int:
        """Query heads per key/value head."""
        return self.heads // self.key_value_heads


def require_regular(path: Path) -> Path:
    """The path of a regular file; LaunchError for anything else, which reading might never end."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise LaunchError(f"{path} is not a regular file")
    except FileNotFoundError:
        raise LaunchError(f"{path} is missing") from None
    except (OSError, ValueError) as error:
        raise LaunchError(f"{path} cannot be read: {error}") from None
    return path


def read_file(path: Path) -> bytes:
    """All bytes of a regular file; LaunchError when it is none or cannot be read."""
    try:
        return require_regular(path).read_bytes()
    except OSError as error:
        raise LaunchError(f"{path} cannot be read: {error.strerror}") from None


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in `path`; LaunchError when it is missing, unreadable, not JSON or not an object."""
    try:
        value = json.loads(read_file(path))
    except ValueError as error:
        raise LaunchError(f"{path} is not valid JSON: {error}") from None
    except RecursionError:
        raise LaunchError(f"{path} is nested too deeply") from None
    if not isinstance(value, dict):
        raise LaunchError(f"{path} must hold a JSON object")
    return value


_LARGEST_COUNT = 1 << 24
"""More than any model has of anything; tables are made of such counts before a tensor is looked at."""


class _Keys:
    """Typed access to config.json with errors that name file and key."""

    def __init__(self, values: Mapping[str, Any], path: Path) -> None:
        self.values = values
        self.path = path

    def fail(self, key: str, message: str) -> LaunchError:
        return LaunchError(f"{self.path}: {key} {message}")

    def count(self, key: str, default: int | None = None) -> int:
        value = self.values.get(key)
        if value is None:
            if default is None:
                raise self.fail(key, "is missing")
            return default
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise self.fail(key, f"must be a positive integer, not {value!r}")
        if value > _LARGEST_COUNT:
            raise self.fail(key, f"must be at most {_LARGEST_COUNT}, not {value!r}")
        return value

    def real(self, key: str, default: float | None = None) -> float:
        value = self.values.get(key)
        if value is None:
            if default is None:
                raise self.fail(key, "is missing")
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            raise self.fail(key, f"must be a positive number, not {value!r}")
        return float(value)

    def switch(self, key: str, default: bool) -> bool:
        value = self.values.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.fail(key, f"must be true or false, not {value!r}")
        return value


def load_config(directory: Path) -> ModelConfig:
    """Read config.json (and generation_config.json for the end tokens) of a checkpoint directory; raises
    LaunchError.
    """
    if not directory.is_dir():
        raise LaunchError(f"model directory {directory} does not exist")
    path = directory / CONFIG_FILE
    keys = _Keys(read_json(path), path)
    model_type = keys.values.get("model_type")
    family = FAMILIES.get(model_type) if isinstance(model_type, str) else None
    if family is None:
        raise LaunchError(
            f"{path}: model_type {model_type!r} is not supported (supported: {', '.join(FAMILIES)})"
        )
    if keys.values.get("hidden_act", "silu") not in ("silu", "swish"):
        raise keys.fail("hidden_act", f"must be 'silu', not {keys.values['hidden_act']!r}")
    if keys.values.get("use_sliding_window"):
        raise keys.fail("use_sliding_window", "is not supported")
    hidden, heads = keys.count("hidden_size"), keys.count("num_attention_heads")
    key_value_heads = keys.count("num_key_value_heads", heads)
    if heads % key_value_heads:
        raise keys.fail(
            "num_attention_heads", f"({heads}) must be a multiple of num_key_value_heads ({key_value_heads})"
        )
    if family.head_dim is None and keys.values.get("head_dim") is None and hidden % heads:
        raise keys.fail("hidden_size", f"({hidden}) must be a multiple of num_attention_heads ({heads})")
    head_dim = keys.count("head_dim", family.head_dim or hidden // heads)
    bias = family.attention_bias
    attention_bias = keys.switch("attention_bias", False) if bias is None else bias
    return ModelConfig(
        model_type=str(model_type),
        family=family,
        vocabulary=keys.count("vocab_size"),
        hidden=hidden,
        intermediate=keys.count("intermediate_size"),
        layers=keys.count("num_hidden_layers"),
        heads=heads,
        key_value_heads=key_value_heads,
        head_dim=head_dim,
        norm_epsilon=keys.real("rms_norm_eps"),
        attention_bias=attention_bias,
        output_bias=attention_bias and family.output_bias,
        mlp_bias=model_type == "llama" and keys.switch("mlp_bias", False),
        tied_embeddings=keys.switch("tie_word_embeddings", False),
        max_positions=keys.count("max_position_embeddings"),
        inverse_frequencies=_inverse_frequencies(keys, family, head_dim),
        end_tokens=_end_tokens(directory, keys),
    )


def _inverse_frequencies(keys: _Keys, family: Family, head_dim: int) -> NDArray[np.float64]:
    """Rotary frequencies from `rope_parameters` (transformers 5) or `rope_theta` and `rope_scaling`
    (before).
    """
    nested = keys.values.get("rope_parameters") or keys.values.get("rope_scaling") or {}
    if not isinstance(nested, dict):
        raise keys.fail("rope_parameters", "must be an object")
    rope = _Keys({**keys.values, **nested}, keys.path)
    fraction = rope.real("partial_rotary_factor", family.rotary_fraction)
    rotary_dim = int(head_dim * fraction)
    if rotary_dim < 2 or rotary_dim % 2 or rotary_dim > head_dim:
        raise keys.fail(
            "partial_rotary_factor",
            f"gives {rotary_dim} rotated elements of {head_dim}; must be even and within",
        )
    theta = rope.real("rope_theta", 10000.0)
    frequencies = 1.0 / theta ** (np.arange(0, rotary_dim, 2, dtype=np.float64) / rotary_dim)
    kind = nested.get("rope_type", nested.get("type", "default"))
    if kind == "linear":
        frequencies /= rope.real("factor")
    elif kind == "llama3":
        frequencies = _llama3_frequencies(rope, frequencies)
    elif kind != "default":
        raise keys.fail("rope_type", f"{kind!r} is not supported (supported: default, linear, llama3)")
    return frequencies


def _llama3_frequencies(rope: _Keys, frequencies: NDArray[np.float64]) -> NDArray[np.float64]:
    """Long waves slowed by `factor`, short ones kept, a linear blend between (the published llama 3.1
    rule).
    """
    factor, low, high = rope.real("factor"), rope.real("low_freq_factor"), rope.real("high_freq_factor")
    if high <= low:
        raise rope.fail("high_freq_factor", f"({high:g}) must be above low_freq_factor ({low:g})")
    turns = rope.count("original_max_position_embeddings") * frequencies / (2 * math.pi)
    blend = np.clip((turns - low) / (high - low), 0.0, 1.0)
    blended: NDArray[np.float64] = blend * frequencies + (1 - blend) * frequencies / factor
    return blended


def _end_tokens(directory: Path, keys: _Keys) -> frozenset[int]:
    """`eos_token_id` (one id or a list) of generation_config.json, else of config.json; empty when neither
    says any.
    """
    sources = [keys]
    generation = directory / GENERATION_FILE
    if generation.exists():
        sources.insert(0, _Keys(read_json(generation), generation))
    for source in sources:
        value = source.values.get("eos_token_id")
        if value is None:
            continue
        ids = value if isinstance(value, list) else [value]
        if any(isinstance(item, bool) or not isinstance(item, int) or item < 0 for item in ids):
            raise source.fail("eos_token_id", f"must be a token id or a list of them, not {value!r}")
        return frozenset(ids)
    return frozenset()
