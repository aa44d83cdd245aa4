"""Literal copies of every promised value. No generator touches this file.

When one of these tests fails, a promise has changed: decide whether that was meant, see `python -m codegen
diff`, and then change the copy here by hand.
"""

from __future__ import annotations

from generated import commands, errors, frames, limits, states, wire

# ---------------------------------------------------------------- limits

LIMITS = {
    "PAYLOAD_BYTES": 65536,
    "FRAME_LINE_BYTES": 1048576,
    "COMMAND_LINE_BYTES": 4096,
    "PROMPT_BYTES": 16777216,
    "EXTRA_BYTES": 1048576,
    "IMAGE_BYTES": 67108864,
    "TOP_K": 32,
    "KEY_NAME_LENGTH": 15,
    "KEY_VALUE_DIGITS": 10,
    "KV_SLOTS": 512,
    "MAX_REQUEST_ID": 18446744073709551615,
    "BATCH_MEMBERS": 128,
    "BATCH_PROMPT_TOKENS": 65536,
    "BATCH_COMPLETION_TOKENS": 65536,
    "BODY_BYTES": 33554432,
    "HEADER_BYTES": 65536,
    "JSON_DEPTH": 512,
    "STOP_SEQUENCES": 4,
    "CLIENT_REQUEST_ID_LENGTH": 128,
    "PROFILE_TURNS": 120,
    "TEMPLATE_SECONDS": 2,
    "LISTEN_BACKLOG": 1024,
    "DISCONNECT_NOTICE_MS": 100,
    "PORT": 65535,
}


def test_limits() -> None:
    assert {name: number for name, number in vars(limits).items() if name.isupper()} == LIMITS


# ---------------------------------------------------------------- messages

COMMANDS = {
    "SUBMIT": ("id", "slot", "prompt", "max_tokens", "temperature", "top_p", "extra", "logprobs", "ids",
     "pin"),
    "IMAGE": ("id", "image", "grid_h", "grid_w"),
    "STOP": ("id",),
    "CANCEL": ("id",),
}  # fmt: skip

SUBMIT_KEYS = {"logprobs": (0, 32), "ids": (0, 1), "pin": (0, 1)}
"""Extension keys in wire order with the range of each."""

FRAMES = {
    "ACCEPT": ("id", "prompt_tokens"),
    "DATA": ("id", "payload", "logprob", "tokens", "token_logprobs"),
    "ECHO": ("id", "payload", "position", "logprob", "tokens", "token_logprobs"),
    "TOOL": ("id", "payload"),
    "DONE": ("id", "completion_tokens", "tokens_per_second", "cache_hit_percent", "rss_gb", "prompt_tokens",
             "length_limited"),
    "ERROR": ("id", "words"),
    "PROF": ("wall_s", "prompt_tokens", "completion_tokens", "disk_s", "wait_s", "matmul_s", "attention_s",
     "head_s",
             "forwards"),
    "TIERS": ("vram", "ram", "disk", "vram_gb", "ram_gb"),
    "HWINFO": ("cores", "ram_total_gb", "ram_available_gb", "gpus", "vram_total_gb", "names"),
    "EMAP": ("rows", "cols", "cells"),
    "HITS": ("rows", "cols", "cells"),
    "PERF": ("words",),
    "ENTROPY": ("words",),
    "GPUS": ("words",),
    "TOPK": ("words",),
    "REPIN": ("words",),
    "GRPP": ("id", "position", "logprob", "k"),
    "GRPG": ("id", "member", "position", "logprob", "k"),
    "GRPS": ("id", "member", "prompt_count", "member_count"),
    "GRPE": ("id", "member", "sum", "count", "greedy"),
}  # fmt: skip


def test_messages() -> None:
    assert {kind.KIND: kind.__match_args__ for kind in commands.COMMANDS} == COMMANDS
    assert {kind.KIND: kind.__match_args__ for kind in frames.FRAMES} == FRAMES
    assert list(commands._SUBMIT_KEYS.items()) == list(SUBMIT_KEYS.items())
    assert frames.SENTINEL == b"\x01\x01READY\x01\x01\n"


# ---------------------------------------------------------------- golden transcripts


def test_golden_plain_submit() -> None:
    """A request without extensions is six words and nothing else, for engines of every age."""
    written = commands.write_submit(42, 3, "2 + 2 = é".encode(), 256, 0.7, 0.95)
    assert written == b"SUBMIT 42 3 10 256 0.7 0.95\n2 + 2 = \xc3\xa9\n"


def test_golden_greedy_submit() -> None:
    assert commands.write_submit(1, 0, b"", 1, 0.0, 1.0) == b"SUBMIT 1 0 0 1 0 1\n\n"


