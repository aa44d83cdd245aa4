"""The echoed log probabilities against an independent computation on the same weights (http.md §9).

The forward pass below is written for this test alone, in double precision, one plain formula a line, from the
published description of the GLM decoder. It shares no code with any engine.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from server.model import embedded_model

np = pytest.importorskip("numpy")
numpy_files = pytest.importorskip("safetensors.numpy")


def log_softmax(logits: Any) -> Any:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


class Decoder:
    """A GLM checkpoint, read whole; ``logits(ids)`` is the full forward pass, without a cache."""

    def __init__(self, directory: Path) -> None:
        self.config = json.loads((directory / "config.json").read_text())
        stored = numpy_files.load_file(directory / "model.safetensors")
        self.weights = {name: tensor.astype(np.float64) for name, tensor in stored.items()}

    def normed(self, x: Any, name: str) -> Any:
        scale = np.sqrt((x * x).mean(axis=-1, keepdims=True) + self.config["rms_norm_eps"])
        return x / scale * self.weights[name]

    def linear(self, x: Any, name: str) -> Any:
        return x @ self.weights[f"{name}.weight"].T + self.weights.get(f"{name}.bias", 0.0)

    def rotated(self, heads: Any) -> Any:
        """Rotary positions on the first part of each head, pairs of neighbours turned together."""
        length, size = heads.shape[0], heads.shape[-1]
        turned = int(size * self.config["partial_rotary_factor"])
        frequencies = self.config["rope_theta"] ** -(np.arange(0, turned, 2) / turned)
        angles = np.arange(length)[:, None] * frequencies
        cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
        even, odd = heads[..., 0:turned:2], heads[..., 1:turned:2]
        out = heads.copy()
        out[..., 0:turned:2] = even * cos - odd * sin
        out[..., 1:turned:2] = odd * cos + even * sin
        return out

    def attention(self, x: Any, name: str) -> Any:
        length, size = x.shape[0], self.config["head_dim"]
        query = self.rotated(self.linear(x, f"{name}.q_proj").reshape(length, -1, size))
        key = self.rotated(self.linear(x, f"{name}.k_proj").reshape(length, -1, size))
        value = self.linear(x, f"{name}.v_proj").reshape(length, -1, size)
        shared = query.shape[1] // key.shape[1]
        key, value = np.repeat(key, shared, axis=1), np.repeat(value, shared, axis=1)
        scores = np.einsum("qhd,khd->hqk", query, key) / np.sqrt(size)
        scores = np.where(np.tri(length, dtype=bool), scores, -np.inf)
        mixed = np.einsum("hqk,khd->qhd", np.exp(log_softmax(scores)), value)
        return self.linear(mixed.reshape(length, -1), f"{name}.o_proj")

    def feed_forward(self, x: Any, name: str) -> Any:
        gate, up = np.split(self.linear(x, f"{name}.gate_up_proj"), 2, axis=-1)
        return self.linear(gate / (1 + np.exp(-gate)) * up, f"{name}.down_proj")

    def logits(self, ids: list[int]) -> Any:
        embedding = self.weights["model.embed_tokens.weight"]
        x = embedding[ids]
        for layer in range(self.config["num_hidden_layers"]):
            name = f"model.layers.{layer}"
            x = x + self.attention(self.normed(x, f"{name}.input_layernorm.weight"), f"{name}.self_attn")
            x = x + self.feed_forward(
                self.normed(x, f"{name}.post_attention_layernorm.weight"), f"{name}.mlp"
            )
        return self.normed(x, "model.norm.weight") @ self.weights.get("lm_head.weight", embedding).T


PROMPTS = [
    "The capital of France is Paris.",
    "[gMASK]<sop><|user|>what is 2 + 2?<|assistant|><think></think>2 + 2 = 4.",
    "é🙂 and some more text, 1234567890",
]


@pytest.fixture(scope="module")
def decoder() -> Decoder:
    return Decoder(embedded_model())


@pytest.mark.parametrize("prompt", PROMPTS)
def test_echoed_log_probabilities_equal_a_full_softmax_within_1e_5(
    real_gateway: Any, decoder: Decoder, prompt: str
) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_file(str(embedded_model() / "tokenizer.json"))
    ids = tokenizer.encode(prompt, add_special_tokens=False).ids
    expected = log_softmax(decoder.logits(ids))
    answer = real_gateway.complete(ids, logprobs=5, echo=True, max_tokens=1, temperature=0).json
    scores = answer["choices"][0]["logprobs"]
    echoed = scores["token_logprobs"][1 : len(ids)]
    assert np.abs(np.array(echoed) - expected[np.arange(len(ids) - 1), ids[1:]]).max() < 1e-5
    generated = scores["token_logprobs"][len(ids)]
    assert abs(generated - expected[-1].max()) < 1e-5
    for place, table in enumerate(scores["top_logprobs"][1 : len(ids) + 1]):
        best = np.sort(expected[place])[::-1][:5]
        shown = np.array(sorted(table.values(), reverse=True))
        assert np.abs(shown - best[: len(shown)]).max() < 3e-5  # far tails, single precision in the engine
