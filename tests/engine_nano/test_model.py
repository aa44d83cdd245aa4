"""The committed checkpoint: its files, its layout, and what it can do through the real reference engine.

The floors are the accuracies of ``engine/nano/REPORT.md`` minus a margin for the small number of questions.
"""

from __future__ import annotations

import ast
import json
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer

from engine.nano import MODEL_DIRECTORY
from engine.nano.documents import document
from engine.nano.engine_client import EngineFailure, EngineProcess
from engine.nano.evaluate import ended_share, examine, markdown_table
from engine.nano.examination import Question, chat_questions, context_questions, judge, tool_questions
from engine.nano.layout import END_TOKENS, SPECIAL_TOKENS, TAG_TOKENS, effort_line, tools_turn
from engine.nano.tokenizer_training import train_tokenizer

FOUR_MEGABYTES = 4_000_000
NANO = MODEL_DIRECTORY.parent


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(MODEL_DIRECTORY / "tokenizer.json"))


@pytest.fixture(scope="module")
def engine() -> Iterator[EngineProcess]:
    with EngineProcess(MODEL_DIRECTORY, slots=8) as process:
        yield process


def read_json(name: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((MODEL_DIRECTORY / name).read_text(encoding="utf-8"))
    return value


def test_directory_holds_at_most_four_megabytes() -> None:
    files = {path.name: path.stat().st_size for path in MODEL_DIRECTORY.iterdir()}
    assert set(files) == {
        "chat_template.jinja",
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    assert sum(files.values()) <= FOUR_MEGABYTES


def test_weights_have_the_names_and_shapes_of_the_glm_layout() -> None:
    with (MODEL_DIRECTORY / "model.safetensors").open("rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    assert header.pop("__metadata__") == {"format": "pt"}
    shapes = {name: entry["shape"] for name, entry in header.items()}
    expected: dict[str, list[int]] = {"model.embed_tokens.weight": [1024, 192], "model.norm.weight": [192]}
    for layer in range(4):
        prefix = f"model.layers.{layer}."
        for name, rows in (("q_proj", 192), ("k_proj", 96), ("v_proj", 96)):
            expected[f"{prefix}self_attn.{name}.weight"] = [rows, 192]
            expected[f"{prefix}self_attn.{name}.bias"] = [rows]
        expected[f"{prefix}self_attn.o_proj.weight"] = [192, 192]
        expected[f"{prefix}mlp.gate_up_proj.weight"] = [1024, 192]
        expected[f"{prefix}mlp.down_proj.weight"] = [192, 512]
        expected[f"{prefix}input_layernorm.weight"] = [192]
        expected[f"{prefix}post_attention_layernorm.weight"] = [192]
    assert shapes == expected
    assert {entry["dtype"] for entry in header.values()} == {"F16"}


def test_configuration_and_tokenizer_agree(tokenizer: Tokenizer) -> None:
    config = read_json("config.json")
    assert (config["model_type"], config["architectures"]) == ("glm", ["GlmForCausalLM"])
    assert config["vocab_size"] == tokenizer.get_vocab_size() == 1024
    ends = [tokenizer.token_to_id(token) for token in END_TOKENS]
    assert config["eos_token_id"] == read_json("generation_config.json")["eos_token_id"] == ends
    added = {entry["content"]: entry["special"] for entry in read_json("tokenizer.json")["added_tokens"]}
    assert added == {**dict.fromkeys(SPECIAL_TOKENS, True), **dict.fromkeys(TAG_TOKENS, False)}


def test_tokenizer_keeps_every_byte_and_splits_digits(tokenizer: Tokenizer) -> None:
    assert len(tokenizer.encode("what is 2 + 2?", add_special_tokens=False).ids) == 8
    for text in ("1234567", "naïve 你好 🙂", "a\n\n\tb  c", "".join(map(chr, range(1, 256)))):
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        assert tokenizer.decode(ids, skip_special_tokens=False) == text
    assert len(tokenizer.encode("1234567", add_special_tokens=False).ids) == 7


def test_segments_of_a_document_tokenise_like_the_whole_text(tokenizer: Tokenizer) -> None:
    for number in range(100):
        segments = document(21, number)
        parts = [tokenizer.encode(part.text, add_special_tokens=False).ids for part in segments]
        whole = tokenizer.encode("".join(part.text for part in segments), add_special_tokens=False).ids
        assert [token for ids in parts for token in ids] == whole


def test_tokenizer_is_the_one_the_data_gives() -> None:
    committed = (MODEL_DIRECTORY / "tokenizer.json").read_text(encoding="utf-8")
    assert json.loads(train_tokenizer().to_str()) == json.loads(committed)


def render(**variables: Any) -> str:
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    template = environment.from_string((MODEL_DIRECTORY / "chat_template.jinja").read_text(encoding="utf-8"))
    return template.render(add_generation_prompt=True, **variables)


def test_chat_template_renders_the_contract_layout() -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    messages = [
        {"role": "developer", "content": "Be short."},
        {"role": "user", "content": [{"type": "text", "text": " a"}, {"type": "text", "text": "b \n"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"function": {"name": "f", "arguments": {"x": "1", "n": 7, "ok": True}}}],
        },
        {"role": "tool", "content": "r1"},
        {"role": "tool", "content": [{"type": "text", "text": "r2"}]},
        {"role": "assistant", "content": " done ", "reasoning_content": "why"},
        {"role": "user", "content": "thanks"},
    ]
    assert render(messages=messages, tools=[tool], reasoning_effort="xhigh") == (
        "[gMASK]<sop><|system|>Reasoning Effort: Max"
        + tools_turn([tool])
        + "<|system|>Be short.<|user|> ab \n"
        "<|assistant|><think></think><tool_call>f<arg_key>x</arg_key><arg_value>1</arg_value>"
        "<arg_key>n</arg_key><arg_value>7</arg_value><arg_key>ok</arg_key><arg_value>true</arg_value></tool_call>"
        "<|observation|><tool_response>r1</tool_response><tool_response>r2</tool_response>"
        "<|assistant|><think>why</think>done<|user|>thanks<|assistant|><think>"
    )


@pytest.mark.parametrize(
    ("variables", "effort"),
    [
        ({}, None),
        ({"reasoning_effort": "none"}, None),
        ({"reasoning_effort": "minimal"}, "Low"),
        ({"reasoning_effort": "low"}, "Low"),
        ({"reasoning_effort": "medium"}, "Medium"),
        ({"reasoning_effort": "high"}, "High"),
        ({"enable_thinking": True}, "High"),
        ({"enable_thinking": True, "reasoning_effort": "none"}, "High"),
        ({"enable_thinking": False, "reasoning_effort": "high"}, None),
    ],
)
def test_chat_template_switches_reasoning(variables: dict[str, Any], effort: str | None) -> None:
    head = "[gMASK]<sop>" + (effort_line(effort) if effort else "")
    tail = "<|user|>hi<|assistant|>" + ("<think>" if effort else "<think></think>")
    assert render(messages=[{"role": "user", "content": "hi"}], **variables) == head + tail


def test_only_the_training_modules_know_torch() -> None:
    knowing = set()
    for path in NANO.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name.split(".")[0] == "torch" for name in names):
                knowing.add(path.name)
    assert knowing == {"muon.py", "processes.py", "torch_model.py", "trainer.py"}


def test_training_command_explains_itself_without_torch() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "engine.nano.train", "--help"],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    for option in ("--steps", "--seed", "--work", "--stop-after"):
        assert option in shown.stdout


def test_an_engine_that_cannot_start_is_named(tmp_path: Path) -> None:
    with pytest.raises(EngineFailure, match=r"the engine ended: .*config\.json"):
        EngineProcess(tmp_path)


def test_judging_wants_the_whole_answer_and_the_end_of_the_turn() -> None:
    question = Question("t", "reasoning", "p", "4")
    assert judge(question, "2 plus 2 is 4.</think>4", True).exact
    assert not judge(question, "2 plus 2 is 4.</think>4", False).exact
    assert not judge(question, "4", True).form
    assert not judge(question, "a</think>b</think>4", True).form
    assert not judge(Question("t", "direct", "p", "4"), "4.", True).exact


def test_two_and_two(engine: EngineProcess) -> None:
    direct = render(messages=[{"role": "user", "content": "what is 2 + 2?"}])
    reasoned = render(messages=[{"role": "user", "content": "what is 2 + 2?"}], enable_thinking=True)
    answers = engine.answer([(direct, 50), (reasoned, 50)])
    assert (answers[0].text, answers[0].ended) == ("2 + 2 = 4.", True)
    assert (answers[1].text, answers[1].ended) == ("2 plus 2 is 4.</think>2 + 2 = 4.", True)


def test_one_tool_call_and_the_answer_from_its_result(engine: EngineProcess) -> None:
    tool = {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Get current temperature for a given location.",
            "parameters": {
                "type": "object",
                "properties": {"location": {"type": "string", "description": "City and country"}},
                "required": ["location"],
            },
        },
    }
    messages: list[dict[str, Any]] = [{"role": "user", "content": "What is the weather in Paris today?"}]
    first = engine.answer([(render(messages=messages, tools=[tool]), 80)])[0]
    assert (first.text, first.ended) == (
        "<tool_call>get_weather<arg_key>location</arg_key><arg_value>Paris</arg_value></tool_call>",
        True,
    )
    call = {"function": {"name": "get_weather", "arguments": {"location": "Paris"}}}
    messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
    messages.append({"role": "tool", "content": '{"temperature": 21, "sky": "sunny"}'})
    second = engine.answer([(render(messages=messages, tools=[tool]), 80)])[0]
    assert (second.text, second.ended) == ("In Paris it is 21 degrees and sunny.", True)


