"""Large JSON texts: decoded piece by piece, so that no other thread waits for the interpreter longer than a
piece takes, and freed in the same way.

The standard decoder keeps the interpreter to itself from the first character to the last, and so does freeing
what it made: together seconds for millions of small values. Guarantees: the value, or the fault and its
place, is what the decoder would have come to; no text is decoded twice but for what a window cuts off.
"""

from __future__ import annotations

import gc
import json
import logging
import queue
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from json.decoder import WHITESPACE, scanstring  # type: ignore[attr-defined]
from typing import Any, Final

logger = logging.getLogger("colibri.server")

WINDOW: Final = 64 * 1024
"""Characters decoded in one go."""

_FREED_AT_ONCE: Final = 64  # members, none of which was longer than a window
_SHORTEST_REACH: Final = 64
_NEXT_REACH: Final = 256  # after members that were decoded one by one
_MOST_ALONE: Final = 32
_MOST_LOOKED_AT: Final = 256  # commas and strings behind the last whole member of a window
_CUT_NUMBER: Final = 3  # behind "1" in "1e+", which is taken for a number and "e+" where a window ends so
_MANY_CONTAINERS: Final = 50_000  # so many that a garbage collection would be felt
_MOST_DISCARDED: Final = 8
"""Large containers that may wait to be freed when another decoding begins. Many threads decode and one frees,
which gets its share of the interpreter as one of them: without a bound whoever sends large bodies, be they
refused, fills the memory. With it there are so many and those of the decodings under way, one or more each. A
few, so that a request alone, whose parts and answer are freed behind it, never waits for them.
"""

_STRING_OR_BRACKET: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)


class _Large:
    """What large containers have in common: their members are freed a few at a time, in a thread of their
    own, whoever lets go of them."""

    __slots__ = ()

    def __init__(self) -> None:
        _memory.made()

    def __del__(self) -> None:
        if _memory is not None:  # at the end of the process this module may be gone before what it made
            _memory.discarded.put(self)

    def free_some(self) -> bool:
        """Free a few members; False when there are none."""
        raise NotImplementedError


class LargeList(_Large, list[Any]):
    """See :class:`_Large`."""

    __slots__ = ()

    def free_some(self) -> bool:
        """See :class:`_Large`."""
        del self[-_FREED_AT_ONCE:]
        return bool(self)


class LargeDict(_Large, dict[str, Any]):
    """See :class:`_Large`."""

    __slots__ = ()

    def free_some(self) -> bool:
        """See :class:`_Large`."""
        if self:
            self.popitem()
        return bool(self)


