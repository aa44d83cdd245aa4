"""Prompts: the built-in layouts byte for byte and a model's own template (http.md §14; B33, B81, B98)."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from generated import limits
from generated.errors import ApiError
from generated.families import FAMILIES, Family
from server.api.prompts import within_limit
from server.chat import (
    ChatRenderer,
    TemplateFailure,
    choose_tools,
    read_messages,
    read_tools,
    resolve_thinking,
)
from server.chat.policy import ThinkingMode
from server.chat.special_tokens import control_tokens
from server.chat.tools import ToolUse

from .conversations import long_conversation
from .faults import Fault, fault, refused

GLM, LLAMA = FAMILIES["glm"], FAMILIES["llama"]
OFF = resolve_thinking(None, None, GLM)
NONE = ToolUse()
NANO_TEMPLATE = Path(__file__).parents[3] / "engine" / "nano" / "model" / "chat_template.jinja"


def glm(messages: list[dict[str, Any]], thinking: ThinkingMode = OFF, tools: ToolUse = NONE) -> str:
    return ChatRenderer(GLM).prompt(read_messages(messages), tools, thinking)


def hi(effort: str | None = None, enable: bool | None = None) -> str:
    return glm([{"role": "user", "content": "Hi"}], resolve_thinking(effort, enable, GLM))


H19 = [
    {"role": "system", "content": "S"},
    {"role": "developer", "content": "D"},
    {"role": "user", "content": "Q"},
    {"role": "assistant", "content": " Hello "},
    {"role": "user", "content": "Again"},
]
H20 = [
    {"role": "user", "content": "q"},
    {
        "role": "assistant",
        "content": None,
        "reasoning_content": "why",
        "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"x":"a b","n":3}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c", "content": "r1"},
    {"role": "tool", "content": "r2"},
    {"role": "user", "content": "k"},
]
H20_PROMPT = (
    "[gMASK]<sop><|user|>q<|assistant|><think>why</think>"
    "<tool_call>f<arg_key>x</arg_key><arg_value>a b</arg_value>"
    "<arg_key>n</arg_key><arg_value>3</arg_value></tool_call><|observation|><tool_response>r1</tool_response>"
    "<tool_response>r2</tool_response><|user|>k<|assistant|><think></think>"
)


def test_system_turns_keep_their_order_and_earlier_answers_are_trimmed() -> None:
    assert glm(H19) == (
        "[gMASK]<sop><|system|>S<|system|>D<|user|>Q<|assistant|><think></think>Hello"
        "<|user|>Again<|assistant|><think></think>"
    )


@pytest.mark.parametrize("content", ["", " \n", []])
def test_b36_empty_text_has_a_defined_prompt(content: object) -> None:
    text = content if isinstance(content, str) else ""
    assert (
        glm([{"role": "user", "content": content}])
        == f"[gMASK]<sop><|user|>{text}<|assistant|><think></think>"
    )


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES.keys())
def test_every_family_has_a_built_in_template(family: Family) -> None:
    prompt = ChatRenderer(family).prompt(read_messages(H19), NONE, resolve_thinking(None, None, family))
    assert "Again" in prompt
    assert "assistant" in prompt.rpartition("Again")[2]


def test_b81_reasoning_calls_and_a_run_of_results_replay() -> None:
    assert glm(H20) == H20_PROMPT


def test_arguments_that_are_no_json_replay_as_none() -> None:
    calls = [{"function": {"name": "f", "arguments": "not json"}}]
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "", "tool_calls": calls}]
    assert glm(messages) == (
        "[gMASK]<sop><|user|>q<|assistant|><think></think><tool_call>f</tool_call>"
        "<|assistant|><think></think>"
    )


@pytest.mark.parametrize(
    "effort, word",
    [("minimal", "Low"), ("low", "Low"), ("medium", "Medium"), ("high", "High"), ("xhigh", "Max")],
)
def test_an_effort_switches_thinking_on_and_is_named(effort: str, word: str) -> None:
    assert hi(effort) == f"[gMASK]<sop><|system|>Reasoning Effort: {word}<|user|>Hi<|assistant|><think>"


@pytest.mark.parametrize("effort", [None, "none"])
def test_the_flag_alone_means_high(effort: str | None) -> None:
    assert hi(effort, True) == "[gMASK]<sop><|system|>Reasoning Effort: High<|user|>Hi<|assistant|><think>"


@pytest.mark.parametrize("effort, enable", [(None, None), ("none", None), (None, False), ("high", False)])
def test_thinking_off_closes_the_reasoning_in_the_prompt(effort: str | None, enable: bool | None) -> None:
    assert hi(effort, enable) == "[gMASK]<sop><|user|>Hi<|assistant|><think></think>"


def test_a_family_without_reasoning_stays_off() -> None:
    assert resolve_thinking("high", True, LLAMA) == ThinkingMode(False, "high", False)


TOOL = {"type": "function", "function": {"name": "f", "description": "é", "parameters": {"type": "object"}}}


def test_declarations_are_one_json_text_a_line() -> None:
    tools = choose_tools(read_tools({"tools": [TOOL, {"name": "g"}]}), None, GLM)
    prompt = glm([{"role": "user", "content": "Hi"}], tools=tools)
    opening, _, rest = prompt.partition("<tools>\n")
    lines, _, closing = rest.partition("\n</tools>\n")
    assert opening.startswith("[gMASK]<sop><|system|>")
    assert [json.loads(line) for line in lines.split("\n")] == [
        TOOL,
        {"type": "function", "function": {"name": "g"}},
    ]
    assert "é" in lines
    assert "<tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value></tool_call>" in closing
    assert closing.endswith("<|user|>Hi<|assistant|><think></think>")


def test_the_effort_comes_before_the_declarations() -> None:
    tools = choose_tools(read_tools({"tools": [TOOL]}), None, GLM)
    prompt = glm([{"role": "user", "content": "Hi"}], resolve_thinking("low", None, GLM), tools)
    assert prompt.startswith("[gMASK]<sop><|system|>Reasoning Effort: Low<|system|>You may call")


def test_a_required_call_puts_an_instruction_into_the_system_text() -> None:
    required = choose_tools(read_tools({"tools": [TOOL]}), "required", GLM)
    assert f"<|system|>S\n\n{required.instruction}<|user|>Q" in glm(H19[:1] + H19[2:3], tools=required)
    named = choose_tools(read_tools({"tools": [TOOL]}), {"function": {"name": "f"}}, GLM)
    assert f"<|system|>{named.instruction}<|user|>Q" in glm(H19[2:3], tools=named)


def test_chatml_frames_each_turn() -> None:
    prompt = ChatRenderer(LLAMA).prompt(read_messages(H19), NONE, OFF)
    assert prompt == (
        "<|im_start|>system\nS<|im_end|>\n<|im_start|>system\nD<|im_end|>\n<|im_start|>user\nQ<|im_end|>\n"
        "<|im_start|>assistant\n Hello <|im_end|>\n<|im_start|>user\nAgain<|im_end|>\n"
        "<|im_start|>assistant\n"
    )


# ---- the model's own template

OWN = (
    "{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no tools here') }}{% endif %}"
    "{{ bos_token if loop.first }}[{{ m.role }}:{{ m.content }}"
    "{% for c in m.tool_calls or [] %}|{{ c.function.name }}={{ c.function.arguments.x }}{% endfor %}]"
    "{% endfor %}"
    "{{ tools | tojson if tools }}{{ reasoning_effort | default('unsaid') }}/{{ enable_thinking }}"
    "{% if add_generation_prompt %}[assistant:{% endif %}"
)


def model_directory(path: Path, **files: object) -> Path:
    for name, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (path / (name + (".jinja" if name == "chat_template" else ".json"))).write_text(text, "utf-8")
    return path


def test_the_template_file_wins_over_the_configuration(tmp_path: Path) -> None:
    config = {"chat_template": "wrong", "bos_token": {"content": "<s>"}}
    renderer = ChatRenderer.load(model_directory(tmp_path, chat_template=OWN, tokenizer_config=config), GLM)
    assert renderer.own_template
    prompt = renderer.prompt(read_messages([{"role": "user", "content": "é"}]), NONE, OFF)
    assert prompt == "<s>[user:é]unsaid/False[assistant:"


def test_the_configuration_may_hold_one_template_or_named_ones(tmp_path: Path) -> None:
    messages = read_messages([{"role": "user", "content": "x"}])
    tools = choose_tools(read_tools({"tools": [TOOL]}), None, GLM)
    one = ChatRenderer.load(model_directory(tmp_path, tokenizer_config={"chat_template": OWN}), GLM)
    assert one.prompt(messages, NONE, resolve_thinking("low", None, GLM)) == "[user:x]low/True[assistant:"
    named = [{"name": "default", "template": "D"}, {"name": "tool_use", "template": "T{{ tools | tojson }}"}]
    two = ChatRenderer.load(model_directory(tmp_path, tokenizer_config={"chat_template": named}), GLM)
    assert two.prompt(messages, NONE, OFF) == "D"
    assert two.prompt(messages, tools, OFF) == "T" + json.dumps([TOOL], ensure_ascii=False)


def test_without_any_template_the_built_in_one_is_used(tmp_path: Path) -> None:
    renderer = ChatRenderer.load(model_directory(tmp_path, tokenizer_config={"bos_token": "<s>"}), GLM)
    assert not renderer.own_template
    assert renderer.prompt(read_messages(H20), NONE, OFF) == H20_PROMPT
    assert ChatRenderer.load(None, GLM).prompt(read_messages(H20), NONE, OFF) == H20_PROMPT


def test_replayed_arguments_reach_the_template_as_an_object() -> None:
    messages = read_messages(
        [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": '{"x":7}'}}]}]
    )
    assert "[assistant:|f=7]" in ChatRenderer(GLM, {"default": OWN}, {"bos_token": ""}).prompt(
        messages, NONE, OFF
    )


def test_a_refusal_of_the_template_is_a_client_fault_without_its_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    renderer = ChatRenderer(GLM, {"default": OWN})
    messages = read_messages([{"role": "tool", "content": "x"}])
    with caplog.at_level("INFO"):
        assert fault(lambda: renderer.prompt(messages, NONE, OFF)) == refused("messages", None)
    assert "no tools here" in caplog.text


def test_a_failing_template_is_a_server_fault(caplog: pytest.LogCaptureFixture) -> None:
    renderer = ChatRenderer(GLM, {"default": "{{ messages.nothing.at.all }}"})
    assert fault(lambda: renderer.prompt(read_messages(H20), NONE, OFF)) == (
        500,
        "server_error",
        None,
        "engine_error",
    )
    assert "UndefinedError" in caplog.text


@pytest.mark.parametrize("text", ["x" * (limits.PROMPT_BYTES + 1), "é" * (limits.PROMPT_BYTES // 2)])
@pytest.mark.parametrize(
    "template",
    [
        "{% for m in messages %}{{ m.content }}!{% endfor %}",
        "{{ '<|user|>' + messages[0].content | trim }}",
        "{% set ns = namespace(x='!') %}{% set ns.x = ns.x ~ messages[0].content %}{{ ns.x }}",
        "{% macro t(m) %}{{ m.content }}!{% endmacro %}{{ t(messages[0]) }}",
    ],
)
def test_a_prompt_over_the_largest_is_refused_as_with_the_built_in_template(text: str, template: str) -> None:
    messages = read_messages([{"role": "user", "content": text}])

    def answer(renderer: ChatRenderer) -> tuple[Fault, str]:
        with pytest.raises(ApiError) as raised:
            within_limit(renderer.prompt(messages, NONE, OFF).encode("utf-8"), "messages")
        error = raised.value
        return (error.status, error.type, error.param, error.code), str(error)

    assert answer(ChatRenderer(GLM, {"default": template})) == answer(ChatRenderer(GLM))


@pytest.mark.parametrize("name", ["chat_template.jinja", "tokenizer_config.json"])
def test_a_pipe_in_a_files_place_stops_the_start_instead_of_holding_it_up(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(TemplateFailure, match=f"{name} cannot be read.*not a regular file"):
        ChatRenderer.load(tmp_path, GLM)


def test_a_pipe_among_the_files_that_may_be_absent_names_no_token(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "tokenizer.json")
    (tmp_path / "added_tokens.json").write_text('{"<x>": 1}')
    assert control_tokens(tmp_path, {}) == {"<x>"}


def test_a_template_that_is_no_text_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_bytes(b"\xff\xfe")
    with pytest.raises(TemplateFailure, match="cannot be read"):
        ChatRenderer.load(tmp_path, GLM)


@pytest.mark.parametrize(
    "files",
    [
        {"chat_template": "{% if %}"},
        {"tokenizer_config": "not json"},
        {"tokenizer_config": {"chat_template": "{{ 1 +"}},
    ],
)
def test_a_template_that_cannot_be_used_stops_the_start(tmp_path: Path, files: dict[str, object]) -> None:
    with pytest.raises(TemplateFailure):
        ChatRenderer.load(model_directory(tmp_path, **files), GLM)


@pytest.mark.parametrize(
    "case",
    [
        (H19, None, None, None),
        (H20, None, None, None),
        (H20, "low", None, None),
        (H20, "xhigh", None, None),
        (H19, None, True, None),
        (H19, "high", False, [TOOL]),
        (H20, "medium", None, [TOOL, {"name": "g"}]),
    ],
)
def test_the_embedded_models_template_renders_the_built_in_layout(case: tuple[Any, Any, Any, Any]) -> None:
    messages, effort, enable, tools = case
    own = ChatRenderer(GLM, {"default": NANO_TEMPLATE.read_text("utf-8")})
    use = choose_tools(read_tools({"tools": tools}), None, GLM)
    given = read_messages(messages), use, resolve_thinking(effort, enable, GLM)
    assert own.prompt(*given) == ChatRenderer(GLM).prompt(*given)


@pytest.mark.timed
def test_a_long_conversation_with_many_tools_renders_in_fifteen_milliseconds() -> None:
    messages, tools = long_conversation()
    read, use = read_messages(messages), choose_tools(read_tools({"tools": tools}), None, GLM)
    for renderer in (ChatRenderer(GLM), ChatRenderer(GLM, {"default": NANO_TEMPLATE.read_text("utf-8")})):
        best = 1.0
        for _ in range(10):
            start = time.process_time()
            renderer.prompt(read, use, OFF)
            best = min(best, time.process_time() - start)
            if best <= 0.015:
                break
        assert best <= 0.015
