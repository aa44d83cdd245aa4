"""Large texts come out as the standard decoder has them, value or fault, wherever their windows end."""

from __future__ import annotations

import gc
import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from server import json_pieces
from server.http import task
from server.json_pieces import LargeDict, LargeList, decode
from server.json_values import rewritten

ROOT = Path(__file__).parents[2]

KEYS = ['"a"', '"a"', '"b"', '""', '"\\""', '"]"']
LEAVES = [
    "1",
    "-2.5e3",
    '"x"',
    '"\\\\"',
    '"\\"[{"',
    '"é😀"',
    "null",
    "true",
    '"\\u00e9"',
    "9" * 30,
    '""',
    "0.5",
]
WRONG = ["", ",", "[", "]", "{", "}", '"', ":", "\\", " ", "1", "\n", "NaN", "1e999", "tru"]


def refused(word: str) -> None:
    raise ValueError(word)


STANDARD = json.JSONDecoder(parse_constant=refused)


def random_json(chosen: random.Random, levels: int) -> str:
    def blank() -> str:
        return chosen.choice(["", "", " ", "\n  "])

    kind = chosen.random()
    if not levels or kind > 0.7:
        return chosen.choice([*LEAVES, f'"{"y" * 30}"'])
    members = [random_json(chosen, levels - 1) + blank() for _ in range(chosen.randrange(5))]
    if kind < 0.35:
        return f"[{blank()}{f',{blank()}'.join(members)}]"
    named = [f"{chosen.choice(KEYS)}{blank()}:{blank()}{member}" for member in members]
    return f"{{{blank()}{f',{blank()}'.join(named)}}}"


def outcome(read: Callable[[], Any]) -> object:
    """The value as written, so that 1 and true differ, or the fault and its place."""
    try:
        return json.dumps(read())
    except json.JSONDecodeError as fault:
        return fault.msg, fault.pos, fault.lineno, fault.colno
    except ValueError as fault:
        return str(fault)


