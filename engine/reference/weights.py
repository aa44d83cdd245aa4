"""The weights of a checkpoint arranged for the forward pass.

What is done once here so that no step pays for it: query, key and value as one product, gate and up as one,
norm scales (and the sqrt(n) of `kernels.inverse_rms`) folded into the product that follows, the attention
scale folded into the queries, and rotary elements ordered as neighbouring pairs so that rotating is one
complex multiplication. The function computed is the same; float32 rounding differs by a few units in the last
place.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.reference.checkpoint import Checkpoint
from engine.reference.config import ModelConfig
from engine.reference.kernels import Arena, Floats, Projection, Tiling


@dataclass(frozen=True)
class Layer:
    """One decoder layer. Norms between a product and the residual stream that cannot be folded are kept as
    scales.
    """

    query_key_value: Projection
    query_key_scale: Floats | None
    """(heads + kv heads, head_dim) scale after the per-head norm of qwen3, else None."""
    output: Projection
    negated_gate_up: Projection
    """Gate and up of the MLP with their signs turned, as `kernels.silu_product` wants them."""
    down: Projection
    after_attention: Floats | None
    after_mlp: Floats | None


@dataclass(frozen=True)
class Weights:
    """Everything the forward pass reads."""

    embedding: Floats
    """(vocabulary, hidden)."""
    layers: tuple[Layer, ...]
    head: Projection
    """Final norm and output embedding: (hidden) to (vocabulary)."""


def load_weights(checkpoint: Checkpoint, config: ModelConfig, tiling: Tiling) -> Weights:
    """Read and arrange every tensor; LaunchError when one is missing or has another shape than config.json
    implies.
    """
    embedding = checkpoint.read("model.embed_tokens.weight", config.vocabulary, config.hidden)
    arena = Arena(_arena_elements(config))
    layers = tuple(_load_layer(checkpoint, config, tiling, arena, index) for index in range(config.layers))
    final = checkpoint.read("model.norm.weight", config.hidden)
    tied = config.tied_embeddings
    head = embedding if tied else checkpoint.read("lm_head.weight", config.vocabulary, config.hidden)
    return Weights(embedding, layers, Projection(arena, tiling, _after_norm(final, head)))


def _arena_elements(config: ModelConfig) -> int:
    heads, dim, hidden = config.heads, config.head_dim, config.hidden
    layer = (
        Projection.elements(hidden, (heads + 2 * config.key_value_heads) * dim)
        + Projection.elements(heads * dim, hidden)
        + Projection.elements(hidden, 2 * config.intermediate)
        + Projection.elements(config.intermediate, hidden)
    )
    return config.layers * layer + Projection.elements(hidden, config.vocabulary)


def _after_norm(scale: Floats, weight: Floats) -> Floats:
    """A checkpoint matrix (out, in) as (in, out) with the scale of the RMS norm before it folded in."""
    return weight.T * (scale * np.float32(np.sqrt(len(scale))))[:, None]


def _pair_order(config: ModelConfig) -> NDArray[np.int64]:
    """Order of a head's elements in which element 2i and 2i+1 rotate together."""
    order = np.arange(config.head_dim)
    if not config.family.interleaved_rotary:
        half = config.rotary_dim // 2
        order[: config.rotary_dim] = np.stack([np.arange(half), np.arange(half) + half], axis=1).reshape(-1)
    return order


def _load_layer(
    checkpoint: Checkpoint, config: ModelConfig, tiling: Tiling, arena: Arena, index: int
) -> Layer:
    hidden, dim, prefix = config.hidden, config.head_dim, f"model.layers.{index}."
    order = _pair_order(config)
    attention_scale = np.float32(dim**-0.5)
    before_attention = checkpoint.read(prefix + "input_layernorm.weight", hidden)
    matrices, biases = [], []
    parts = (("q", config.heads), ("k", config.key_value_heads), ("v", config.key_value_heads))
    for part, heads in parts:
        name = f"{prefix}self_attn.{part}_proj."
        matrix = checkpoint.read(name + "weight", heads * dim, hidden).reshape(heads, dim, hidden)
        bias = np.zeros((heads, dim), dtype=np.float32)
        if config.attention_bias:
            bias = checkpoint.read(name + "bias", heads * dim).reshape(heads, dim)
        if part != "v":
            matrix, bias = matrix[:, order], bias[:, order]
        if part == "q" and not config.family.query_key_norm:
            matrix, bias = matrix * attention_scale, bias * attention_scale
        matrices.append(matrix.reshape(-1, hidden))
        biases.append(bias.reshape(-1))
    fused = _after_norm(before_attention, np.concatenate(matrices))
    query_key_scale = None
    if config.family.query_key_norm:
        root = np.float32(np.sqrt(dim))
        query = checkpoint.read(prefix + "self_attn.q_norm.weight", dim)[order] * root * attention_scale
        key = checkpoint.read(prefix + "self_attn.k_norm.weight", dim)[order] * root
        query_key_scale = np.concatenate(
            [np.tile(query, (config.heads, 1)), np.tile(key, (config.key_value_heads, 1))]
        )
    output = checkpoint.read(prefix + "self_attn.o_proj.weight", hidden, config.heads * dim)
    output_bias = checkpoint.read(prefix + "self_attn.o_proj.bias", hidden) if config.output_bias else None
    gate_up, gate_up_bias, down, down_bias = _load_mlp(checkpoint, config, prefix + "mlp.")
    before_mlp = checkpoint.read(prefix + "post_attention_layernorm.weight", hidden)
    after_attention = after_mlp = None
    if config.family.post_norms:
        root = np.float32(np.sqrt(hidden))
        after_attention = checkpoint.read(prefix + "post_self_attn_layernorm.weight", hidden) * root
        after_mlp = checkpoint.read(prefix + "post_mlp_layernorm.weight", hidden) * root
    return Layer(
        query_key_value=Projection(
            arena, tiling, fused, np.concatenate(biases) if config.attention_bias else None
        ),
        query_key_scale=query_key_scale,
        output=Projection(arena, tiling, output.T, output_bias),
        negated_gate_up=Projection(
            arena, tiling, -_after_norm(before_mlp, gate_up), None if gate_up_bias is None else -gate_up_bias
        ),
        down=Projection(arena, tiling, down.T, down_bias),
        after_attention=after_attention,
        after_mlp=after_mlp,
    )


def _load_mlp(
    checkpoint: Checkpoint, config: ModelConfig, prefix: str
) -> tuple[Floats, Floats | None, Floats, Floats | None]:
    """(gate and up, their bias, down, its bias); gate first."""
    hidden, inner = config.hidden, config.intermediate
    down = checkpoint.read(prefix + "down_proj.weight", hidden, inner)
    if config.family.fused_gate_up:
        return checkpoint.read(prefix + "gate_up_proj.weight", 2 * inner, hidden), None, down, None
    parts = [checkpoint.read(f"{prefix}{part}_proj.weight", inner, hidden) for part in ("gate", "up")]
    if not config.mlp_bias:
        return np.concatenate(parts), None, down, None
    biases = [checkpoint.read(f"{prefix}{part}_proj.bias", inner) for part in ("gate", "up")]
    return (
        np.concatenate(parts),
        np.concatenate(biases),
        down,
        checkpoint.read(prefix + "down_proj.bias", hidden),
    )
