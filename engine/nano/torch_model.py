# mypy: disallow-subclassing-any=False
"""The GLM decoder in torch, for training only; parameter names and shapes are those ``transformers``
saves.

Pre-norm blocks, grouped-query attention with biases on q, k and v, rotary embedding on interleaved pairs of
the first half of each head, SwiGLU with a fused gate and up projection, tied output embedding.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional

from engine.nano import WEIGHTS_FILE


@dataclass(frozen=True)
class Shape:
    """The sizes of the model; the names are those of a Hugging Face ``config.json``."""

    vocab_size: int = 1024
    hidden_size: int = 192
    intermediate_size: int = 512
    num_hidden_layers: int = 4
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    head_dim: int = 48
    partial_rotary_factor: float = 0.5
    rope_theta: float = 10000.0
    rms_norm_eps: float = 1e-5
    max_position_embeddings: int = 2048


def _rotate(states: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Turn the interleaved pairs of the first 2 * cosine.shape[-1] components; states (batch, heads, time,
    head_dim).
    """
    width = 2 * cosine.shape[-1]
    turned, kept = states[..., :width], states[..., width:]
    even, odd = turned[..., 0::2], turned[..., 1::2]
    pairs = torch.stack((even * cosine - odd * sine, odd * cosine + even * sine), dim=-1)
    return torch.cat((pairs.flatten(-2), kept), dim=-1)


class _Attention(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        width = shape.head_dim
        self.q_proj = nn.Linear(shape.hidden_size, shape.num_attention_heads * width, bias=True)
        self.k_proj = nn.Linear(shape.hidden_size, shape.num_key_value_heads * width, bias=True)
        self.v_proj = nn.Linear(shape.hidden_size, shape.num_key_value_heads * width, bias=True)
        self.o_proj = nn.Linear(shape.num_attention_heads * width, shape.hidden_size, bias=False)

    def forward(self, states: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        batch, time, _ = states.shape
        heads = (batch, time, -1, self.shape.head_dim)
        query = _rotate(self.q_proj(states).view(heads).transpose(1, 2), cosine, sine)
        key = _rotate(self.k_proj(states).view(heads).transpose(1, 2), cosine, sine)
        value = self.v_proj(states).view(heads).transpose(1, 2)
        groups = self.shape.num_attention_heads // self.shape.num_key_value_heads
        key, value = key.repeat_interleave(groups, dim=1), value.repeat_interleave(groups, dim=1)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        projected: Tensor = self.o_proj(mixed.transpose(1, 2).reshape(batch, time, -1))
        return projected


class _FeedForward(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate_up_proj = nn.Linear(shape.hidden_size, 2 * shape.intermediate_size, bias=False)
        self.down_proj = nn.Linear(shape.intermediate_size, shape.hidden_size, bias=False)

    def forward(self, states: Tensor) -> Tensor:
        gate, up = self.gate_up_proj(states).chunk(2, dim=-1)
        projected: Tensor = self.down_proj(functional.silu(gate) * up)
        return projected


class _Layer(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(shape.hidden_size, eps=shape.rms_norm_eps)
        self.self_attn = _Attention(shape)
        self.post_attention_layernorm = nn.RMSNorm(shape.hidden_size, eps=shape.rms_norm_eps)
        self.mlp = _FeedForward(shape)

    def forward(self, states: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        states = states + self.self_attn(self.input_layernorm(states), cosine, sine)
        return states + self.mlp(self.post_attention_layernorm(states))


class _Decoder(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocab_size, shape.hidden_size)
        self.layers = nn.ModuleList(_Layer(shape) for _ in range(shape.num_hidden_layers))
        self.norm = nn.RMSNorm(shape.hidden_size, eps=shape.rms_norm_eps)


class GlmModel(nn.Module):
    """Token ids (batch, time) to logits (batch, time, vocabulary)."""

    cosine: Tensor
    sine: Tensor

    def __init__(self, shape: Shape, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.shape = shape
        self.model = _Decoder(shape)
        width = int(shape.head_dim * shape.partial_rotary_factor)
        inverse = 1.0 / shape.rope_theta ** (torch.arange(0, width, 2, dtype=torch.float32) / width)
        angles = torch.outer(torch.arange(shape.max_position_embeddings, dtype=torch.float32), inverse)
        self.register_buffer("cosine", angles.cos(), persistent=False)
        self.register_buffer("sine", angles.sin(), persistent=False)
        residual_scale = (2 * shape.num_hidden_layers) ** -0.5
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                scale = residual_scale if name.endswith(("o_proj.weight", "down_proj.weight")) else 1.0
                nn.init.normal_(
                    parameter, std=0.02 * scale if "embed" in name else scale * parameter.shape[1] ** -0.5
                )
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, tokens: Tensor) -> Tensor:
        time = tokens.shape[1]
        cosine, sine = self.cosine[:time], self.sine[:time]
        states = self.model.embed_tokens(tokens)
        for layer in self.model.layers:
            states = layer(states, cosine, sine)
        return functional.linear(self.model.norm(states), self.model.embed_tokens.weight)


def weighted_loss(model: nn.Module, inputs: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """Mean cross entropy in nats over the tokens, each counted with its weight."""
    logits = model(inputs).float()
    losses = functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
    flat = weights.flatten()
    return (losses * flat).sum() / flat.sum()


def save_checkpoint(model: GlmModel, directory: Path, end_token_ids: list[int]) -> None:
    """Write config.json, generation_config.json and model.safetensors (float16) as ``transformers`` lays
    them out.
    """
    directory.mkdir(parents=True, exist_ok=True)
    config: dict[str, Any] = {
        "architectures": ["GlmForCausalLM"],
        "model_type": "glm",
        **asdict(model.shape),
        "attention_bias": True,
        "attention_dropout": 0.0,
        "hidden_act": "silu",
        "initializer_range": 0.02,
        "tie_word_embeddings": True,
        "use_cache": True,
        "dtype": "float16",
        "bos_token_id": None,
        "eos_token_id": end_token_ids,
        "pad_token_id": end_token_ids[0],
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": model.shape.rope_theta,
            "partial_rotary_factor": model.shape.partial_rotary_factor,
        },
    }
    (directory / "config.json").write_text(
        json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8"
    )
    generation = {"do_sample": False, "eos_token_id": end_token_ids, "pad_token_id": end_token_ids[0]}
    (directory / "generation_config.json").write_text(
        json.dumps(generation, indent=2) + "\n", encoding="utf-8"
    )
    tensors = {
        name: parameter.detach().to(torch.float16).contiguous()
        for name, parameter in model.named_parameters()
    }
    save_file(tensors, directory / WEIGHTS_FILE, metadata={"format": "pt"})
    (directory / WEIGHTS_FILE).chmod(0o644)