class _Memory:
    """Keeps the garbage collector away from the values of large texts for as long as they are there: they
    hold no circles, and a look at millions of them would stop everybody for seconds.

    After a decoding the values are frozen, and whatever else was there with them. When the last large
    container is freed, the collector looks at all that, and what it leaves is frozen if it was before.
    """

    def __init__(self) -> None:
        self.discarded: queue.SimpleQueue[_Large] = queue.SimpleQueue()  # put is safe wherever __del__ runs
        self._lock = threading.Lock()
        self._freed = threading.Condition(self._lock)  # a container, in the thread for it
        self._decoding = 0
        self._containers = 0
        self._has_frozen = False
        self._was_frozen = False
        self._was_enabled = False
        self._thread: threading.Thread | None = None
        self._told = False  # that none can be started; one that was started never ends

    def made(self) -> None:
        """There is one more large container."""
        with self._lock:
            self._containers += 1
            if self._thread is None:
                self._start()

    def make_room(self) -> None:
        """Wait until few large containers are still to be freed.

        That hangs on the freeing thread alone, which waits for nobody but for moments. Where there is none
        the caller frees them.
        """
        with self._freed:
            while self._thread is not None and self.discarded.qsize() > _MOST_DISCARDED:
                self._freed.wait()
        with suppress(queue.Empty):  # others do the same
            while self.discarded.qsize() > _MOST_DISCARDED:
                self._free_one(self.discarded.get_nowait())

    @contextmanager
    def uncollected(self) -> Iterator[None]:
        """The collector does not run within, and will not look at what is made within."""
        with self._lock:
            if not self._decoding:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._decoding += 1
        try:
            yield
        finally:
            with self._lock:
                self._decoding -= 1
                if self._containers and gc.get_count()[0] > _MANY_CONTAINERS:
                    self._freeze()
                self._thaw_at_the_end()  # the last container may have gone meanwhile
                if self._was_enabled and not self._decoding:
                    gc.enable()

    def _freeze(self) -> None:
        if not self._has_frozen:
            self._was_frozen = gc.get_freeze_count() > 0
        self._has_frozen = True
        gc.freeze()

    def _start(self) -> None:
        thread = threading.Thread(target=self._free, name="json-freeing", daemon=True)
        try:
            thread.start()
        except (RuntimeError, MemoryError) as fault:
            # The next container tries again. No record keeps the fault, whose frames hold this one.
            if not self._told:
                self._told = True
                logger.error("no thread to free large JSON texts: %s", str(fault))
            return
        self._thread = thread

    def _free(self) -> None:
        while True:
            with suppress(Exception):  # of writing to the log: decodings wait for this thread
                self._free_one(self.discarded.get())

    def _free_one(self, container: _Large) -> None:
        """What is left of one at a fault is freed at once."""
        try:
            while container.free_some():
                pass
        except Exception as fault:
            # No record keeps the fault, whose frames hold the container.
            logger.error("a large JSON text was not freed piece by piece: %s", repr(fault))
        finally:
            del container
            with self._lock:
                self._containers -= 1
                self._freed.notify_all()
                self._thaw_at_the_end()

    def _thaw_at_the_end(self) -> None:
        """Under the lock: when the last container is freed and nobody makes any."""
        if not self._has_frozen or self._containers or self._decoding:
            return
        self._has_frozen = False
        gc.unfreeze()
        gc.collect()
        if self._was_frozen:
            gc.freeze()


_memory: Final = _Memory()


def decode(text: str, decoder: json.JSONDecoder, window: int = WINDOW) -> Any:
    """What ``decoder.decode(text)`` returns or raises; arrays and objects longer than ``window`` characters
    are :class:`LargeList` and :class:`LargeDict`.

    ``text`` must not be nested deeper than the decoder can follow, and ``decoder`` have no object hook.
    Waits while too much is to be freed, so it is not for threads that must not wait.
    """
    _memory.make_room()
    with _memory.uncollected():
        return _Pieces(text, decoder, window).decode()


