"""Writes small random checkpoint directories in the Hugging Face layout, byte for byte the same on every run.

The tests' stand-in for a downloaded model: real files, real tokenizer, random weights drawn from a frozen
generator.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

MERGES = ("t h", "th e", "i n", "a n", "Ġ a", "Ġ the", "e r", "o n", "r e", "l l", "1 2")
SPECIAL_TOKENS = (
    "<|endoftext|>",
    "[gMASK]",
    "<sop>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|observation|>",
)
PLAIN_TAGS = ("<think>", "</think>")
END_NAMES = ("<|endoftext|>", "<|user|>", "<|observation|>")


def byte_alphabet() -> list[str]:
    """The 256 printable stand-ins of byte-level BPE, in byte order."""
    kept = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = iter(range(256, 512))
    return [chr(byte) if byte in kept else chr(next(others)) for byte in range(256)]


def build_tokenizer() -> Tokenizer:
    """Byte-level BPE: 256 bytes, a few merges, the GLM special tokens and two plain tags."""
    merges = [tuple(merge.split()) for merge in MERGES]
    words = [*byte_alphabet(), *(left + right for left, right in merges)]
    tokenizer = Tokenizer(models.BPE(vocab={word: index for index, word in enumerate(words)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [AddedToken(name, special=True, normalized=False) for name in SPECIAL_TOKENS]
    )
    tokenizer.add_tokens([AddedToken(name, special=False, normalized=False) for name in PLAIN_TAGS])
    return tokenizer


@dataclass(frozen=True)
class Recipe:
    """One tiny model: config.json entries that differ from BASE, and how its weights are stored."""

    config: Mapping[str, Any]
    dtype: str = "F32"
    shards: int = 1
    seed: int = 1
    spread: float = 1.5
    """Standard deviation of the weights in units of 1/sqrt(fan in)."""
    drop: frozenset[str] = field(default_factory=frozenset)
    loud: Mapping[str, float] = field(default_factory=dict)
    """Tokens whose row of lm_head is multiplied, which makes them come up, or stay away, more often."""


BASE: Mapping[str, Any] = {
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 12,
    "vocab_size": 288,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "attention_bias": False,
    "tie_word_embeddings": False,
}

LLAMA3_ROPE = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}

RECIPES: Mapping[str, Recipe] = {
    "glm": Recipe(
        {
            "model_type": "glm",
            "attention_bias": True,
            "tie_word_embeddings": True,
            "partial_rotary_factor": 0.5,
        },
        dtype="F16",
    ),
    "glm4": Recipe({"model_type": "glm4", "attention_bias": True, "partial_rotary_factor": 0.5}, seed=2),
    "llama": Recipe({"model_type": "llama"}, dtype="BF16", shards=3, seed=3),
    "llama-biased": Recipe(
        {
            "model_type": "llama",
            "attention_bias": True,
            "mlp_bias": True,
            "num_key_value_heads": 4,
            "intermediate_size": 800,
            "rope_scaling": LLAMA3_ROPE,
        },
        seed=4,
    ),
    "qwen2": Recipe({"model_type": "qwen2", "tie_word_embeddings": True}, seed=5),
    "qwen3": Recipe({"model_type": "qwen3", "head_dim": 16, "num_key_value_heads": 1}, dtype="BF16", seed=6),
}


def full_config(recipe: Recipe) -> dict[str, Any]:
    """The complete config.json of a recipe."""
    tokenizer = build_tokenizer()
    ends = [tokenizer.token_to_id(name) for name in END_NAMES]
    return {**BASE, "eos_token_id": ends, "pad_token_id": ends[0], **recipe.config}


def tensor_shapes(config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Name and shape of every tensor the model type has."""
    kind, hidden, inner, dim = (
        config["model_type"],
        config["hidden_size"],
        config["intermediate_size"],
        config["head_dim"],
    )
    query, shared = config["num_attention_heads"] * dim, config["num_key_value_heads"] * dim
    biased = config["attention_bias"] or kind == "qwen2"
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (config["vocab_size"], hidden)}
    for index in range(config["num_hidden_layers"]):
        layer = f"model.layers.{index}."
        shapes |= {
            layer + "input_layernorm.weight": (hidden,),
            layer + "post_attention_layernorm.weight": (hidden,),
        }
        if kind == "glm4":
            shapes |= {
                layer + "post_self_attn_layernorm.weight": (hidden,),
                layer + "post_mlp_layernorm.weight": (hidden,),
            }
        for part, width in (("q", query), ("k", shared), ("v", shared)):
            shapes[f"{layer}self_attn.{part}_proj.weight"] = (width, hidden)
            if biased:
                shapes[f"{layer}self_attn.{part}_proj.bias"] = (width,)
        shapes[layer + "self_attn.o_proj.weight"] = (hidden, query)
        if biased and kind in ("llama", "qwen3"):
            shapes[layer + "self_attn.o_proj.bias"] = (hidden,)
        if kind == "qwen3":
            shapes |= {layer + "self_attn.q_norm.weight": (dim,), layer + "self_attn.k_norm.weight": (dim,)}
        widths = {"gate_up": 2 * inner} if kind in ("glm", "glm4") else {"gate": inner, "up": inner}
        for part, width in widths.items():
            shapes[f"{layer}mlp.{part}_proj.weight"] = (width, hidden)
            if config.get("mlp_bias"):
                shapes[f"{layer}mlp.{part}_proj.bias"] = (width,)
        shapes[layer + "mlp.down_proj.weight"] = (hidden, inner)
        if config.get("mlp_bias"):
            shapes[layer + "mlp.down_proj.bias"] = (hidden,)
    shapes["model.norm.weight"] = (hidden,)
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (config["vocab_size"], hidden)
    return shapes


