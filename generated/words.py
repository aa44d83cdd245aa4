# Generated from spec/protocol.yaml (target python, template python/words.py.j2). Do not edit.
# Regenerate with: python -m codegen generate

"""The words that the JSON shapes of the API allow, on the way in and on the way out."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

ANTHROPIC_ERROR_TYPE: Final = "error"
"""``type`` of AnthropicError. (spec: objects.AnthropicError)"""

COMPLETION_OBJECT: Final = "text_completion"
"""``object`` of Completion. (spec: objects.Completion)"""

COMPLETION_CHUNK_OBJECT: Final = "text_completion"
"""``object`` of CompletionChunk. (spec: objects.CompletionChunk)"""

TOOL_TYPE: Final = "function"
"""``type`` of Tool. (spec: objects.Tool)"""

NAMED_TOOL_CHOICE_TYPE: Final = "function"
"""``type`` of NamedToolChoice. (spec: objects.NamedToolChoice)"""

TOOL_CALL_TYPE: Final = "function"
"""``type`` of ToolCall. (spec: objects.ToolCall)"""

CHAT_COMPLETION_OBJECT: Final = "chat.completion"
"""``object`` of ChatCompletion. (spec: objects.ChatCompletion)"""

ANSWER_MESSAGE_ROLE: Final = "assistant"
"""``role`` of AnswerMessage. (spec: objects.AnswerMessage)"""

CHAT_COMPLETION_CHUNK_OBJECT: Final = "chat.completion.chunk"
"""``object`` of ChatCompletionChunk. (spec: objects.ChatCompletionChunk)"""

CHAT_DELTA_ROLE: Final = "assistant"
"""``role`` of ChatDelta. (spec: objects.ChatDelta)"""

TOOL_CALL_DELTA_TYPE: Final = "function"
"""``type`` of ToolCallDelta. (spec: objects.ToolCallDelta)"""

ANTHROPIC_ANSWER_TYPE: Final = "message"
"""``type`` of AnthropicAnswer. (spec: objects.AnthropicAnswer)"""

ANTHROPIC_ANSWER_ROLE: Final = "assistant"
"""``role`` of AnthropicAnswer. (spec: objects.AnthropicAnswer)"""

MODEL_LIST_OBJECT: Final = "list"
"""``object`` of ModelList. (spec: objects.ModelList)"""

MODEL_OBJECT: Final = "model"
"""``object`` of Model. (spec: objects.Model)"""


class CompletionChoiceFinishReason(StrEnum):
    """``finish_reason`` of CompletionChoice. (spec: objects.CompletionChoice)"""

    STOP = "stop"
    LENGTH = "length"


class ToolChoiceWord(StrEnum):
    """A word in place of ToolChoice. (spec: objects.ToolChoice)"""

    NONE = "none"
    AUTO = "auto"
    REQUIRED = "required"


class ResponseFormatType(StrEnum):
    """``type`` of ResponseFormat. (spec: objects.ResponseFormat)"""

    TEXT = "text"
    JSON_OBJECT = "json_object"
    JSON_SCHEMA = "json_schema"
    GBNF = "gbnf"


class MessageRole(StrEnum):
    """``role`` of Message. (spec: objects.Message)"""

    SYSTEM = "system"
    DEVELOPER = "developer"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class ContentPartType(StrEnum):
    """``type`` of ContentPart. (spec: objects.ContentPart)"""

    TEXT = "text"
    INPUT_TEXT = "input_text"


class ChatChoiceFinishReason(StrEnum):
    """``finish_reason`` of ChatChoice. (spec: objects.ChatChoice)"""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"


class AnthropicMessageRole(StrEnum):
    """``role`` of AnthropicMessage. (spec: objects.AnthropicMessage)"""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"


class AnthropicToolChoiceType(StrEnum):
    """``type`` of AnthropicToolChoice. (spec: objects.AnthropicToolChoice)"""

    AUTO = "auto"
    ANY = "any"
    NONE = "none"
    TOOL = "tool"


class AnthropicThinkingType(StrEnum):
    """``type`` of AnthropicThinking. (spec: objects.AnthropicThinking)"""

    ENABLED = "enabled"
    ADAPTIVE = "adaptive"
    DISABLED = "disabled"


class AnthropicEventType(StrEnum):
    """``type`` of AnthropicEvent. (spec: objects.AnthropicEvent)"""

    MESSAGE_START = "message_start"
    CONTENT_BLOCK_START = "content_block_start"
    CONTENT_BLOCK_DELTA = "content_block_delta"
    CONTENT_BLOCK_STOP = "content_block_stop"
    MESSAGE_DELTA = "message_delta"
    MESSAGE_STOP = "message_stop"
    PING = "ping"
