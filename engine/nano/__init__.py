"""The embedded model: a really trained 1.8 M parameter chat model and everything that made it.

``MODEL_DIRECTORY`` is the committed checkpoint (GLM layout, float16), loadable by every engine of the
project. Only ``engine.nano.train`` and the modules it alone imports need torch; serving the model never
does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

MODEL_DIRECTORY: Final = Path(__file__).resolve().parent / "model"
"""Directory of the committed checkpoint: config.json, tokenizer.json, model.safetensors,
chat_template.jinja, …
"""
WEIGHTS_FILE: Final = "model.safetensors"
"""In a checkpoint directory."""
