"""How long a chat template may run and how much it may hold: the measures that its operations check (http.md
§14).

Guarantees: no check itself takes memory in proportion to what it measures.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized, ValuesView
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import chain
from typing import Any

from jinja2.utils import Namespace

from generated import limits

LARGEST_LIST = 1 << 20
"""Most items of a list that a template makes."""
LARGEST_NUMBER_BITS = 4096
_SLICE = 1 << 16
_PUNCTUATION = 4
_SHORT_TEXT = 24
_GROUPS = (list, tuple, AbstractSet, ValuesView)
_deadlines: ContextVar[tuple[float, float] | None] = ContextVar("deadlines", default=None)


class TemplateRefusal(Exception):
    """The template called `raise_exception`: it does not take this conversation. The text is the
    template's."""


class TemplateFailure(Exception):
    """The template cannot be compiled, failed, or went beyond a bound. The text is for the log."""


class TemplateOverflow(TemplateFailure):
    """The text that the template put together is larger than the largest prompt."""

    def __init__(self) -> None:
        super().__init__("the chat template made a text larger than the largest prompt")


@contextmanager
def limited_time() -> Iterator[None]:
    """Let `check_time` count from here, in this thread."""
    now = time.monotonic(), time.thread_time()
    token = _deadlines.set((now[0] + limits.TEMPLATE_SECONDS, now[1] + limits.TEMPLATE_SECONDS))
    try:
        yield
    finally:
        _deadlines.reset(token)


def check_time() -> None:
    """Raises TemplateFailure when the rendering under way has used up its time, which is time of the
    processor: on a busy machine a rendering waits longer and is as good as ever.

    The cheaper clock on the wall is never behind the one of the thread.
    """
    deadlines = _deadlines.get()
    if deadlines is None or time.monotonic() <= deadlines[0]:
        return
    if time.thread_time() > deadlines[1]:
        raise TemplateFailure(f"the chat template ran longer than {limits.TEMPLATE_SECONDS:g} s")


def timed(items: Iterable[Any]) -> Iterator[Any]:
    """The items, with the time checked before each."""
    for item in items:
        check_time()
        yield item


def require_text(size: int) -> None:
    """Raises TemplateOverflow when a text of `size` characters would be larger than the largest prompt."""
    if size > limits.PROMPT_BYTES:
        raise TemplateOverflow


def require_items(count: int) -> None:
    """Raises TemplateFailure when a list of `count` items would be too long."""
    if count > LARGEST_LIST:
        raise TemplateFailure(f"the chat template made a list of more than {LARGEST_LIST} items")


def bounded(value: Any) -> Any:
    """`value`, unless it is a text, a list or a number that is too large."""
    if isinstance(value, str):
        require_text(len(value))
    elif isinstance(value, Sized):
        require_items(len(value))
    elif isinstance(value, int):
        require_number(value)
    return value


def require_number(value: int) -> None:
    """Raises TemplateFailure for a number of too many digits."""
    if value.bit_length() > LARGEST_NUMBER_BITS:
        raise TemplateFailure("the chat template made a number that is too large")


def joined(texts: Iterable[str], separator: str = "") -> str:
    """The texts in one, measured before it is made."""
    size = 0
    kept: list[str] = []
    for text in texts:
        size += len(text) + len(separator)
        require_text(size - len(separator))
        kept.append(text)
        if not len(kept) & 0xFF:
            check_time()
    return separator.join(kept)


def text_of(value: Any) -> str:
    """`str(value)`, measured before it is made: what is held twice is written twice."""
    if isinstance(value, str):
        return str(value)
    require_size(value)
    return str(value)


def written_size(text: str, written: Callable[[str], str]) -> int:
    """The length of `written(text)`, for a form that writes each character for itself."""
    if len(text) <= _SLICE:
        return len(written(text))
    return sum(len(written(text[place : place + _SLICE])) for place in range(0, len(text), _SLICE))


def require_size(
    value: Any,
    written: Callable[[str], str] | None = repr,
    punctuation: int = _PUNCTUATION,
    indent: int = 0,
) -> None:
    """Raises TemplateOverflow when the text of `value` would be larger than the largest prompt.

    `written` gives the form of a string inside it, None means as it is; `punctuation` and, for each level,
    `indent` are the characters around a member.
    """
    size = 0
    levels: list[Iterator[Any]] = [iter((value,))]
    while levels:
        check_time()
        for member in levels[-1]:
            size += punctuation + indent * len(levels)
            if isinstance(member, str):
                size += len(member) if written is None else written_size(member, written)
            elif isinstance(member, Mapping):
                levels.append(chain(member.keys(), member.values()))
            elif isinstance(member, _GROUPS):
                levels.append(iter(member))
            elif isinstance(member, Namespace):
                raise TemplateFailure("the chat template used a namespace as a value")
            else:
                size += member.bit_length() // 3 if isinstance(member, int) else _SHORT_TEXT
            require_text(size)
            if isinstance(member, (Mapping, *_GROUPS)):
                break
        else:
            levels.pop()
