# Generated from spec/protocol.yaml (target python, template python/settings.py.j2). Do not edit.
# Regenerate with: python -m codegen generate

"""Flags and environment variables of the gateway: names, kinds, defaults, units and ranges.

A flag wins over its variable; a variable wins over the default. Nothing here reads the environment by itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

TRUE_WORDS: Final[frozenset[str]] = frozenset({"1", "true", "yes", "on"})
FALSE_WORDS: Final[frozenset[str]] = frozenset({"", "0", "false", "no", "off"})

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,40}")
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,40}(?:\.[0-9]{0,40})?")

Value = None | bool | int | float | str | tuple[str, ...]


class Setting(NamedTuple):
    """One thing an operator can set."""

    name: str
    flag: str | None
    """Command line flag, or None."""
    env: str | None
    """Environment variable, or None."""
    kind: str
    """One of directory, string, family, integer, secret, number, boolean, choice."""
    default: Value
    low: float | None
    """Least value allowed, inclusive."""
    high: float | None
    """Greatest value allowed, inclusive."""
    choices: tuple[str, ...]
    """The words a choice or family takes; empty for the other kinds."""
    unit: str
    multiple: bool
    """The flag may be repeated; the variable holds a comma-separated list."""
    doc: str

    def parse(self, text: str) -> Value:
        """The value ``text`` stands for. Raises ValueError with one line that names the setting and what it takes.

        A ``multiple`` setting splits at commas, drops empty members and gives a tuple.
        """
        if self.multiple:
            return tuple(part.strip() for part in text.split(",") if part.strip())
        if self.kind == "boolean":
            return self._boolean(text)
        if self.kind in ("integer", "number"):
            return self._number(text)
        if self.choices and text not in self.choices:
            raise ValueError(f"{self.spelled}: {text!r} is not one of {', '.join(self.choices)}")
        return text

    @property
    def spelled(self) -> str:
        """How an operator knows the setting: the flag and the variable, else the name."""
        return " / ".join(part for part in (self.flag, self.env) if part) or self.name

    def _boolean(self, text: str) -> bool:
        word = text.strip().lower()
        if word in TRUE_WORDS:
            return True
        if word in FALSE_WORDS:
            return False
        raise ValueError(f"{self.spelled}: {text!r} is neither 1 nor 0")

    def _number(self, text: str) -> int | float:
        word = text.strip()
        form, what = (_INTEGER, "a whole number") if self.kind == "integer" else (_NUMBER, "a number")
        if form.fullmatch(word) is None:
            raise ValueError(f"{self.spelled}: {text[:40]!r} is not {what} ({self.unit})")
        value = int(word) if self.kind == "integer" else float(word)
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        if not low <= value <= high or math.isinf(value):
            bounds = f"{low:.15g} to {high:.15g} {self.unit}"
            raise ValueError(f"{self.spelled}: {text[:40]!r} is out of range, {bounds}")
        return value


SETTINGS: Final[Mapping[str, Setting]] = {
    "model": Setting(
        name="model",
        flag="--model",
        env=None,
        kind="directory",
        default=None,
        low=None,
        high=None,
        choices=(),
        unit="path",
        multiple=False,
        doc="Model directory; the embedded model when absent.",
    ),
    "engine": Setting(
        name="engine",
        flag="--engine",
        env="COLI_ENGINE",
        kind="string",
        default=None,
        low=None,
        high=None,
        choices=(),
        unit="path",
        multiple=False,
        doc="Engine program, or `reference` or `native`; the best engine available for the model when absent.",
    ),
    "arch": Setting(
        name="arch",
        flag="--arch",
        env=None,
        kind="family",
        default="auto",
        low=None,
        high=None,
        choices=(
            "auto",
            "glm",
            "llama",
            "qwen2",
            "qwen3",
            "qwen3_moe",
            "olmoe",
            "inkling",
            "kimi",
            "deepseek_v4",
        ),
        unit="family",
        multiple=False,
        doc="Model family; auto reads model_type in the model's config.json.",
    ),
    "host": Setting(
        name="host",
        flag="--host",
        env=None,
        kind="string",
        default="127.0.0.1",
        low=None,
        high=None,
        choices=(),
        unit="address",
        multiple=False,
        doc="Address to listen on.",
    ),
    "port": Setting(
        name="port",
        flag="--port",
        env=None,
        kind="integer",
        default=8000,
        low=0,
        high=65535,
        choices=(),
        unit="port",
        multiple=False,
        doc="Port to listen on; 0 takes a free one.",
    ),
    "model_id": Setting(
        name="model_id",
        flag="--model-id",
        env=None,
        kind="string",
        default=None,
        low=None,
        high=None,
        choices=(),
        unit="name",
        multiple=False,
        doc="Name the API serves the model under; the directory's name when absent.",
    ),
    "api_key": Setting(
        name="api_key",
        flag="--api-key",
        env="COLI_API_KEY",
        kind="secret",
        default=None,
        low=None,
        high=None,
        choices=(),
        unit="key",
        multiple=False,
        doc="Key every client must send; empty means no key.",
    ),
    "max_tokens": Setting(
        name="max_tokens",
        flag="--max-tokens",
        env=None,
        kind="integer",
        default=1024,
        low=1,
        high=2147483647,
        choices=(),
        unit="tokens",
        multiple=False,
        doc="Cap of max_tokens and its default.",
    ),
    "kv_slots": Setting(
        name="kv_slots",
        flag="--kv-slots",
        env=None,
        kind="integer",
        default=1,
        low=1,
        high=512,
        choices=(),
        unit="slots",
        multiple=False,
        doc="KV slots: requests the engine runs at once.",
    ),
    "max_queue": Setting(
        name="max_queue",
        flag="--max-queue",
        env=None,
        kind="integer",
        default=8,
        low=0,
        high=1000000,
        choices=(),
        unit="requests",
        multiple=False,
        doc="Requests that may wait for a slot.",
    ),
    "queue_timeout": Setting(
        name="queue_timeout",
        flag="--queue-timeout",
        env=None,
        kind="number",
        default=240,
        low=0,
        high=86400,
        choices=(),
        unit="seconds",
        multiple=False,
        doc="Longest wait for a slot.",
    ),
    "cap": Setting(
        name="cap",
        flag="--cap",
        env=None,
        kind="integer",
        default=0,
        low=0,
        high=2147483647,
        choices=(),
        unit="entries",
        multiple=False,
        doc="Cache bound handed to the engine; 0 lets it choose.",
    ),
    "allowed_host": Setting(
        name="allowed_host",
        flag="--allowed-host",
        env="COLI_ALLOWED_HOSTS",
        kind="string",
        default=(),
        low=None,
        high=None,
        choices=(),
        unit="name",
        multiple=True,
        doc="Further Host name to serve; * serves every name.",
    ),
    "cors_origin": Setting(
        name="cors_origin",
        flag="--cors-origin",
        env=None,
        kind="string",
        default=(
            "http://127.0.0.1:8000",
            "http://localhost:8000",
            "http://127.0.0.1:5173",
            "http://localhost:5173",
            "http://tauri.localhost",
            "tauri://localhost",
        ),
        low=None,
        high=None,
        choices=(),
        unit="origin",
        multiple=True,
        doc="Origin allowed to read answers in a browser; replaces the default list.",
    ),
    "no_restart": Setting(
        name="no_restart",
        flag="--no-restart",
        env=None,
        kind="boolean",
        default=False,
        low=None,
        high=None,
        choices=(),
        unit="switch",
        multiple=False,
        doc="Leave a dead engine dead.",
    ),
    "log_format": Setting(
        name="log_format",
        flag="--log-format",
        env=None,
        kind="choice",
        default="text",
        low=None,
        high=None,
        choices=("text", "json"),
        unit="format",
        multiple=False,
        doc="Form of the log lines.",
    ),
    "ready_timeout": Setting(
        name="ready_timeout",
        flag="--ready-timeout",
        env="COLI_READY_TIMEOUT",
        kind="number",
        default=600,
        low=0.01,
        high=86400,
        choices=(),
        unit="seconds",
        multiple=False,
        doc="Longest time until the engine says READY.",
    ),
    "temperature": Setting(
        name="temperature",
        flag=None,
        env="COLI_TEMP",
        kind="number",
        default=0.7,
        low=0,
        high=2,
        choices=(),
        unit="temperature",
        multiple=False,
        doc="Default temperature; a value out of range is ignored.",
    ),
    "top_p": Setting(
        name="top_p",
        flag=None,
        env=None,
        kind="number",
        default=0.9,
        low=0,
        high=1,
        choices=(),
        unit="mass",
        multiple=False,
        doc="Default top_p.",
    ),
    "max_body_bytes": Setting(
        name="max_body_bytes",
        flag=None,
        env="COLI_MAX_BODY_BYTES",
        kind="integer",
        default=33554432,
        low=1,
        high=1099511627776,
        choices=(),
        unit="bytes",
        multiple=False,
        doc="Largest request body.",
    ),
    "read_deadline": Setting(
        name="read_deadline",
        flag=None,
        env="COLI_READ_DEADLINE",
        kind="number",
        default=30,
        low=0.01,
        high=86400,
        choices=(),
        unit="seconds",
        multiple=False,
        doc="Time from the first byte to the whole request read.",
    ),
    "idle_timeout": Setting(
        name="idle_timeout",
        flag=None,
        env="COLI_IDLE_TIMEOUT",
        kind="number",
        default=75,
        low=0.01,
        high=86400,
        choices=(),
        unit="seconds",
        multiple=False,
        doc="Time a kept-alive connection may be idle.",
    ),
    "write_stall_timeout": Setting(
        name="write_stall_timeout",
        flag=None,
        env="COLI_WRITE_STALL_TIMEOUT",
        kind="number",
        default=30,
        low=0.01,
        high=86400,
        choices=(),
        unit="seconds",
        multiple=False,
        doc="Time a client may stop reading before it counts as gone.",
    ),
    "max_connections": Setting(
        name="max_connections",
        flag=None,
        env="COLI_MAX_CONNECTIONS",
        kind="integer",
        default=256,
        low=1,
        high=65535,
        choices=(),
        unit="connections",
        multiple=False,
        doc="Connections in all.",
    ),
    "max_connections_per_ip": Setting(
        name="max_connections_per_ip",
        flag=None,
        env="COLI_MAX_CONNECTIONS_PER_IP",
        kind="integer",
        default=64,
        low=0,
        high=65535,
        choices=(),
        unit="connections",
        multiple=False,
        doc="Connections of one peer address; 0 is no cap.",
    ),
    "allow_insecure_bind": Setting(
        name="allow_insecure_bind",
        flag=None,
        env="COLI_ALLOW_INSECURE_BIND",
        kind="boolean",
        default=False,
        low=None,
        high=None,
        choices=(),
        unit="switch",
        multiple=False,
        doc="Permit listening beyond loopback without a key.",
    ),
    "logprobs_accept_timeout": Setting(
        name="logprobs_accept_timeout",
        flag=None,
        env="COLI_LOGPROBS_ACCEPT_TIMEOUT",
        kind="number",
        default=30,
        low=0.001,
        high=86400,
        choices=(),
        unit="seconds",
        multiple=False,
        doc="Time an extension request may stay unaccepted.",
    ),
    "engine_stall_timeout": Setting(
        name="engine_stall_timeout",
        flag=None,
        env="COLI_ENGINE_STALL_TIMEOUT",
        kind="number",
        default=600,
        low=0.001,
        high=86400,
        choices=(),
        unit="seconds",
        multiple=False,
        doc="Time a request may go without any frame.",
    ),
    "keepalive": Setting(
        name="keepalive",
        flag=None,
        env="COLI_KEEPALIVE_SECONDS",
        kind="number",
        default=10,
        low=0.001,
        high=86400,
        choices=(),
        unit="seconds",
        multiple=False,
        doc="Silence after which a committed stream gets a keepalive.",
    ),
    "visible_keepalive": Setting(
        name="visible_keepalive",
        flag=None,
        env="COLI_VISIBLE_KEEPALIVE",
        kind="boolean",
        default=False,
        low=None,
        high=None,
        choices=(),
        unit="switch",
        multiple=False,
        doc="Send a dot instead of nothing in a chat keepalive.",
    ),
    "tool_salvage": Setting(
        name="tool_salvage",
        flag=None,
        env="COLI_TOOL_SALVAGE",
        kind="boolean",
        default=False,
        low=None,
        high=None,
        choices=(),
        unit="switch",
        multiple=False,
        doc="Map the bare body of a recognised call to its first required parameter.",
    ),
    "shutdown_timeout": Setting(
        name="shutdown_timeout",
        flag=None,
        env="COLI_SHUTDOWN_TIMEOUT",
        kind="number",
        default=30,
        low=0,
        high=86400,
        choices=(),
        unit="seconds",
        multiple=False,
        doc="Time requests in flight get to finish after SIGTERM.",
    ),
    "engine_kill_timeout": Setting(
        name="engine_kill_timeout",
        flag=None,
        env=None,
        kind="number",
        default=5,
        low=0,
        high=86400,
        choices=(),
        unit="seconds",
        multiple=False,
        doc="Time between SIGTERM and SIGKILL of the engine.",
    ),
    "engine_write_timeout": Setting(
        name="engine_write_timeout",
        flag=None,
        env="COLI_ENGINE_WRITE_TIMEOUT",
        kind="number",
        default=30,
        low=0.001,
        high=86400,
        choices=(),
        unit="seconds",
        multiple=False,
        doc="Time a command may take to be written without progress.",
    ),
    "restart_backoff_first": Setting(
        name="restart_backoff_first",
        flag=None,
        env=None,
        kind="number",
        default=1,
        low=0,
        high=86400,
        choices=(),
        unit="seconds",
        multiple=False,
        doc="Pause before the first restart of a dead engine.",
    ),
    "restart_backoff_last": Setting(
        name="restart_backoff_last",
        flag=None,
        env=None,
        kind="number",
        default=30,
        low=0,
        high=86400,
        choices=(),
        unit="seconds",
        multiple=False,
        doc="Longest pause between restarts.",
    ),
}
"""Every setting by name, in the order of the spec."""
