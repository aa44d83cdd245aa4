# Generated from spec/protocol.yaml (target python, template python/markup.py.j2). Do not edit.
# Regenerate with: python -m codegen generate

"""What the text of a chat is marked with, by the template of its family (``markup``): what the gateway writes into prompts,
breaks up in the text of clients and looks for in answers, and what engines and models know by the same name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

GLM_GENERATION_MASK: Final = "[gMASK]"
"""First in every prompt. (spec: markup.glm.markers.generation_mask)"""

GLM_START_OF_PIECE: Final = "<sop>"
"""Second in every prompt. (spec: markup.glm.markers.start_of_piece)"""

GLM_SYSTEM: Final = "<|system|>"
"""Begins a turn of instructions: effort, tools, system and developer messages. (spec:
markup.glm.markers.system)
"""

GLM_USER: Final = "<|user|>"
"""Begins a turn of the user. (spec: markup.glm.markers.user)"""

GLM_ASSISTANT: Final = "<|assistant|>"
"""Begins a turn of the model; the last one of a prompt is open. (spec: markup.glm.markers.assistant)"""

GLM_OBSERVATION: Final = "<|observation|>"
"""Begins a run of tool results. (spec: markup.glm.markers.observation)"""

GLM_END_OF_TEXT: Final = "<|endoftext|>"
"""Ends a document. (spec: markup.glm.markers.end_of_text)"""

GLM_DECLARATIONS_OPEN: Final = "<tools>"
"""Begins the tools offered, one JSON text a line. (spec: markup.glm.markers.declarations_open)"""

GLM_DECLARATIONS_CLOSE: Final = "</tools>"
"""Ends the tools offered. (spec: markup.glm.markers.declarations_close)"""

GLM_RESPONSE_OPEN: Final = "<tool_response>"
"""Begins a tool result. (spec: markup.glm.markers.response_open)"""

GLM_RESPONSE_CLOSE: Final = "</tool_response>"
"""Ends a tool result. (spec: markup.glm.markers.response_close)"""

GLM_REASONING_OPEN: Final = "<think>"
"""Begins the reasoning of an answer; last in a prompt with thinking on. (spec:
markup.glm.markers.reasoning_open)
"""

GLM_REASONING_CLOSE: Final = "</think>"
"""Ends the reasoning; a grammar holds from here on. (spec: markup.glm.markers.reasoning_close)"""

GLM_CALL_OPEN: Final = "<tool_call>"
"""Begins a tool call; the name of the tool follows. (spec: markup.glm.markers.call_open)"""

GLM_CALL_CLOSE: Final = "</tool_call>"
"""Ends a tool call. (spec: markup.glm.markers.call_close)"""

GLM_ARGUMENT_KEY_OPEN: Final = "<arg_key>"
"""Begins the name of an argument. (spec: markup.glm.markers.argument_key_open)"""

GLM_ARGUMENT_KEY_CLOSE: Final = "</arg_key>"
"""Ends the name of an argument. (spec: markup.glm.markers.argument_key_close)"""

GLM_ARGUMENT_VALUE_OPEN: Final = "<arg_value>"
"""Begins the value of an argument: plain text, or JSON of any other type. (spec:
markup.glm.markers.argument_value_open)
"""

GLM_ARGUMENT_VALUE_CLOSE: Final = "</arg_value>"
"""Ends the value of an argument. (spec: markup.glm.markers.argument_value_close)"""

GLM: Final[Mapping[str, str]] = {
    "generation_mask": GLM_GENERATION_MASK,
    "start_of_piece": GLM_START_OF_PIECE,
    "system": GLM_SYSTEM,
    "user": GLM_USER,
    "assistant": GLM_ASSISTANT,
    "observation": GLM_OBSERVATION,
    "end_of_text": GLM_END_OF_TEXT,
    "declarations_open": GLM_DECLARATIONS_OPEN,
    "declarations_close": GLM_DECLARATIONS_CLOSE,
    "response_open": GLM_RESPONSE_OPEN,
    "response_close": GLM_RESPONSE_CLOSE,
    "reasoning_open": GLM_REASONING_OPEN,
    "reasoning_close": GLM_REASONING_CLOSE,
    "call_open": GLM_CALL_OPEN,
    "call_close": GLM_CALL_CLOSE,
    "argument_key_open": GLM_ARGUMENT_KEY_OPEN,
    "argument_key_close": GLM_ARGUMENT_KEY_CLOSE,
    "argument_value_open": GLM_ARGUMENT_VALUE_OPEN,
    "argument_value_close": GLM_ARGUMENT_VALUE_CLOSE,
}
"""Every marker of the template glm, by name. The markers GLM models are trained on. Each begins with `<` or
`[`, which stands nowhere else in it. (spec: markup.glm)
"""

CHATML_TURN_OPEN: Final = "<|im_start|>"
"""Begins a turn: its role, a line feed, its text. (spec: markup.chatml.markers.turn_open)"""

CHATML_TURN_CLOSE: Final = "<|im_end|>"
"""Ends a turn. (spec: markup.chatml.markers.turn_close)"""

CHATML_END_OF_TEXT: Final = "<|endoftext|>"
"""Ends a document. (spec: markup.chatml.markers.end_of_text)"""

CHATML: Final[Mapping[str, str]] = {
    "turn_open": CHATML_TURN_OPEN,
    "turn_close": CHATML_TURN_CLOSE,
    "end_of_text": CHATML_END_OF_TEXT,
}
"""Every marker of the template chatml, by name. The markers of families that are served as plain text. (spec:
markup.chatml)
"""

MARKUP: Final[Mapping[str, Mapping[str, str]]] = {
    "glm": GLM,
    "chatml": CHATML,
}
"""Markers by the name of a family's template."""
