# Generated from spec/protocol.yaml (target python, template python/limits.py.j2). Do not edit.
# Regenerate with: python -m codegen generate

"""The numbers nobody may go over, one constant each, in the order of the spec (``limits``)."""

from __future__ import annotations

from typing import Final

PAYLOAD_BYTES: Final = 65536
"""Bytes. Largest payload of one frame. Checked before the payload is read. Enforced by: reader, writer.
(spec: limits.payload_bytes)
"""

FRAME_LINE_BYTES: Final = 1048576
"""Bytes. Longest header line of a frame; the expert map of a large model is the longest in use. Enforced by:
reader. (spec: limits.frame_line_bytes)
"""

COMMAND_LINE_BYTES: Final = 4096
"""Bytes. Longest header line of a command. Enforced by: reader, writer. (spec: limits.command_line_bytes)"""

PROMPT_BYTES: Final = 16777216
"""Bytes. Largest prompt of one request. Enforced by: reader, writer, api. (spec: limits.prompt_bytes)"""

EXTRA_BYTES: Final = 1048576
"""Bytes. Largest grammar text: raw GBNF or a JSON Schema. Enforced by: reader, writer, api. (spec:
limits.extra_bytes)
"""

IMAGE_BYTES: Final = 67108864
"""Bytes. Largest image that travels before its SUBMIT. Enforced by: reader, writer. (spec:
limits.image_bytes)
"""

TOP_K: Final = 32
"""Entries. Largest alternatives table per token. Enforced by: reader, writer, api. (spec: limits.top_k)"""

KEY_NAME_LENGTH: Final = 15
"""Characters. Longest name of an extension key. Enforced by: reader. (spec: limits.key_name_length)"""

KEY_VALUE_DIGITS: Final = 10
"""Digits. Longest value of an extension key. Enforced by: reader. (spec: limits.key_value_digits)"""

KV_SLOTS: Final = 512
"""Slots. Most KV slots an engine can be started with. Enforced by: launch. (spec: limits.kv_slots)"""

MAX_REQUEST_ID: Final = 18446744073709551615
"""Id. Largest request id. Enforced by: reader, writer. (spec: limits.max_request_id)"""

BATCH_MEMBERS: Final = 128
"""Prompts. Most prompts in one completions request. Enforced by: api. (spec: limits.batch_members)"""

BATCH_PROMPT_TOKENS: Final = 65536
"""Tokens. Prompt budget of a batch: ids counted as ids, strings as UTF-8 bytes. Enforced by: api. (spec:
limits.batch_prompt_tokens)
"""

BATCH_COMPLETION_TOKENS: Final = 65536
"""Tokens. Members times effective max tokens of a batch. Enforced by: api. (spec:
limits.batch_completion_tokens)
"""

BODY_BYTES: Final = 33554432
"""Bytes. Largest request body, measured after decoding. COLI_MAX_BODY_BYTES changes it. Enforced by: http.
(spec: limits.body_bytes)
"""

HEADER_BYTES: Final = 65536
"""Bytes. Largest request head. Enforced by: http. (spec: limits.header_bytes)"""

JSON_DEPTH: Final = 512
"""Levels. Deepest nesting of a request body. Enforced by: http. (spec: limits.json_depth)"""

STOP_SEQUENCES: Final = 4
"""Strings. Most stop sequences of one request. Enforced by: api. (spec: limits.stop_sequences)"""

CLIENT_REQUEST_ID_LENGTH: Final = 128
"""Characters. Longest X-Request-Id of a client that is echoed. Enforced by: http. (spec:
limits.client_request_id_length)
"""

PROFILE_TURNS: Final = 120
"""Records. PROF records kept for GET /profile. Enforced by: http. (spec: limits.profile_turns)"""

TEMPLATE_SECONDS: Final = 2
"""Seconds. Longest rendering of one conversation by a model's own chat template. Enforced by: api. (spec:
limits.template_seconds)
"""

LISTEN_BACKLOG: Final = 1024
"""Connections. Connections the kernel holds for the gateway. Enforced by: http. (spec: limits.listen_backlog)
"""

DISCONNECT_NOTICE_MS: Final = 100
"""Milliseconds. Longest time until a departed client is noticed. Enforced by: http. (spec:
limits.disconnect_notice_ms)
"""

PORT: Final = 65535
"""Port. Largest TCP port. Enforced by: launch. (spec: limits.port)"""
