"""Chat: from a validated body to the prompt, and from pieces of text to the answer of either dialect.

Everything here is pure: no socket, thread or clock (the rendering's time limit apart). Faults are raised as
`generated.errors.ApiError`.

Everything below is exported from `server.chat`. At start::

    renderer = ChatRenderer.load(model_directory, family)   # the model's own template, else the built-in one

POST /v1/chat/completions, hooks in the order of the endpoint table::

    thinking = resolve_thinking(effort, enable_thinking, family)    # the two checked values, None when absent
    messages = read_messages(body.get("messages"))                  # hook messages
    tools = read_tools(body)                                        # hook tools
    tool_use = choose_tools(tools, body.get("tool_choice"), family) # hook tool_choice
    extra = read_response_format(body.get("response_format"))       # hook response_format; b"" when none
    require_grammar(extra, family)                                  # hook grammar_capability
    stop = chat_stop_policy(client_stops, ignore_leading, family)   # .sequences .ignore_leading .from_client
    prompt = renderer.prompt(messages, tool_use, thinking)          # str, to be sent as UTF-8
    pipeline = chat_pipeline(stop, thinking, tool_use, salvage)     # server.text.Pipeline
    slot = conversation_slot(body["messages"], slots)               # with several slots and no cache_slot

(`/v1/completions` uses `read_tools`, `choose_tools`, `read_response_format` and `require_grammar` alike.)

The answer, streaming and not::

    events = ChatEvents(identifier=..., created=..., model=..., include_usage=...)
    events.opening()  events.piece(p)  events.keepalive(visible)  events.closing(outcome, usage)    # bytes
    answer = Answer(tools=tool_use.active, call_id=TOOL_CALL_ID);  answer.add(p)
    chat_message(answer)                                            # choices[0].message
    outcome = answer_outcome(pipeline, stop.from_client)            # STOP, SEQUENCE, LENGTH or TOOL_CALLS

POST /v1/messages and count_tokens, hooks in the order of the endpoint table::

    stops = read_stop_sequences(body.get("stop_sequences"))
    system = read_system(body.get("system"))
    messages = read_anthropic_messages(body.get("messages"))
    tools = read_anthropic_tools(body.get("tools"))
    tool_use = choose_anthropic_tools(tools, body.get("tool_choice"), family)
    thinking = read_thinking(body.get("thinking"), family)
    messages = with_system(system, messages)        # then renderer, pipeline and stop policy as above
    slot = conversation_slot(plain_messages(messages), slots)
    events = MessageEvents(identifier=..., model=..., thinking=thinking.on, tools=tool_use.active)
    events.opening(input_tokens)  events.piece(p)  events.keepalive()
    events.closing(outcome, stop_sequence, output_tokens)
    anthropic_content(answer, thinking.on)          # the content list of the JSON answer, as bytes

Ids are minted with `new_id(form)` from the forms in `generated.http`. `ChatRenderer.load` raises
`TemplateFailure` for a template that cannot be used: one line for the operator at start.
"""

from __future__ import annotations

from server.chat.answer import Answer, anthropic_content, chat_message
from server.chat.anthropic import (
    choose_anthropic_tools,
    read_anthropic_messages,
    read_anthropic_tools,
    read_stop_sequences,
    read_system,
    read_thinking,
    with_system,
)
from server.chat.conversation import conversation_slot
from server.chat.events_anthropic import MessageEvents
from server.chat.events_openai import ChatEvents
from server.chat.messages import Message, plain_messages, read_messages
from server.chat.policy import (
    StopPolicy,
    ThinkingMode,
    answer_outcome,
    chat_pipeline,
    chat_stop_policy,
    resolve_thinking,
)
from server.chat.renderer import ChatRenderer
from server.chat.response_format import read_response_format, require_grammar
from server.chat.sandbox import TemplateFailure
from server.chat.tools import DeclaredTools, ToolUse, choose_tools, read_tools
from server.ids import new_id

__all__ = [
    "Answer",
    "ChatEvents",
    "ChatRenderer",
    "DeclaredTools",
    "Message",
    "MessageEvents",
    "StopPolicy",
    "TemplateFailure",
    "ThinkingMode",
    "ToolUse",
    "answer_outcome",
    "anthropic_content",
    "chat_message",
    "chat_pipeline",
    "chat_stop_policy",
    "choose_anthropic_tools",
    "choose_tools",
    "conversation_slot",
    "new_id",
    "plain_messages",
    "read_anthropic_messages",
    "read_anthropic_tools",
    "read_messages",
    "read_response_format",
    "read_stop_sequences",
    "read_system",
    "read_thinking",
    "read_tools",
    "require_grammar",
    "resolve_thinking",
    "with_system",
]