@pytest.mark.parametrize("window", [1, 2, 5, 9, 17, 40, 100])
def test_any_text_comes_out_as_from_the_standard_decoder(
    monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    chosen = random.Random(window)
    faults = 0
    for _ in range(1000):
        text = random_json(chosen, 6)
        for _ in range(chosen.choice([0, 0, 1, 2, 3])):
            place, gone = chosen.randrange(len(text) + 1), chosen.choice([0, 1, 1, 2])
            text = text[:place] + chosen.choice(WRONG) + text[place + gone :]
        monkeypatch.setattr(json_pieces, "_SHORTEST_REACH", chosen.choice([2, 4, 16, 64]))
        expected = outcome(lambda text=text: STANDARD.decode(text))
        assert outcome(lambda text=text: decode(text, STANDARD, window)) == expected, (text, window)
        faults += not isinstance(expected, str)
    assert 100 < faults < 900


@pytest.mark.parametrize("size", range(1, 8))
@pytest.mark.parametrize("number", ["1e+5", "-1.5E-7", "12.5", "-0", "1e+,"])
def test_a_number_that_a_window_cuts_is_read_whole(number: str, size: int) -> None:
    text = f"[[{number},{number}]]"
    assert outcome(lambda: decode(text, STANDARD, size)) == outcome(lambda: STANDARD.decode(text))


class Counting(json.JSONDecoder):
    """A decoder that counts the characters it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = self.calls = 0

    def decode(self, s: str, *rest: Any) -> Any:
        self.seen += len(s)
        self.calls += 1
        return super().decode(s, *rest)


@pytest.mark.parametrize("member", ["[]", "1", '""', '{"a":1}', "[[[[1]]]]", '{"type":"text","text":"a, b"}'])
@pytest.mark.parametrize("around", ['{"x":[MEMBERS]}', "[[MEMBERS],[MEMBERS]]", '[{"y":[MEMBERS]},1]'])
def test_small_members_are_decoded_many_at_a_time_and_once(member: str, around: str) -> None:
    """In vain is decoded less than half of it: two windows or so for each container that ends."""
    members = ",".join([member] * (300_000 // len(member)))
    text = around.replace("MEMBERS", members)
    decoder = Counting()
    assert decode(text, decoder) == json.loads(text)
    assert decoder.seen < 1.5 * len(text)
    assert decoder.calls < 200


def test_what_is_longer_than_a_window_is_large_and_nothing_else() -> None:
    value = decode('{"a":[[1,2],[3,4],{"b":"' + "x" * 200 + '"}]}', STANDARD, 100)
    assert type(value) is LargeDict
    assert type(value["a"]) is LargeList
    assert [type(member) for member in value["a"]] == [list, list, LargeDict]
    assert type(rewritten(value, str)["a"]) is LargeList
    assert rewritten(value, lambda leaf: leaf) == value


@pytest.fixture
def eventually() -> Iterator[Callable[[Callable[[], bool]], bool]]:
    def wait(met: Callable[[], bool]) -> bool:
        end = time.monotonic() + 20
        while not met() and time.monotonic() < end:
            threading.Event().wait(0.01)
        return met()

    yield wait


class Marked(str):
    """A text whose end is seen."""

    alive = 0

    def __init__(self, *_: object) -> None:
        type(self).alive += 1

    def __del__(self) -> None:
        type(self).alive -= 1


def test_large_values_are_freed_to_the_last_member(eventually: Callable[[Callable[[], bool]], bool]) -> None:
    value = decode("[" * 300 + '{"a":[' + "1," * 500 + "1]}" + "]" * 300, STANDARD, 50)
    inner = value
    while type(inner) is LargeList:
        inner.append(Marked("outer"))
        inner = inner[0]
    inner["a"] += [Marked("inner") for _ in range(1000)]
    assert Marked.alive == 1300
    del value, inner
    assert eventually(lambda: Marked.alive == 0)


class Holding(LargeList):
    """Holds the thread up that frees it."""

    reached = threading.Event()
    go_on = threading.Event()

    def free_some(self) -> bool:
        self.reached.set()
        self.go_on.wait(60)
        return super().free_some()


@pytest.fixture
def freeing_held(eventually: Callable[[Callable[[], bool]], bool]) -> Iterator[threading.Event]:
    """Nothing is freed, and nothing else waits to be, until the event is set."""
    Holding.reached.clear()
    Holding.go_on.clear()
    Holding()
    assert Holding.reached.wait(60)
    assert eventually(lambda: json_pieces._memory.discarded.qsize() == 0)
    yield Holding.go_on
    Holding.go_on.set()


def test_a_decoding_waits_while_many_containers_are_to_be_freed(
    freeing_held: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many threads decode and one frees: whoever sends large bodies would fill the memory."""
    freed = json_pieces._memory._freed
    wait = freed.wait
    waits = threading.Event()

    def wait_seen(timeout: float | None = None) -> bool:
        waits.set()
        return wait(timeout)

    monkeypatch.setattr(freed, "wait", wait_seen)
    text = "[" + "1," * 100 + "1]"
    for _ in range(json_pieces._MOST_DISCARDED):
        assert len(decode(text, STANDARD, 50)) == 101  # and is discarded
    assert len(decode(text, STANDARD, 50)) == 101
    assert not waits.is_set()
    decoded: list[Any] = []
    thread = threading.Thread(target=lambda: decoded.append(decode(text, STANDARD, 50)), daemon=True)
    thread.start()
    assert waits.wait(60)
    assert decoded == []
    freeing_held.set()
    thread.join(60)
    assert decoded == [[1] * 101]


def test_what_the_loop_of_the_server_decodes_itself_never_waits() -> None:
    """No body that it hands to a handler is as long as a window, so none of them is decoded in pieces."""
    assert task._SHORT < json_pieces.WINDOW


def test_where_there_is_no_thread_to_free_in_the_decoding_threads_free_until_there_is_one(
    monkeypatch: pytest.MonkeyPatch,
    eventually: Callable[[Callable[[], bool]], bool],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """And say so once: whoever sends large bodies would fill the log."""
    gc.collect()  # what an exception of an earlier test still holds would be counted here when it goes
    memory = json_pieces._Memory()
    monkeypatch.setattr(json_pieces, "_memory", memory)
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    text = "[" + "1," * 100 + "1]"
    for _ in range(3 * json_pieces._MOST_DISCARDED):
        assert len(decode(text, STANDARD, 50)) == 101
    assert memory.discarded.qsize() == json_pieces._MOST_DISCARDED + 1
    assert [record.getMessage() for record in caplog.records] == [
        "no thread to free large JSON texts: can't start new thread"
    ]
    monkeypatch.setattr(threading.Thread, "start", start)
    assert len(decode(text, STANDARD, 50)) == 101
    assert eventually(lambda: memory._containers == 0)


class Faulty(LargeList):
    """Cannot be freed a few members at a time."""

    def free_some(self) -> bool:
        raise MemoryError("no room for a slice")


def test_a_fault_while_one_is_freed_costs_nobody_the_thread_that_frees(
    eventually: Callable[[Callable[[], bool]], bool], caplog: pytest.LogCaptureFixture
) -> None:
    """Every later decoding would wait for it, for ever."""
    memory = json_pieces._memory
    before = memory._containers
    faulty = Faulty()
    faulty.append(Marked("inner"))
    del faulty
    assert eventually(lambda: memory._containers <= before)
    assert Marked.alive == 0
    assert "no room for a slice" in caplog.text

    def decode_many() -> None:
        for _ in range(3 * json_pieces._MOST_DISCARDED):
            assert len(decode("[" + "1," * 100 + "1]", STANDARD, 50)) == 101

    thread = threading.Thread(target=decode_many, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    assert eventually(lambda: memory._containers <= before)
    assert memory._thread is not None and memory._thread.is_alive()


def test_the_collector_never_sees_what_a_large_text_holds_and_goes_on_afterwards(
    eventually: Callable[[Callable[[], bool]], bool],
) -> None:
    assert gc.isenabled()
    frozen = gc.get_freeze_count()
    collections = [generation["collections"] for generation in gc.get_stats()]
    value = decode("[" + "[]," * 200_000 + "[]]", STANDARD)
    assert [generation["collections"] for generation in gc.get_stats()] == collections
    assert gc.isenabled()
    assert gc.get_freeze_count() >= frozen + 200_000
    del value
    assert eventually(lambda: gc.get_freeze_count() <= frozen)


def test_the_collector_goes_on_also_where_the_last_value_went_while_another_text_was_decoded(
    eventually: Callable[[Callable[[], bool]], bool],
) -> None:
    """The other one has no large value of its own, whose end would be looked at."""
    memory = json_pieces._memory
    assert eventually(lambda: memory._containers == 0)
    frozen = gc.get_freeze_count()
    value = decode("[" + "[]," * 200_000 + "[]]", STANDARD)
    with memory.uncollected():
        del value
        assert eventually(lambda: memory._containers == 0)
        assert gc.get_freeze_count() > frozen
    assert gc.get_freeze_count() <= frozen
    assert gc.isenabled()


def test_a_faulty_text_leaves_the_collector_as_it_was() -> None:
    gc.disable()
    try:
        with pytest.raises(json.JSONDecodeError):
            decode("[" + "1," * 1000 + "x]", STANDARD, 100)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_process_that_ends_with_texts_still_to_be_freed_says_nothing() -> None:
    program = """
import json
from server import json_pieces
json_pieces._Memory._start = lambda self: None  # the system refuses a thread
large = "[" + "[]," * 60_000 + "[]]"
json_pieces.decode(f"[{large},{large}]", json.JSONDecoder())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
