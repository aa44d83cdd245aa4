"""One line per request, as text or JSON, when its answer is complete or its client has left.

The line never holds a query string, a header, a body or the key: only the raw path of the request line, and
the key is cut out of that too. :class:`RedactKey` does the same for every other logger of the process."""

from __future__ import annotations

import json
import logging
import re
import time
from dataclasses import dataclass, field
from typing import Final

logger = logging.getLogger("colibri.access")

OK: Final = "ok"
REFUSED: Final = "refused"
ERROR: Final = "error"
CANCELLED: Final = "cancelled"

REDACTED: Final = "[key]"
_PATH_SHOWN: Final = 200
_NOTED: Final = frozenset({"queue_wait_ms", "prompt_tokens", "completion_tokens", "outcome", "reason"})


@dataclass(slots=True)
class AccessRecord:
    """What is known about one request. Times are ``time.monotonic`` seconds; ``status`` 0 means that no
    answer was begun.

    ``path`` is the raw path without its query, ``route`` the pattern it matched (empty for unknown paths):
    the one to use as a metrics label. ``outcome`` is one of ok, refused, error, cancelled once the request
    has ended."""

    request_id: str
    client: str
    method: str = "-"
    path: str = "-"
    route: str = ""
    status: int = 0
    bytes_sent: int = 0
    began: float = field(default_factory=time.monotonic)
    ended: float = 0.0
    queue_wait_ms: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    outcome: str = ""
    reason: str | None = None  # for the operator: why it was refused or failed

    def note(self, fields: dict[str, object]) -> None:
        """Set the fields a view may set. Raises TypeError for others."""
        for name, value in fields.items():
            if name not in _NOTED:
                raise TypeError(f"an access record has no field {name!r} that can be noted")
            setattr(self, name, value)

    def close(self, outcome: str | None = None) -> None:
        """The request is over: fix its duration and outcome (the one given, the one noted, or what the status
        says).
        """
        self.ended = time.monotonic()
        self.outcome = outcome or self.outcome or outcome_of(self.status)

    def values(self) -> dict[str, object]:
        """The fields of the log line, in order; None and empty ones left out."""
        shown = {
            "request_id": self.request_id,
            "client": self.client,
            "method": self.method,
            "path": self.path,
            "status": self.status,
            "outcome": self.outcome,
            "duration_ms": round((self.ended - self.began) * 1000, 1),
            "queue_wait_ms": self.queue_wait_ms,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "bytes": self.bytes_sent,
            "reason": self.reason,
        }
        return {name: value for name, value in shown.items() if value is not None}


def outcome_of(status: int) -> str:
    """The outcome an answer's status stands for; no answer at all is a client that left."""
    if status == 0:
        return CANCELLED
    if status < 400:
        return OK
    return REFUSED if status < 500 else ERROR


class AccessLog:
    """Writes records to the ``colibri.access`` logger."""

    def __init__(self, *, as_json: bool, key: str | None) -> None:
        self._as_json = as_json
        self._key = key or None

    def write(self, record: AccessRecord) -> None:
        """Log one ended record."""
        if logger.isEnabledFor(logging.INFO):
            logger.handle(_LogRecord(self.line(record)))

    def line(self, record: AccessRecord) -> str:
        """The text of the line, without time stamp when it is not JSON (the logging formatter adds one)."""
        values = record.values()
        if self._key:
            values = {
                name: v.replace(self._key, REDACTED) if isinstance(v, str) else v
                for name, v in values.items()
            }
        values["path"] = str(values["path"])[:_PATH_SHOWN]  # not before the key is out: half of it would stay
        if self._as_json:
            now = time.time()
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"
            return json.dumps({"time": stamp, "event": "request", **values}, separators=(",", ":"))
        return " ".join([f"{name}={_plain(v) if isinstance(v, str) else v}" for name, v in values.items()])


class _LogRecord(logging.LogRecord):
    """A finished line for the handlers, without a look at who calls, which thread and which process."""

    _same_for_all: Final = vars(
        logging.LogRecord("colibri.access", logging.INFO, __file__, 0, "", None, None)
    )

    def __init__(self, line: str) -> None:
        now = time.time()
        self.__dict__.update(self._same_for_all, msg=line, created=now, msecs=now % 1 * 1000)


_find_unplain = re.compile(r"[^!#-~]").search


def _plain(text: str) -> str:
    """``text`` as it is, or as JSON where a blank, a quote or anything beyond printable ASCII is in it."""
    return text if _find_unplain(text) is None else json.dumps(text)


_PLAIN_FORMATTER: Final = logging.Formatter()


class RedactKey(logging.Filter):
    """A filter for log handlers: no message or traceback that passes it contains the key."""

    def __init__(self, key: str) -> None:
        super().__init__()
        self._key = key

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if self._key in message:
            record.msg, record.args = message.replace(self._key, REDACTED), None
        if record.exc_info:
            text = _PLAIN_FORMATTER.formatException(record.exc_info)
            # formatters print this instead of the exception
            record.exc_text = text.replace(self._key, REDACTED)
        return True
