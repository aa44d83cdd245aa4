"""The log of a gateway that starts: what its engine says is held back until it is ready."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from server import serving

ENGINE = logging.getLogger("server.wire.process")


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The log of a process, writing to ``shown``; the loggers are as they were afterwards."""
    loggers = [logging.getLogger(), logging.getLogger("server")]
    before = [(logger, list(logger.handlers), logger.level, logger.propagate) for logger in loggers]
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    log: Any = serving._Log(SimpleNamespace(log_format="text", api_key=None))  # type: ignore[arg-type]
    log.shown = shown
    yield log
    for logger, handlers, level, propagate in before:
        logger.handlers[:] = handlers
        logger.setLevel(level)
        logger.propagate = propagate


def said(log: Any) -> list[str]:
    """The messages that were printed, without their heads."""
    return [line.rpartition(" ")[2] for line in log.shown.getvalue().splitlines()]


def test_what_the_engine_says_is_printed_when_it_is_ready_and_at_once_from_then_on(log: Any) -> None:
    ENGINE.info("one")
    logging.getLogger("colibri.http").info("other")
    ENGINE.debug("nothing")
    assert said(log) == ["other"]
    log.release()
    assert said(log) == ["other", "one"]
    ENGINE.info("two")
    log.release()
    assert said(log) == ["other", "one", "two"]


def test_what_an_engine_said_that_never_got_ready_is_forgotten(log: Any) -> None:
    ENGINE.info("one")
    log.drop()
    log.release()
    ENGINE.info("two")
    assert said(log) == ["two"]


def test_no_more_is_held_than_there_is_room_for(log: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [str(number) for number in range(serving._HELD_RECORDS + 2)]
    for line in lines[:-2]:
        ENGINE.info(line)
    ENGINE.info(lines[-2])
    ENGINE.info(lines[-1])
    log.release()
    assert said(log) == lines


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_line_that_comes_while_the_log_is_released_is_printed_once(log: Any, when: str) -> None:
    """The engine's reader thread has just found the handler that holds lines back."""
    held = log._held
    handle: Callable[[logging.LogRecord], bool] = held.handle

    def handle_and_release(record: logging.LogRecord) -> bool:
        if when == "before":
            log.release()
        handled = handle(record)
        if when == "after":
            log.release()
        return handled

    ENGINE.info("one")
    held.handle = handle_and_release  # type: ignore[method-assign]
    ENGINE.info("two")
    held.handle = handle  # type: ignore[method-assign]
    ENGINE.info("three")
    assert said(log) == ["one", "two", "three"]