def random_tensors(recipe: Recipe) -> dict[str, np.ndarray]:
    """float32 weights of a recipe; norm scales near one, biases small."""
    random = np.random.RandomState(recipe.seed)
    tensors = {}
    for name, shape in tensor_shapes(full_config(recipe)).items():
        values = random.standard_normal(shape)
        if name.endswith("norm.weight"):
            values = 1 + 0.2 * values
        elif name.endswith("bias"):
            values = 0.3 * values
        else:
            values = values * recipe.spread / np.sqrt(shape[-1])
        tensors[name] = values.astype(np.float32)
    for token, factor in recipe.loud.items():
        tensors["lm_head.weight"][build_tokenizer().token_to_id(token)] *= np.float32(factor)
    return {name: values for name, values in tensors.items() if name not in recipe.drop}


def stored_bytes(values: np.ndarray, dtype: str) -> bytes:
    """float32 values in a safetensors storage type (BF16 by rounding to nearest even)."""
    if dtype == "F32":
        return values.astype("<f4").tobytes()
    if dtype == "F16":
        return values.astype("<f2").tobytes()
    bits = values.astype("<f4").view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return rounded.astype("<u2").tobytes()


def write_safetensors(path: Path, tensors: Mapping[str, np.ndarray], dtype: str) -> None:
    """One safetensors file."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    body = b""
    for name, values in tensors.items():
        data = stored_bytes(values, dtype)
        offsets = [len(body), len(body) + len(data)]
        header[name] = {"dtype": dtype, "shape": list(values.shape), "data_offsets": offsets}
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)


def write_checkpoint(directory: Path, recipe: Recipe) -> Path:
    """A complete model directory; returns it."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(full_config(recipe), indent=1), encoding="utf-8")
    build_tokenizer().save(str(directory / "tokenizer.json"))
    tensors = random_tensors(recipe)
    if recipe.shards == 1:
        write_safetensors(directory / "model.safetensors", tensors, recipe.dtype)
        return directory
    weight_map = {}
    names = list(tensors)
    for shard in range(recipe.shards):
        file_name = f"model-{shard + 1:05d}-of-{recipe.shards:05d}.safetensors"
        part = {name: tensors[name] for name in names[shard :: recipe.shards]}
        write_safetensors(directory / file_name, part, recipe.dtype)
        weight_map |= dict.fromkeys(part, file_name)
    index = {"metadata": {}, "weight_map": weight_map}
    (directory / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    return directory