def test_golden_submit_with_everything() -> None:
    written = commands.write_submit(
        18446744073709551615,
        511,
        b"1 2 3",
        0,
        0.33333334,
        0.99999999,
        b'root ::= "a"',
        logprobs=32,
        ids=1,
        pin=1,
    )
    assert written == (
        b"SUBMIT 18446744073709551615 511 5 0 0.33333334 0.99999999 12 logprobs=32 ids=1 pin=1\n"
        b'1 2 3root ::= "a"\n'
    )


def test_golden_image_and_submit() -> None:
    written = commands.write_image(7, b"0123456789", 2, 3) + commands.write_submit(7, 0, b"Hello", 4, 0, 1)
    assert written == b"IMAGE 7 10 2 3\n0123456789\nSUBMIT 7 0 5 4 0 1\nHello\n"


def test_golden_cancel_and_stop() -> None:
    assert commands.write_cancel(7) == b"CANCEL 7\n"
    assert commands.write_stop(7) == b"STOP 7\n"


# ---------------------------------------------------------------- states

REQUEST = {
    "submitted": {
        "ACCEPT": "accepted", "ECHO": "submitted", "DATA": "streaming", "TOOL": "streaming",
         "DONE": "finished",
        "ERROR": "failed", "sent_stop": "stopping", "sent_cancel": "cancelling",
         "accept_timeout": "unsupported",
        "refused_old": "unsupported", "stall_timeout": "failed", "write_failed": "failed",
         "connection_lost": "failed",
    },
    "accepted": {
        "ACCEPT": "faulted", "ECHO": "accepted", "DATA": "streaming", "TOOL": "streaming", "DONE": "finished",
        "ERROR": "failed", "sent_stop": "stopping", "sent_cancel": "cancelling", "stall_timeout": "failed",
        "write_failed": "failed", "connection_lost": "failed",
    },
    "streaming": {
        "ACCEPT": "faulted", "ECHO": "streaming", "DATA": "streaming", "TOOL": "streaming",
         "DONE": "finished",
        "ERROR": "failed", "sent_stop": "stopping", "sent_cancel": "cancelling", "stall_timeout": "failed",
        "write_failed": "failed", "connection_lost": "failed",
    },
    "stopping": {
        "ACCEPT": "faulted", "ECHO": "stopping", "DATA": "stopping", "TOOL": "stopping", "DONE": "finished",
        "ERROR": "failed", "sent_cancel": "cancelling", "stall_timeout": "failed", "write_failed": "failed",
        "connection_lost": "failed",
    },
    "faulted": {
        "ACCEPT": "faulted", "ECHO": "faulted", "DATA": "faulted", "TOOL": "faulted", "DONE": "failed",
        "ERROR": "failed", "sent_cancel": "cancelling", "stall_timeout": "failed", "write_failed": "failed",
        "connection_lost": "failed",
    },
    "cancelling": {
        "ACCEPT": "cancelling", "ECHO": "cancelling", "DATA": "cancelling", "TOOL": "cancelling",
         "DONE": "cancelled",
        "ERROR": "cancelled", "stall_timeout": "cancelled", "write_failed": "cancelled",
        "connection_lost": "cancelled",
    },
    "finished": {},
    "failed": {},
    "unsupported": {},
    "cancelled": {},
}  # fmt: skip

CONNECTION = {
    "starting": {"READY": "open", "fault": "broken", "eof": "broken", "ready_timeout": "broken",
     "shutdown": "closed"},
    "open": {"FRAME": "open", "fault": "broken", "eof": "broken", "shutdown": "draining"},
    "draining": {"FRAME": "draining", "fault": "broken", "eof": "closed", "shutdown": "draining"},
    "broken": {},
    "closed": {},
}  # fmt: skip


def test_state_tables() -> None:
    assert states.REQUEST == REQUEST
    assert states.CONNECTION == CONNECTION
    assert (states.REQUEST_INITIAL, states.CONNECTION_INITIAL) == ("submitted", "starting")


# ---------------------------------------------------------------- wire errors

WIRE_CODES = (
    "CONTEXT_EXCEEDED", "EMPTY_PROMPT", "BAD_REQUEST", "BAD_FRAME", "SLOT_BUSY", "DUPLICATE_ID", "NOT_FOUND",
    "CANCELLED", "QUEUE_FULL", "OTHER",
)  # fmt: skip


def test_wire_codes() -> None:
    assert tuple(errors.WireCode) == WIRE_CODES


def test_fault_names() -> None:
    assert list(wire.RULES) == [
        "unknown_kind",
        "word_count",
        "word",
        "range",
        "constant",
        "terminator",
        "truncated",
        "line_limit",
        "unknown_key",
        "duplicate_key",
        "key_order",
        "missing",
        "count",
    ]
