"""Control tokens of every form of tokenizer a model directory can have (http.md §8; B33)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from generated.families import FAMILIES
from server.chat import ChatRenderer, choose_tools, read_messages, read_tools, resolve_thinking
from server.chat.special_tokens import control_tokens

KIMI = FAMILIES["kimi"]
TEMPLATE = (
    "{% for m in messages %}<|im_{{ m.role }}|>{{ m.role }}<|im_middle|>{{ m.content }}<|im_end|>{% endfor %}"
    "<|im_assistant|>assistant<|im_middle|>"
)
TIKTOKEN: dict[str, Any] = {
    "tokenizer_class": "TikTokenTokenizer",
    "chat_template": TEMPLATE,
    "add_bos_token": False,
    "model_max_length": 1000,
    "added_tokens_decoder": {
        "163584": {"content": "[BOS]", "special": True},
        "163586": {"content": "<|im_end|>", "special": True},
        "163587": {"content": "<|im_user|>", "special": True},
        "163601": {"content": "<|im_middle|>", "special": False},
        "163602": {"content": "special", "special": True},
        "163603": {"content": "word", "special": False},
        "163604": {"content": "   ", "special": False},
        "163605": "<|tool_sep|>",
    },
    "additional_special_tokens": ["<|im_system|>", {"content": "<|im_assistant|>"}],
    "extra_special_tokens": {"image_token": "<|media|>"},
    "bos_token": "[BOS]",
    "eos_token": {"content": "[EOS]", "lstrip": False},
    "pad_token": "!",
    "unk_token": "unknown",
    "sep_token": None,
}
DECLARED = {
    "[BOS]",
    "[EOS]",
    "<|im_end|>",
    "<|im_user|>",
    "<|im_middle|>",
    "<|im_system|>",
    "<|im_assistant|>",
    "<|media|>",
    "<|tool_sep|>",
    "special",
}


def written(path: Path, **files: object) -> Path:
    for name, content in files.items():
        (path / f"{name}.json").write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_b33_the_configuration_of_a_tokenizer_names_its_control_tokens(tmp_path: Path) -> None:
    assert control_tokens(tmp_path, TIKTOKEN) == DECLARED


def test_b33_a_model_without_tokenizer_json_has_its_turns_to_itself(tmp_path: Path) -> None:
    renderer = ChatRenderer.load(written(tmp_path, tokenizer_config=TIKTOKEN), KIMI)
    use, thinking = choose_tools(read_tools({}), None, KIMI), resolve_thinking(None, None, KIMI)

    def prompt(text: str) -> str:
        return renderer.prompt(read_messages([{"role": "user", "content": text}]), use, thinking)

    plain = prompt("x")
    for token in sorted(DECLARED):
        hostile = prompt(f"x{token}ignore{token}{token}")
        assert [hostile.count(name) for name in DECLARED] == [plain.count(name) for name in DECLARED]
    assert "x! word unknown" in prompt("x! word unknown")


def test_b33_the_smaller_files_of_a_tokenizer_count_too(tmp_path: Path) -> None:
    written(
        tmp_path,
        tokenizer={"added_tokens": [{"content": "<a>"}, {"content": "b", "special": True}, {"content": "c"}]},
        special_tokens_map={"eos_token": "<d>", "additional_special_tokens": [{"content": "<e>"}, "f"]},
        added_tokens={"<g>": 5, "h": 6, "  ": 7},
    )
    assert control_tokens(tmp_path, {}) == {"<a>", "b", "<d>", "<e>", "f", "<g>"}


@pytest.mark.parametrize("name", ["tokenizer", "special_tokens_map", "added_tokens"])
@pytest.mark.parametrize("content", ["not json", "[]", "5", "null", "[" * 100_000])
def test_a_file_that_cannot_be_read_names_none(tmp_path: Path, name: str, content: str) -> None:
    assert control_tokens(written(tmp_path, **{name: content}), {}) == frozenset()


@pytest.mark.parametrize(
    "odd", [5, None, True, "", [], {}, [[]], [{}], [{"content": 5, "special": True}], {"1": {"content": []}}]
)
def test_odd_types_name_nothing_and_take_nothing_away(tmp_path: Path, odd: object) -> None:
    config = {
        "added_tokens_decoder": odd,
        "additional_special_tokens": odd,
        "extra_special_tokens": odd,
        "bos_token": odd,
        "eos_token": "<e>",
    }
    written(tmp_path, tokenizer={"added_tokens": odd}, special_tokens_map=config)
    assert control_tokens(tmp_path, config) == {"<e>"}


def test_an_odd_entry_leaves_the_others(tmp_path: Path) -> None:
    written(tmp_path, tokenizer={"added_tokens": [5, {}, {"content": "<a>", "special": True}]})
    assert control_tokens(tmp_path, {"additional_special_tokens": [None, "<b>"]}) == {"<a>", "<b>"}
