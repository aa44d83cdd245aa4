"""What is hard for the text pipeline: a megabyte of nothing but markers and what nearly spells one."""

from __future__ import annotations

from server.text import Pipeline, Thinking, ToolSignature

F = ToolSignature.from_schema("f", {"properties": {"x": {"type": "string"}}})
GLM = ["<|user|>", "<|observation|>"]
MEGABYTE = 1 << 20
BODIES = {
    "plain": b"hello world foo ",
    "open": b"<",
    "half a stop": b"<|use",
    "half a tag": b"<tool_cal",
    "half a closing tag": b"</tool_cal",
    "half a marker": b"</thin",
    "opening tags": b"<tool_call>",
    "closing tags": b"</tool_call>",
    "keys": b"<arg_key>",
    "declared names": b"<tool_call>f ",
    "other names": b"<tool_call>g ",
    "names before half a tag": b"<tool_call>g <",
    "open values": b"<tool_call>f<arg_key>x</arg_key><arg_value>",
    "calls": b"<tool_call>f</tool_call>",
    "other calls": b"<tool_call>g</tool_call>",
    "calls with an argument": b"<tool_call>f<arg_key>x</arg_key><arg_value>1</arg_value></tool_call>",
    "declared names cut short": b"<tool_call>f<",
    "other names cut short": b"<tool_call>g<<",
    "tags without a name": b"<tool_call><",
    "beginnings after text": b"a<",
    "beginnings before text": b"<a",
    "opening markers": b"<think>",
    "opening markers before half a tag": b"<think>a<",
    "markers before half a tag": b"a</think><",
    "half a tag before a character": "<é".encode(),
    "half a tag after a bad byte": b"\xe2<",
    "leading stops between blanks": b" <|user|> ",
    "markers": b"</think>",
    "leading stops": b"<|user|>",
    "blanks": b" ",
    "characters": "😀".encode(),
    "bad bytes": b"\x85",
}
"""Repeated to fill the megabyte; `f` is declared, `g` is not."""
STARTS = {
    "from the start": (Thinking.OFF, b""),
    "after text": (Thinking.OFF, b"a"),
    "in a head": (Thinking.OFF, b"<tool_call>f "),
    "in a call": (Thinking.OFF, b"<tool_call>f<arg_key>"),
    "in reasoning": (Thinking.ON, b"a"),
    "after many characters": (Thinking.OFF, "<".join(map(chr, range(0x4E00, 0x6000))).encode()),
}
"""Where the body begins."""


def glm(thinking: Thinking = Thinking.OFF) -> Pipeline:
    """Everything switched on, as for a chat with tools."""
    return Pipeline(stops=GLM, ignore_leading_stop=True, thinking=thinking, tools=[F])


def filled(start: bytes, body: bytes) -> bytes:
    """A megabyte of `body` behind `start`."""
    return (start + body * (MEGABYTE // len(body) + 1))[:MEGABYTE]
