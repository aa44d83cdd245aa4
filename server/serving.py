"""One gateway process from start to end: listen, start the engine, serve, shut down in order (http.md §13).

The socket is bound before the engine starts, so an occupied port fails at once. A SIGTERM or Ctrl-C stops
accepting, lets requests in flight finish for a bounded time, and then ends the engine. A second signal ends
the process at once; the engine sees the end of its stdin and follows.
"""

from __future__ import annotations

import gc
import json
import logging
import signal
import sys
import threading
import time
from collections.abc import Mapping
from types import FrameType
from typing import Final

from generated.settings import SETTINGS
from server.api.gateway import Gateway
from server.app import build_gateway, create_server
from server.engines import engine_in_words
from server.http.accesslog import RedactKey
from server.http.server import HttpServer
from server.model import ServedModel
from server.settings import Settings
from server.wire.process import EngineStartError

logger = logging.getLogger("colibri.server")

LISTENING: Final = "listening on "
READY: Final = "ready"
STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

_WILDCARDS: Final = frozenset({"0.0.0.0", "::", ""})
_HELD_RECORDS: Final = 10_000
_ALLOCATIONS_PER_COLLECTION: Final = 5_000


def serve(settings: Settings, model: ServedModel, environ: Mapping[str, str]) -> int:
    """Serve until told to stop; returns the exit code.

    Raises EngineError, BindError, or EngineStartError when the engine could not be started for the first
    time.
    """
    log = _Log(settings)
    gateway = build_gateway(settings, model, environ)
    server = create_server(gateway)
    process = _Process(gateway, server, log, environ)
    for number in STOP_SIGNALS:
        signal.signal(number, process.on_signal)
    return process.run()


class _Process:
    """The running gateway."""

    def __init__(self, gateway: Gateway, server: HttpServer, log: _Log, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._gateway = gateway
        self._server = server
        self._log = log
        self._told_to_stop = False
        self._start_error: EngineStartError | None = None

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """SIGTERM or SIGINT: stop in order; the next one is not caught."""
        self._told_to_stop = True
        for either in STOP_SIGNALS:  # whoever sends the second need not know which was the first
            signal.signal(either, signal.SIG_DFL)
        self._server.shut_down(self._gateway.settings.shutdown_timeout)

    def run(self) -> int:
        """Blocks in the I/O loop."""
        self._greet()
        _settle_memory()
        watcher = threading.Thread(target=self._await_engine, name="engine-start", daemon=True)
        self._gateway.engine.start()
        watcher.start()
        try:
            self._server.run()
        finally:
            self._gateway.engine.shut_down()
            self._gateway.keepalive.close()
        watcher.join()
        if self._start_error is not None and not self._told_to_stop:
            self._log.drop()
            raise self._start_error
        self._log.release()
        return 0

    def _await_engine(self) -> None:
        try:
            is_ready = self._gateway.engine.wait_ready()
        except EngineStartError as error:
            self._start_error = error
            self._server.shut_down(0.0)
            return
        self._log.release()
        if is_ready:  # and not told to stop before it was
            self._invite()

    def _greet(self) -> None:
        settings = self._gateway.settings
        say(f"{LISTENING}{self._url(settings.host)}, starting {engine_in_words(settings.engine)}")
        if settings.api_key == "":
            say("the key is empty: no key is asked for")
        if "*" in settings.allowed_host:
            say("warning: --allowed-host * switches the Host guard off")

    def _invite(self) -> None:
        settings, model = self._gateway.settings, self._gateway.model
        host = "127.0.0.1" if settings.host in _WILDCARDS else settings.host
        url = self._url(host)
        question = {"role": "user", "content": "what is 2 + 2?"}
        body = json.dumps({"model": model.id, "temperature": 0, "messages": [question]})
        say(
            f"{READY}: {model.id} ({model.family.name}), {settings.kv_slots} slot(s), API at {url}/docs. Try:"
        )
        key = ""
        if settings.api_key:
            variable = SETTINGS["api_key"].env
            assert variable is not None
            key = f" -H 'Authorization: Bearer '\"${variable}\""
            if self._environ.get(variable) != settings.api_key:
                say(f"  read -rs {variable}   # then type the key")
        say(f"  curl {url}/v1/chat/completions -H 'Content-Type: application/json'{key} -d '{body}'")

    def _url(self, host: str) -> str:
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{self._server.effective_port}"


def _settle_memory() -> None:
    """What is there before the first request stays: no collection has to look at it again, and few have to
    look at what comes, of which little is cyclic.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS_PER_COLLECTION, *gc.get_threshold()[1:])


def say(line: str) -> None:
    """A line for the operator, on stdout; an operator who went away does not matter."""
    try:
        print(line, flush=True)
    except (OSError, ValueError):
        logger.debug("stdout is closed")


class _Log:
    """The process's log on stderr. What the engine says before it is ready is held back: if it never gets
    ready, the one line that tells why is enough.
    """

    def __init__(self, settings: Settings) -> None:
        target = logging.StreamHandler(sys.stderr)
        target.setFormatter(_JsonLines() if settings.log_format == "json" else _TextLines())
        if settings.api_key:
            target.addFilter(RedactKey(settings.api_key))
        root = logging.getLogger()
        root.handlers[:] = [target]
        root.setLevel(logging.INFO)
        self._held = _Held(target)
        engine = logging.getLogger("server")
        engine.handlers[:] = [self._held]
        engine.propagate = False

    def release(self) -> None:
        """The engine is ready: print what was held, and everything from now on at once."""
        self._held.let_go()

    def drop(self) -> None:
        """The engine never got ready: forget what was held."""
        self._held.forget()


class _Held(logging.Handler):
    """Keeps records for ``target`` until it is told to let go of them.

    The way of a record is decided under the handler's lock, so each is printed once, and in order.
    """

    def __init__(self, target: logging.Handler) -> None:
        super().__init__()
        self._target = target
        self._records: list[logging.LogRecord] | None = []  # None: pass on at once

    def emit(self, record: logging.LogRecord) -> None:
        if self._records is None:
            self._target.handle(record)
            return
        self._records.append(record)
        if len(self._records) == _HELD_RECORDS:
            self.let_go()

    def let_go(self) -> None:
        """Print what is held, and everything from now on at once."""
        self._pass_on(dropped=False)

    def forget(self) -> None:
        """Forget what is held, and print everything from now on at once."""
        self._pass_on(dropped=True)

    def _pass_on(self, *, dropped: bool) -> None:
        assert self.lock is not None
        with self.lock:
            held, self._records = self._records or [], None
            for record in () if dropped else held:
                self._target.handle(record)


class _TextLines(logging.Formatter):
    """Times like logging's own, each second of them formatted once."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")
        self._second = (0, "")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        second, text = self._second
        if second != int(record.created):
            second = int(record.created)
            text = time.strftime(self.default_time_format, self.converter(second))
            self._second = second, text
        return f"{text},{int(record.msecs):03d}"


class _JsonLines(logging.Formatter):
    """One JSON object a line; access lines are JSON already."""

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        if record.name == "colibri.access":
            return message
        values = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "event": "log",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": message,
        }
        if record.exc_info:
            values["exception"] = self.formatException(record.exc_info)
        return json.dumps(values, ensure_ascii=False)