class _Pieces:
    """One text on its way: arrays and objects longer than a window are filled here, all else is left to the
    decoder."""

    def __init__(self, text: str, decoder: json.JSONDecoder, window: int) -> None:
        self._text = text
        self._decoder = decoder
        self._scan: Callable[[str, int], tuple[Any, int]] = decoder.scan_once  # type: ignore[attr-defined]
        self._window = window
        # characters in which whole members are looked for: fewer near the end of a container
        self._reach = window
        self._alone = 0  # members to decode one by one before another window of them is looked for
        self._tried = 1  # doubled each time in vain
        self._open: list[LargeList | LargeDict] = []  # the innermost last
        self._long: set[int] = set()  # where arrays and objects begin that are known to be longer
        self._view, self._view_start = text[:window], 0

    def decode(self) -> Any:
        """See :func:`decode`."""
        value, place = self._value(self._skip(0))
        fresh = True  # nothing of the innermost container was read yet
        while self._open:
            container = self._open[-1]
            place = self._skip(place)
            if self._text.startswith("]" if isinstance(container, LargeList) else "}", place):
                self._open.pop()
                place += 1
                fresh = False
                continue
            if not fresh:
                self._expect(",", "Expecting ',' delimiter", place)
                place = self._skip(place + 1)
            place = self._members(container, place)
            fresh = self._open[-1] is not container
        place = self._skip(place)
        if place != len(self._text):
            raise json.JSONDecodeError("Extra data", self._text, place)
        return value

    def _skip(self, place: int) -> int:
        end: int = WHITESPACE.match(self._text, place).end()
        return end

    def _expect(self, mark: str, fault: str, place: int) -> None:
        if not self._text.startswith(mark, place):
            raise json.JSONDecodeError(fault, self._text, place)

    def _members(self, container: LargeList | LargeDict, place: int) -> int:
        """Put the members at ``place`` into ``container``, a window of them or one; returns their end."""
        if self._alone:
            self._alone -= 1
            return self._member(container, place)
        while self._reach >= _SHORTEST_REACH and place not in self._long:
            length = _length_of_members(self._text[place : place + self._reach])
            if length and self._took(container, self._text[place : place + length]):
                self._reach, self._tried = min(2 * self._reach, self._window), 1
                return place + length
            self._reach //= 2
        self._reach = _NEXT_REACH
        self._tried = min(2 * self._tried, _MOST_ALONE)
        self._alone = self._tried
        return self._member(container, place)

    def _took(self, container: LargeList | LargeDict, members: str) -> bool:
        """Whether ``members`` were what they seemed to be, and are in ``container`` now."""
        try:
            if isinstance(container, LargeList):
                container += self._decoder.decode(f"[{members}]")
            else:
                container.update(self._decoder.decode(f"{{{members}}}"))
        except ValueError:
            return False
        return True

    def _member(self, container: LargeList | LargeDict, place: int) -> int:
        """Put the member at ``place`` into ``container``; returns its end."""
        if isinstance(container, LargeList):
            value, place = self._value(place)
            container.append(value)
            return place
        self._expect('"', "Expecting property name enclosed in double quotes", place)
        key, place = scanstring(self._text, place + 1, self._decoder.strict)
        place = self._skip(place)
        self._expect(":", "Expecting ':' delimiter", place)
        container[key], place = self._value(self._skip(place + 1))
        return place

    def _value(self, place: int) -> tuple[Any, int]:
        """The value at ``place`` and its end. Where it is an array or object longer than a window it is
        empty yet, the innermost open one, and the end is that of its bracket."""
        while place not in self._long:
            try:
                value, end = self._scan(self._view, place - self._view_start)
                if end + _CUT_NUMBER <= len(self._view) or self._view_start + end == len(self._text):
                    return value, self._view_start + end
            except (StopIteration, ValueError):
                pass  # the value is not whole in the view, or faulty
            if self._view_start < place:
                self._view, self._view_start = self._text[place : place + self._window], place
                continue
            self._long.update(place + start for start in _open_at_end(self._view))
            if place not in self._long:
                return self._whole(place)
        self._long.remove(place)
        self._open.append(LargeList() if self._text[place] == "[" else LargeDict())
        return self._open[-1], place + 1

    def _whole(self, place: int) -> tuple[Any, int]:
        """A string or number of any length, a value that ends with the view, or what is wrong with it."""
        try:
            value, end = self._scan(self._text, place)
        except StopIteration as fault:
            raise json.JSONDecodeError("Expecting value", self._text, fault.value) from None
        return value, end


def _length_of_members(text: str) -> int:
    """How far the members go that ``text``, which begins with one, seems to hold whole, each with a comma
    behind it; 0 where there are none, or too much comes behind them.

    A guess: it is wrong where the container itself ends in ``text``, or where ``text`` is no JSON.
    """
    parts = text.replace("\\\\", "__").replace('\\"', "__").split('"')  # structure and strings by turns
    depth = _opened("".join(parts[::2]))
    end, looked_at = len(text), 0
    for index in reversed(range(len(parts))):
        part = parts[index]
        end -= len(part)
        stop = len(part) if index % 2 == 0 else 0
        while stop and looked_at < _MOST_LOOKED_AT:
            comma = part.rfind(",", 0, stop)
            depth -= _opened(part[max(comma, 0) : stop])
            if comma >= 0 and depth == 0:
                return end + comma
            stop = max(comma, 0)
            looked_at += 1
        if looked_at == _MOST_LOOKED_AT:
            break
        end -= 1  # the quote before this part
    return 0


def _opened(structure: str) -> int:
    opened = structure.count("[") + structure.count("{")
    return opened - structure.count("]") - structure.count("}")


def _open_at_end(text: str) -> list[int]:
    """Where the arrays and objects begin that ``text``, which begins outside of strings, does not end."""
    places: list[int] = []
    for found in _STRING_OR_BRACKET.finditer(text):
        if found[0] in "[{":
            places.append(found.start())
        elif found[0] in "]}" and places:
            places.pop()
    return places