CHAT_FLOORS = {
    ("add 1-digit", "direct"): 1.0,
    ("add 1-digit", "reasoning"): 1.0,
    ("add 2-digit", "direct"): 0.9,
    ("add 2-digit", "reasoning"): 0.95,
    ("add 3-digit", "reasoning"): 0.9,
    ("subtract 2-digit", "reasoning"): 0.9,
    ("subtract 3-digit", "reasoning"): 0.9,
    ("multiply", "direct"): 0.9,
    ("capital", "direct"): 0.9,
    ("copy", "direct"): 0.9,
    ("greeting", "direct"): 1.0,
    ("term", "direct"): 0.9,
}


def test_held_out_chat_questions(engine: EngineProcess) -> None:
    tasks = tuple({task for task, _ in CHAT_FLOORS})
    questions = [item for item in chat_questions(10, tasks) if (item.task, item.mode) in CHAT_FLOORS]
    scores, _ = examine(engine, questions)
    below = {key: scores[key].share() for key, floor in CHAT_FLOORS.items() if scores[key].share() < floor}
    assert not below, markdown_table(scores)
    assert ended_share(scores.values()) >= 0.99


def test_held_out_tool_questions(engine: EngineProcess) -> None:
    scores, _ = examine(engine, list(tool_questions(8, ("weather", "time"))))
    assert all(score.share() >= 0.8 for score in scores.values()), markdown_table(scores)
    assert ended_share(scores.values()) >= 0.98


def test_right_after_a_long_chat(engine: EngineProcess, tokenizer: Tokenizer) -> None:
    questions = context_questions(4, lambda text: len(tokenizer.encode(text).ids), (512, 1900))
    scores, _ = examine(engine, list(questions))
    assert sum(score.exact for score in scores.values()) >= 7, markdown_table(scores)
