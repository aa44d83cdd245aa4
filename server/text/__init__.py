"""Text pipeline (http.md §15, §10): pure incremental transducers, no thread, clock or socket.

    from server.text import Pipeline, Thinking, ToolSignature, RecordSpans
    from server.text import ContentDelta, ReasoningDelta, ToolCall, StopMatched

    pipeline = Pipeline(stops=["<|user|>"], ignore_leading_stop=True, thinking=Thinking.ON,
                        tools=[ToolSignature.from_schema(name, parameters), ...], salvage=False)
    for payload in data_frames:
        for piece in pipeline.feed(payload):
            ...  # ContentDelta | ReasoningDelta | ToolCall | StopMatched
        if pipeline.stopped:
            ...  # send STOP once, ignore later DATA
    for piece in pipeline.finish(length_limited=done.length_limited):
        ...
    pipeline.finish_reason  # Outcome.STOP, LENGTH or TOOL_CALLS
    pipeline.stop_sequence  # which stop matched, or None (Anthropic's stop_sequence)

* Raw completions: `Pipeline(stops=..., ignore_leading_stop=flag)`; everything arrives as `ContentDelta`.
* With `tool_choice: none` or without tools pass no tools: markers are then ordinary text.
* `finish` on every way out; after a matched stop it still flushes the later stages.
* Log probabilities: `spans = RecordSpans()`, `text = spans.add(payload)` per DATA frame, `spans.finish()`,
  then `spans.survivors(pipeline.removed)` gives one flag per record. When an echoed prompt ends inside a
  character hand its held bytes (`Utf8Decoder.pending`) to both as `pending=`.
"""

from __future__ import annotations

from server.text.arguments import ToolSignature
from server.text.pieces import ContentDelta, Piece, ReasoningDelta, StopMatched, ToolCall
from server.text.pipeline import Pipeline, Thinking
from server.text.records import RecordSpans
from server.text.utf8 import Utf8Decoder

__all__ = [
    "ContentDelta",
    "Piece",
    "Pipeline",
    "ReasoningDelta",
    "RecordSpans",
    "StopMatched",
    "Thinking",
    "ToolCall",
    "ToolSignature",
    "Utf8Decoder",
]
