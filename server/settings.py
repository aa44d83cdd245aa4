"""What the operator set: flags win over environment variables, those win over the defaults of the spec.

Names, variables, kinds, ranges and defaults are ``generated.settings``; here they only become one typed
object.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from generated.settings import SETTINGS, Setting, Value

logger = logging.getLogger("colibri.server")

IGNORED_WHEN_BAD: Final = frozenset({"temperature"})
"""Settings whose bad value is passed over with a warning instead of ending the start (http.md §6.7)."""

_FILE: Final = "path"
"""Unit of a setting that names a file."""

_NAMES: Final = frozenset({"name", "origin"})
"""Units of a setting that is compared with what clients send: no client sends an empty one."""


class SettingError(ValueError):
    """A flag or variable that cannot be read; the text is one line for the operator."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting of the spec, by its name there. Durations are seconds, sizes bytes."""

    model: str | None
    engine: str | None
    arch: str
    host: str
    port: int
    model_id: str | None
    api_key: str | None
    max_tokens: int
    kv_slots: int
    max_queue: int
    queue_timeout: float
    cap: int
    allowed_host: tuple[str, ...]
    cors_origin: tuple[str, ...]
    no_restart: bool
    log_format: str
    ready_timeout: float
    temperature: float
    top_p: float
    max_body_bytes: int
    read_deadline: float
    idle_timeout: float
    write_stall_timeout: float
    max_connections: int
    max_connections_per_ip: int
    allow_insecure_bind: bool
    logprobs_accept_timeout: float
    engine_stall_timeout: float
    keepalive: float
    visible_keepalive: bool
    tool_salvage: bool
    shutdown_timeout: float
    engine_kill_timeout: float
    engine_write_timeout: float
    restart_backoff_first: float
    restart_backoff_last: float


def resolve(flags: Mapping[str, str | bool | tuple[str, ...] | None], environ: Mapping[str, str]) -> Settings:
    """The settings in force.

    ``flags``: what the command line gave, as text, by setting name; None, False and () mean that a flag was
    not given. Raises SettingError for a value that cannot be read.
    """
    values: dict[str, Any] = {}
    for field in fields(Settings):
        setting = SETTINGS[field.name]
        given = flags.get(field.name)
        try:
            values[field.name] = _value(setting, given, environ)
        except ValueError as fault:
            if field.name not in IGNORED_WHEN_BAD or given is not None:
                raise SettingError(str(fault)) from None
            logger.warning("%s; using %s", fault, setting.default)
            values[field.name] = setting.default
    return Settings(**values)


def _value(setting: Setting, given: str | bool | tuple[str, ...] | None, environ: Mapping[str, str]) -> Value:
    if isinstance(given, tuple):
        if given:
            return _usable(setting, tuple(_readable(setting, item).strip() for item in given))
    elif given is not None and given is not False:
        return given if given is True else _usable(setting, setting.parse(_readable(setting, given)))
    if setting.env is not None and setting.env in environ:
        return _usable(setting, setting.parse(_readable(setting, environ[setting.env])))
    return setting.default


def _usable(setting: Setting, value: Value) -> Value:
    """``value``. Raises ValueError for a name that no request could match, which would do nothing and say so
    to nobody; a variable with an empty list gives no name.
    """
    if setting.unit in _NAMES:
        for name in value if isinstance(value, tuple) else (str(value),):
            if not name.strip():
                raise ValueError(f"{setting.spelled}: the {setting.unit} is empty")
            if setting.multiple and any(map(str.isspace, name)):
                raise ValueError(f"{setting.spelled}: the {setting.unit} {name[:40]!r} holds a blank")
    return value


def _readable(setting: Setting, text: str) -> str:
    """``text``; Python hands on bytes that are no UTF-8, and only the name of a file may have any. Raises
    ValueError, without the text: it may be the key.
    """
    if setting.unit != _FILE and not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError(f"{setting.spelled}: it is not UTF-8 text") from None
    return text
