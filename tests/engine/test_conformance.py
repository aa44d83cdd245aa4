"""Every engine of this project keeps the wire contract (wire.md): one suite, real processes over real
pipes. Here: the life of a request, from the handshake to its end, alone and among others.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.engine.checkpoints import build_tokenizer
from tests.engine.conformance import CONTEXT, ENDURING, LONG_PROMPT, PROMPT, Number, Start, kinds
from tests.engine.engine_process import EngineProcess, submit


def test_handshake(start: Start) -> None:
    engine = start()
    assert b"\x01\x01READY\x01\x01\nSTAT " in bytes(engine.raw)
    ready = engine.received[0]
    assert (ready.completion_tokens, ready.tokens_per_second) == (0, 0.0)
    assert ready.rss_gb > 0
    assert engine.finish() == 0
    assert [frame.KIND for frame in engine.received[1:]] == ["HWINFO", "TIERS"]
    hardware, tiers = engine.received[1:]
    assert hardware.cores >= 1 and hardware.ram_total_gb >= hardware.ram_available_gb > 0
    assert (hardware.gpus, hardware.vram_total_gb) == (0, 0)
    assert (tiers.vram, tiers.ram, tiers.disk, tiers.vram_gb, tiers.ram_gb) == (0, 0, 0, 0, 0)


def test_one_request(engine: EngineProcess, number: Number) -> None:
    request = number()
    before = len(engine.received)
    found = engine.ask(request, PROMPT, 12)
    assert kinds(found) == ["ACCEPT", "DATA", "DONE"]
    prompt_tokens = len(build_tokenizer().encode(PROMPT, add_special_tokens=False).ids)
    accept, *pieces, done = found
    assert accept.prompt_tokens == done.prompt_tokens == prompt_tokens
    assert len(pieces) == done.completion_tokens == 12
    assert done.length_limited == 1
    assert done.tokens_per_second > 0
    assert all(piece.logprob is None for piece in pieces)
    telemetry = [frame.KIND for frame in engine.received[before:] if not hasattr(frame, "id")]
    assert telemetry == ["HWINFO", "TIERS", "PROF"]
    (profile,) = [frame for frame in engine.received[before:] if frame.KIND == "PROF"]
    assert profile.completion_tokens == 12 and profile.forwards == 12
    assert 0 < profile.matmul_s + profile.attention_s + profile.head_s <= profile.wall_s
    assert profile.disk_s == 0


def test_text_is_that_of_the_greedy_tokens(engine: EngineProcess, number: Number) -> None:
    request, again = number(), number()
    found = engine.ask(request, PROMPT, 30, logprobs=1)
    tokens = [frame.tokens[0] for frame in found if frame.KIND == "DATA"]
    prompt = build_tokenizer().encode(PROMPT, add_special_tokens=False).ids
    ids = " ".join(map(str, [*prompt, *tokens[:10]])).encode()
    engine.ask(again, ids, 20, ids=1)
    assert engine.text(request) == b"".join(f.payload for f in found if f.KIND == "DATA")
    assert engine.text(request).endswith(engine.text(again)) and engine.text(again)


def test_batch_composition_changes_nothing(start: Start) -> None:
    prompts = ["the other", PROMPT, LONG_PROMPT, "é 12 日本"]
    alone = start()
    expected = []
    for index, prompt in enumerate(prompts):
        alone.ask(index + 1, prompt, 40 + 10 * index)
        expected.append(alone.text(index + 1))
    together = start()
    together.send(b"".join(submit(i + 1, p, 40 + 10 * i, slot=3 - i) for i, p in enumerate(prompts)))
    together.wait_ends(range(1, 5))
    assert [together.text(index + 1) for index in range(4)] == expected
    order = [frame.id for frame in together.received if frame.KIND == "DATA"]
    first, last = order.index(4), len(order) - 1 - order[::-1].index(1)
    assert first < last, "requests were not generated side by side"


def all_but_one(tokens: int) -> float:
    """Hits in percent when a whole prompt is known: its last token is computed all the same."""
    return 100 * (tokens - 1) / tokens


def test_prefix_is_reused_and_changes_nothing(start: Start) -> None:
    engine = start()
    tokens = len(build_tokenizer().encode(LONG_PROMPT, add_special_tokens=False).ids)
    engine.ask(1, LONG_PROMPT, 10)
    engine.ask(2, LONG_PROMPT, 10)
    engine.ask(3, LONG_PROMPT + "hour", 10)
    engine.ask(4, LONG_PROMPT + "hour", 10, slot=1)
    assert engine.text(1) == engine.text(2)
    assert engine.text(3) == engine.text(4)
    hits = [frame.cache_hit_percent for frame in engine.received if frame.KIND == "DONE"]
    assert hits[0] == hits[3] == 0 and hits[2] > 90
    assert hits[1] == pytest.approx(all_but_one(tokens), abs=0.1)


def test_pinned_prompt_survives_another_prompt(start: Start) -> None:
    engine = start()
    tokens = len(build_tokenizer().encode(LONG_PROMPT, add_special_tokens=False).ids)
    engine.ask(1, LONG_PROMPT, 10, pin=1)
    engine.ask(2, "[gMASK]quite another", 30)
    engine.ask(3, LONG_PROMPT, 10)
    assert engine.text(3) == engine.text(1)
    assert engine.of(3)[-1].cache_hit_percent == pytest.approx(all_but_one(tokens), abs=0.1)


def test_seed_decides_samples(start: Start) -> None:
    texts = []
    for seed in ("5", "5", "6"):
        engine = start(SEED=seed)
        engine.ask(1, PROMPT, 20, temperature=1.0)
        texts.append(engine.text(1))
    assert texts[0] == texts[1] != texts[2]


def test_sampling_is_independent_of_the_batch(start: Start) -> None:
    alone, together = start(), start()
    alone.ask(1, PROMPT, 30, temperature=1.0, top_p=0.9)
    together.send(b"".join(submit(i, PROMPT, 30, slot=i - 1, temperature=1.0, top_p=0.9) for i in (1, 2, 3)))
    together.wait_ends([1, 2, 3])
    assert together.text(1) == alone.text(1)
    assert len({together.text(1), together.text(2), together.text(3)}) == 3


def test_stop_ends_with_done(engine: EngineProcess, number: Number) -> None:
    request, after = number(), number()
    engine.submit(request, PROMPT, ENDURING)
    engine.wait_for(lambda frame: frame.KIND == "DATA" and frame.id == request)
    engine.send(b"STOP %d\n" % request)
    engine.wait_ends([request])
    done = engine.of(request)[-1]
    assert (done.KIND, done.length_limited) == ("DONE", 0)
    assert done.completion_tokens == len(engine.of(request)) - 2 < ENDURING
    assert kinds(engine.ask(after, PROMPT, 2)) == ["ACCEPT", "DATA", "DONE"]


def test_cancel_is_confirmed_and_frees_the_slot(engine: EngineProcess, number: Number) -> None:
    request, after = number(), number()
    engine.submit(request, PROMPT, ENDURING)
    engine.wait_for(lambda frame: frame.KIND == "DATA" and frame.id == request)
    engine.send(b"CANCEL %d\n" % request + submit(after, PROMPT, 2))
    engine.wait_ends([request, after])
    assert engine.of(request)[-1].words == ("CANCELLED",)
    assert kinds(engine.of(after)) == ["ACCEPT", "DATA", "DONE"]
    assert len(engine.of(request)) < ENDURING


def test_cancel_and_stop_during_prefill(engine: EngineProcess, number: Number) -> None:
    cancelled, stopped = number(), number()
    engine.send(submit(cancelled, LONG_PROMPT, 50) + b"CANCEL %d\n" % cancelled)
    engine.send(submit(stopped, LONG_PROMPT, 50) + b"STOP %d\n" % stopped)
    engine.wait_ends([cancelled, stopped])
    assert kinds(engine.of(cancelled)) == ["ACCEPT", "ERROR"]
    assert engine.of(cancelled)[-1].words == ("CANCELLED",)
    assert kinds(engine.of(stopped)) == ["ACCEPT", "DONE"]
    assert engine.of(stopped)[-1].completion_tokens == 0


@pytest.mark.parametrize(("command_name", "answer"), [(b"CANCEL", "ERROR"), (b"STOP", "DONE")])
def test_a_long_prefill_is_left_at_once(command_name: bytes, answer: str, start: Start) -> None:
    """The scores of the whole prompt overflow the pipe, so the command arrives while they are being made."""
    engine = start()
    prompt = " ".join(["5"] * (CONTEXT - 1)).encode()
    engine.submit(1, prompt, 1, ids=1, logprobs=1)
    engine.wait_for(lambda frame: frame.KIND == "ECHO")
    engine.send(b"%s 1\n" % command_name + submit(2, PROMPT, 2))
    engine.wait_ends([1, 2])
    assert kinds(engine.of(1)) == ["ACCEPT", "ECHO", answer]
    accept, *echoes, last = engine.of(1)
    assert accept.prompt_tokens == CONTEXT - 1
    assert len(echoes) < accept.prompt_tokens / 2
    if answer == "ERROR":
        assert last.words == ("CANCELLED",)
    else:
        assert (last.completion_tokens, last.length_limited) == (0, 0)
    assert kinds(engine.of(2)) == ["ACCEPT", "DATA", "DONE"]


def test_sixteen_slots_generate_side_by_side(start: Start) -> None:
    engine = start(KV_SLOTS="16")
    engine.send(b"".join(submit(slot + 1, PROMPT, 40, slot=slot) for slot in range(16)))
    engine.wait_ends(range(1, 17))
    order = [frame.id for frame in engine.received if frame.KIND == "DATA"]
    assert order.index(16) < len(order) - 1 - order[::-1].index(1), "not side by side"
    assert {engine.text(request) for request in range(1, 17)} == {engine.text(1)}
    assert all(engine.of(request)[-1].completion_tokens == 40 for request in range(1, 17))
    engine.ask(17, PROMPT, 2, slot=16)
    assert engine.error(17) == ("BAD_REQUEST",)


def test_idle_engine_uses_no_processor_time(start: Start) -> None:
    """Waiting for a command is sleeping: no frames, no ticks of user time."""
    if not os.path.exists("/proc/self/stat"):
        pytest.skip("no /proc to read processor time from")
    engine = start()
    engine.ask(1, "x", 1)

    def ticks() -> int:
        fields = (
            Path(f"/proc/{engine.process.pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
        )
        return int(fields[11]) + int(fields[12])

    first = ticks()
    time.sleep(0.3)
    assert ticks() - first <= 1
