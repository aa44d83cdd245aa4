"""The llama.cpp side of bench_llama_cpp.py, a process of a Python that has llama-cpp-python and gguf.

    python llama_cpp_rounds.py MODEL_DIR THREADS SLOTS SCRATCH

Writes a `glm` checkpoint (one safetensors file of F32 or F16) as GGUF into SCRATCH, weights as they are
stored, and loads it through the library's low-level interface: what its own server is made of, without the
Python wrapper. The KV cache is F32 for F32 weights and llama.cpp's default, F16, for F16 weights. Then, for
each line `BATCH PROMPT TOKENS` on stdin, it decodes TOKENS tokens greedily for BATCH equal prompts of the
ids 10, 11, … and answers with a line of JSON: seconds, and the tokens of the first sequence.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path
from time import perf_counter

import gguf
import numpy as np
from llama_cpp import llama_cpp as api

CONTEXT = 512
TYPES = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2")}
LAYER = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
WHOLE = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def read_tensors(path: Path) -> dict[str, np.ndarray]:
    """Every tensor of a safetensors file."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        first, end = entry["data_offsets"]
        values = np.frombuffer(data[start + first : start + end], TYPES[entry["dtype"]])
        tensors[name] = values.reshape(entry["shape"])
    return tensors


def gguf_name(name: str) -> str:
    """The name llama.cpp knows a tensor of the checkpoint by."""
    stem, kind = name.rsplit(".", 1)
    if stem in WHOLE:
        return f"{WHOLE[stem]}.{kind}"
    layer, part = stem.removeprefix("model.layers.").split(".", 1)
    return f"blk.{layer}.{LAYER[part]}.{kind}"


def write_gguf(directory: Path, target: Path) -> bool:
    """Convert; returns whether the matrices are F32.

    The architecture `chatglm` is that of model type `glm`: gate and up joined, biases of query, key and
    value, neighbouring pairs turned in a part of each head.
    """
    config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    assert config["model_type"] == "glm", config["model_type"]
    writer = gguf.GGUFWriter(target, "chatglm")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_rope_dimension_count(int(config["head_dim"] * config["partial_rotary_factor"]))
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_tokenizer_model("no_vocab")
    wide = True
    for name, values in read_tensors(directory / "model.safetensors").items():
        matrix = values.ndim == 2
        wide = wide and (not matrix or values.dtype == TYPES["F32"])
        writer.add_tensor(gguf_name(name), values if matrix else values.astype("<f4"))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return wide


def silence() -> None:
    """llama.cpp says something at every step; to a C function that ignores it, which costs nothing."""
    nothing = ctypes.cast(ctypes.CDLL(None).abs, ctypes.c_void_p).value
    api.llama_log_set(api.llama_log_callback(nothing), None)


class Decoder:
    """A context of SLOTS sequences, its greedy sampler, and a batch with room for their prompts."""

    def __init__(self, path: Path, threads: int, slots: int, wide: bool) -> None:
        self._model = api.llama_model_load_from_file(str(path).encode(), api.llama_model_default_params())
        settings = api.llama_context_default_params()
        settings.n_ctx = CONTEXT * slots
        settings.n_batch = settings.n_ubatch = CONTEXT
        settings.n_seq_max = slots
        settings.n_threads = settings.n_threads_batch = threads
        settings.no_perf = True
        if wide:
            settings.type_k = settings.type_v = api.GGML_TYPE_F32
        self._context = api.llama_init_from_model(self._model, settings)
        assert self._context, "llama.cpp makes no context"
        self._sampler = api.llama_sampler_init_greedy()
        self._batch = api.llama_batch_init(CONTEXT, 0, 1)

    def _put(self, index: int, token: int, position: int, sequence: int, wanted: bool) -> None:
        batch = self._batch
        batch.token[index] = token
        batch.pos[index] = position
        batch.n_seq_id[index] = 1
        batch.seq_id[index][0] = sequence
        batch.logits[index] = wanted

    def _decode(self, size: int) -> None:
        self._batch.n_tokens = size
        code = api.llama_decode(self._context, self._batch)
        assert code == 0, f"llama_decode returned {code}"

    def generate(self, sequences: int, prompt: int, tokens: int) -> list[int]:
        """Greedy tokens of the first sequence; every sequence is computed."""
        api.llama_memory_clear(api.llama_get_memory(self._context), True)
        for sequence in range(sequences):
            for position in range(prompt):
                index = sequence * prompt + position
                self._put(index, 10 + position, position, sequence, position == prompt - 1)
        self._decode(sequences * prompt)
        rows = [(sequence + 1) * prompt - 1 for sequence in range(sequences)]
        found = []
        for step in range(tokens):
            chosen = [api.llama_sampler_sample(self._sampler, self._context, row) for row in rows]
            found.append(chosen[0])
            if step == tokens - 1:
                break
            if step == 0:
                rows = list(range(sequences))
            for sequence, token in enumerate(chosen):
                self._put(sequence, token, prompt + step, sequence, True)
            self._decode(sequences)
        return found


def main() -> None:
    """Serve rounds until stdin ends."""
    directory, threads, slots, scratch = (
        Path(sys.argv[1]),
        int(sys.argv[2]),
        int(sys.argv[3]),
        Path(sys.argv[4]),
    )
    silence()
    api.llama_backend_init()
    path = scratch / "model.gguf"
    decoder = Decoder(path, threads, slots, write_gguf(directory, path))
    print("ready", flush=True)
    for line in sys.stdin:
        sequences, prompt, tokens = map(int, line.split())
        start = perf_counter()
        found = decoder.generate(sequences, prompt, tokens)
        print(json.dumps({"seconds": perf_counter() - start, "tokens": found}), flush=True)


if __name__ == "__main__":
    main()
