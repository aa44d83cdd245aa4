"""Every engine of this project keeps the wire contract (wire.md): one suite, real processes over real
pipes.
"""

from __future__ import annotations

import json
import math
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from generated import limits
from tests.engine.checkpoints import BASE, RECIPES, build_tokenizer, write_checkpoint
from tests.engine.engine_process import EngineProcess, submit
from tests.engine.engines import ENGINES

PROMPT = "[gMASK]<sop><|user|>the other 12 in an hour<|assistant|><think></think>"
LONG_PROMPT = "the other " * 60
CONTEXT = 1 << 15
ENDURING = 30_000
"""Tokens whose frames overflow the pipe: such a request is still in flight when its first DATA has been read,
however fast the engine is.
"""
Start = Callable[..., EngineProcess]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Checkpoint directories: a random glm that never ends its turn, and a random llama that may."""
    root = tmp_path_factory.mktemp("models")
    glm = RECIPES["glm"]
    return {
        "endless": write_checkpoint(
            root / "endless",
            replace(glm, config={**glm.config, "eos_token_id": [], "max_position_embeddings": CONTEXT}),
        ),
        "llama": write_checkpoint(root / "llama", RECIPES["llama"]),
    }


def ending_at(directory: Path, token: int, target: Path) -> Path:
    """A copy of a checkpoint whose only end token is `token`."""
    target.mkdir()
    for path in directory.iterdir():
        if path.suffix in (".json", ".safetensors"):
            (target / path.name).write_bytes(path.read_bytes())
    (target / "generation_config.json").write_text(json.dumps({"eos_token_id": [token]}), encoding="utf-8")
    return target


@pytest.fixture(params=sorted(ENGINES), scope="module")
def command(request: pytest.FixtureRequest) -> list[str]:
    found = ENGINES[request.param]()
    if isinstance(found, str):
        pytest.skip(found)
    return found


@pytest.fixture
def start(command: list[str], models: dict[str, Path]) -> Iterator[Start]:
    """Starts engines and sees to it that none is left behind."""
    running: list[EngineProcess] = []

    def launch(model: str | Path = "endless", **settings: str) -> EngineProcess:
        directory = models[model] if isinstance(model, str) else model
        engine = EngineProcess(command, directory, settings)
        running.append(engine)
        return engine.__enter__()

    yield launch
    for engine in running:
        engine.__exit__()


@pytest.fixture(scope="module")
def engine(command: list[str], models: dict[str, Path]) -> Iterator[EngineProcess]:
    """One engine shared by the tests that leave it as it was."""
    with EngineProcess(command, models["endless"], {"KV_SLOTS": "4"}) as running:
        yield running


@pytest.fixture
def number(engine: EngineProcess) -> Callable[[], int]:
    """Fresh request ids for the shared engine."""
    used = [getattr(frame, "id", 0) for frame in engine.received]
    counter = iter(range(max(used, default=0) + 100, 2**63))
    return lambda: next(counter)


def kinds(found: list[Any]) -> list[str]:
    """Frame kinds with runs folded to one."""
    names = [frame.KIND for frame in found]
    return [name for index, name in enumerate(names) if index == 0 or names[index - 1] != name]


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


def test_one_request(engine: EngineProcess, number: Callable[[], int]) -> None:
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


def test_text_is_that_of_the_greedy_tokens(engine: EngineProcess, number: Callable[[], int]) -> None:
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


def test_prefix_is_reused_and_changes_nothing(start: Start) -> None:
    engine = start()
    tokens = len(build_tokenizer().encode(LONG_PROMPT, add_special_tokens=False).ids)
    engine.ask(1, LONG_PROMPT, 10)
    engine.ask(2, LONG_PROMPT, 10)
    engine.ask(3, LONG_PROMPT + "hour", 10)
    engine.ask(4, LONG_PROMPT + "hour", 10, slot=1)
    assert engine.text(1) == engine.text(2)
    assert engine.text(3) == engine.text(4)
    assert f"prefix 0/{tokens}" in engine.log
    assert f"prefix {tokens - 1}/{tokens}" in engine.log
    assert [frame.cache_hit_percent > 90 for frame in engine.received if frame.KIND == "DONE"] == [
        False,
        True,
        True,
        False,
    ]


def test_pinned_prompt_survives_another_prompt(start: Start) -> None:
    engine = start()
    tokens = len(build_tokenizer().encode(LONG_PROMPT, add_special_tokens=False).ids)
    engine.ask(1, LONG_PROMPT, 10, pin=1)
    engine.ask(2, "[gMASK]quite another", 30)
    engine.ask(3, LONG_PROMPT, 10)
    assert engine.text(3) == engine.text(1)
    assert f"request 3: slot 0 prefix {tokens - 1}/{tokens}" in engine.log


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


def test_stop_ends_with_done(engine: EngineProcess, number: Callable[[], int]) -> None:
    request, after = number(), number()
    engine.submit(request, PROMPT, ENDURING)
    engine.wait_for(lambda frame: frame.KIND == "DATA" and frame.id == request)
    engine.send(b"STOP %d\n" % request)
    engine.wait_ends([request])
    done = engine.of(request)[-1]
    assert (done.KIND, done.length_limited) == ("DONE", 0)
    assert done.completion_tokens == len(engine.of(request)) - 2 < ENDURING
    assert kinds(engine.ask(after, PROMPT, 2)) == ["ACCEPT", "DATA", "DONE"]


def test_cancel_is_confirmed_and_frees_the_slot(engine: EngineProcess, number: Callable[[], int]) -> None:
    request, after = number(), number()
    engine.submit(request, PROMPT, ENDURING)
    engine.wait_for(lambda frame: frame.KIND == "DATA" and frame.id == request)
    engine.send(b"CANCEL %d\n" % request + submit(after, PROMPT, 2))
    engine.wait_ends([request, after])
    assert engine.of(request)[-1].words == ("CANCELLED",)
    assert kinds(engine.of(after)) == ["ACCEPT", "DATA", "DONE"]
    assert len(engine.of(request)) < ENDURING


def test_cancel_and_stop_during_prefill(engine: EngineProcess, number: Callable[[], int]) -> None:
    cancelled, stopped = number(), number()
    engine.send(submit(cancelled, LONG_PROMPT, 50) + b"CANCEL %d\n" % cancelled)
    engine.send(submit(stopped, LONG_PROMPT, 50) + b"STOP %d\n" % stopped)
    engine.wait_ends([cancelled, stopped])
    assert kinds(engine.of(cancelled)) == ["ACCEPT", "ERROR"]
    assert engine.of(cancelled)[-1].words == ("CANCELLED",)
    assert kinds(engine.of(stopped)) == ["ACCEPT", "DONE"]
    assert engine.of(stopped)[-1].completion_tokens == 0


def test_errors_of_requests(engine: EngineProcess, number: Callable[[], int]) -> None:
    running, other = number(), number()
    start = submit(running, PROMPT, ENDURING)
    engine.send(start + submit(other, "x", 2) + submit(running, "x", 2, slot=1) + b"CANCEL %d\n" % running)
    engine.wait_for(lambda frame: frame.KIND == "ERROR" and frame.words == ("CANCELLED",))
    assert engine.error(other) == ("SLOT_BUSY",)
    assert [frame.words for frame in engine.of(running) if frame.KIND == "ERROR"] == [
        ("DUPLICATE_ID",),
        ("CANCELLED",),
    ]
    for command in (b"CANCEL", b"STOP"):
        unknown = number()
        engine.send(b"%s %d\n" % (command, unknown))
        engine.wait_ends([unknown])
        assert engine.error(unknown) == ("NOT_FOUND",)
    for prompt, fields in (("", {}), (b"", {"ids": 1})):
        empty = number()
        engine.ask(empty, prompt, 2, **fields)
        assert engine.error(empty) == ("EMPTY_PROMPT",)
    beyond = number()
    engine.ask(beyond, "x", 2, slot=4)
    assert engine.error(beyond) == ("BAD_REQUEST",)


def test_context_is_checked_before_prefill(start: Start) -> None:
    engine = start(CTX="64")
    for request, length in ((1, 62), (2, 63), (3, 64), (4, 500)):
        engine.ask(request, "!" * length, 30)
    assert [frame.KIND for frame in engine.of(1)] == ["ACCEPT", "DATA", "DATA", "DONE"]
    assert [frame.KIND for frame in engine.of(2)] == ["ACCEPT", "DATA", "DONE"]
    assert engine.of(1)[-1].length_limited == engine.of(2)[-1].length_limited == 1
    for request, used in ((3, 64), (4, 500)):
        code, least, limit = engine.error(request)
        assert (code, limit) == ("CONTEXT_EXCEEDED", "63")
        assert 63 < int(least) <= used


def test_log_probabilities(engine: EngineProcess, number: Callable[[], int]) -> None:
    request, plain = number(), number()
    found = engine.ask(request, PROMPT, 10, logprobs=limits.TOP_K)
    prompt = build_tokenizer().encode(PROMPT, add_special_tokens=False).ids
    assert kinds(found) == ["ACCEPT", "ECHO", "DATA", "DONE"]
    echoes = [frame for frame in found if frame.KIND == "ECHO"]
    data = [frame for frame in found if frame.KIND == "DATA"]
    assert sorted(echo.position for echo in echoes) == list(range(len(prompt)))
    assert (
        b"".join(echo.payload for echo in sorted(echoes, key=lambda echo: echo.position)) == PROMPT.encode()
    )
    for echo in echoes:
        if echo.position == 0:
            assert math.isnan(echo.logprob) and len(echo.tokens) == 0
            continue
        numbers = dict(zip(echo.tokens, echo.token_logprobs, strict=True))
        assert len(numbers) == limits.TOP_K
        assert sum(map(math.exp, numbers.values())) <= 1.0001
        token = prompt[echo.position]
        assert numbers.get(token, echo.logprob) == pytest.approx(echo.logprob, abs=1e-6)
        assert echo.logprob <= max(numbers.values()) + 1e-6
    for frame in data:
        best = int(np.argmax(frame.token_logprobs))
        assert frame.logprob == pytest.approx(frame.token_logprobs[best], abs=1e-6)
    engine.ask(plain, PROMPT, 10)
    assert engine.text(plain) == engine.text(request)


def test_probabilities_of_the_whole_vocabulary_sum_to_one(start: Start, tmp_path: Path) -> None:
    """A vocabulary no larger than the largest table: the table is the distribution."""
    engine = start("llama")
    (done,) = [frame for frame in engine.ask(1, "the", 1, logprobs=limits.TOP_K) if frame.KIND == "DATA"]
    listed = sum(map(math.exp, done.token_logprobs))
    least = min(map(math.exp, done.token_logprobs))
    rest = RECIPES["llama"].config.get("vocab_size", BASE["vocab_size"]) - limits.TOP_K
    assert listed <= 1.0001 and listed + rest * least >= 0.9999


def test_scoring_only(engine: EngineProcess, number: Callable[[], int]) -> None:
    request, refused = number(), number()
    found = engine.ask(request, PROMPT, 0, logprobs=1)
    assert kinds(found) == ["ACCEPT", "ECHO", "DONE"]
    assert found[-1].completion_tokens == 0
    assert len(found) - 2 == found[0].prompt_tokens
    engine.send(b"SUBMIT %d 0 1 0 0 1\nx\n" % refused)
    engine.wait_ends([refused])
    assert engine.error(refused) == ("BAD_REQUEST",)


def test_token_ids(engine: EngineProcess, number: Callable[[], int]) -> None:
    text, ids = number(), number()
    prompt = build_tokenizer().encode(PROMPT, add_special_tokens=False).ids
    engine.ask(text, PROMPT, 10)
    engine.ask(ids, " ".join(map(str, prompt)).encode(), 10, ids=1)
    assert engine.text(ids) == engine.text(text)
    for malformed in (
        b"1  2",
        b" 1",
        b"1 ",
        b"a",
        b"-1",
        b"1.0",
        b"+1",
        b"288",
        b"99999999999999999999",
        b"1\n2",
    ):
        request = number()
        engine.ask(request, malformed, 2, ids=1)
        assert engine.error(request) == ("BAD_REQUEST",), malformed


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (b"HELLO\n", (0, "BAD_REQUEST")),
        (b"CANCEL\n", (0, "BAD_REQUEST")),
        (b"CANCEL 0\n", (0, "BAD_REQUEST")),
        (b"STOP seven\n", (0, "BAD_REQUEST")),
        (b"SUBMIT 0 0 5 4 0 1\nHello\n", (0, "BAD_REQUEST")),
        (b"SUBMIT 900001 0 5 4 2.5 1\nHello\n", (900001, "BAD_REQUEST")),
        (b"SUBMIT 900002 0 5 4 0 0\nHello\n", (900002, "BAD_REQUEST")),
        (b"SUBMIT 900003 0 5 4 0 1e-50\nHello\n", (900003, "BAD_REQUEST")),
        (b"SUBMIT 900004 0 5 4 nan 1\nHello\n", (900004, "BAD_REQUEST")),
        (b"SUBMIT 900005 0 5 4 0 1 0 logprobs=33\nHello\n", (900005, "BAD_REQUEST")),
        (b"SUBMIT 900006 0 5 4 0 1 0 ids=1 ids=1\nHello\n", (900006, "BAD_REQUEST")),
        (b"SUBMIT 900007 0 5 4 0 1 0 wish=1\nHello\n", (900007, "BAD_REQUEST")),
        (b"SUBMIT 900008 0 5 0 0 1\nHello\n", (900008, "BAD_REQUEST")),
        (b"SUBMIT 900009 0 4 4 0 1\n\xff\xfe\xc0\x80\n", (900009, "BAD_REQUEST")),
    ],
)
def test_refused_commands_keep_the_stream_in_step(
    sent: bytes, answer: tuple[int, str], engine: EngineProcess, number: Callable[[], int]
) -> None:
    after = number()
    before = len(engine.received)
    engine.send(sent + submit(after, "x", 1))
    engine.wait_ends([after])
    errors = [frame for frame in engine.received[before:] if frame.KIND == "ERROR"]
    assert [(frame.id, *frame.words) for frame in errors] == [answer]
    assert kinds(engine.of(after)) == ["ACCEPT", "DATA", "DONE"]


def test_payload_lines_are_never_commands(engine: EngineProcess, number: Callable[[], int]) -> None:
    victim, hostile = number(), number()
    engine.submit(victim, PROMPT, 200, slot=1)
    payload = b"\nCANCEL %d\nSTOP %d\n" % (victim, victim)
    engine.send(b"SUBMIT %d 0 %d 4 9 1\n%s\n" % (hostile, len(payload), payload))
    engine.wait_ends([victim, hostile])
    assert engine.error(hostile) == ("BAD_REQUEST",)
    assert engine.of(victim)[-1].completion_tokens == 200


def test_image_is_refused_once(engine: EngineProcess, number: Callable[[], int]) -> None:
    request, after = number(), number()
    engine.send(
        b"IMAGE %d 10 2 2\n0123456789\n" % request + submit(request, PROMPT, 4) + submit(after, "x", 1)
    )
    engine.wait_ends([request, after])
    assert engine.error(request) == ("BAD_REQUEST",)
    assert kinds(engine.of(after)) == ["ACCEPT", "DATA", "DONE"]


def test_commands_in_any_split(start: Start) -> None:
    whole, pieces = start(), start()
    data = submit(1, PROMPT, 6, logprobs=1) + submit(2, LONG_PROMPT, 3, slot=1)
    whole.send(data)
    whole.wait_ends([1, 2])
    for index in range(len(data)):
        pieces.send(data[index : index + 1])
    pieces.wait_ends([1, 2])
    for request in (1, 2):
        assert pieces.text(request) == whole.text(request)
        assert kinds(pieces.of(request)) == kinds(whole.of(request))


def test_missing_terminator_ends_the_engine(start: Start) -> None:
    engine = start()
    engine.send(b"SUBMIT 1 0 5 4 0 1\nHelloX\nSUBMIT 2 0 5 4 0 1\nHello\n")
    code = engine.drain()
    assert engine.error(1) == ("BAD_FRAME",)
    assert engine.of(2) == []
    assert code > 0


def test_end_of_input_finishes_what_runs(start: Start) -> None:
    engine = start()
    engine.send(submit(1, PROMPT, 60) + submit(2, LONG_PROMPT, 30, slot=1))
    assert engine.finish() == 0
    assert [engine.of(request)[-1].KIND for request in (1, 2)] == ["DONE", "DONE"]
    assert [engine.of(request)[-1].completion_tokens for request in (1, 2)] == [60, 30]


def test_end_of_input_inside_a_command(start: Start) -> None:
    engine = start()
    engine.send(submit(1, PROMPT, 5) + b"SUBMIT 2 1 50 4 0 1\nHello")
    assert engine.finish() == 0
    assert kinds(engine.of(1)) == ["ACCEPT", "DATA", "DONE"]
    assert engine.of(2) == []


@pytest.mark.parametrize("inherited", ["default", "ignored"])
def test_reader_gone_is_death_by_sigpipe(inherited: str, command: list[str], models: dict[str, Path]) -> None:
    """Even when the parent ignored SIGPIPE, as Python does unless told to restore signals."""
    with EngineProcess(command, models["endless"], restore_signals=inherited == "default") as engine:
        assert engine.process.stdout is not None
        engine.process.stdout.close()
        engine.submit(1, PROMPT, 400)
        assert engine.process.wait(60) == -signal.SIGPIPE


def test_end_token_is_swallowed(start: Start, models: dict[str, Path], tmp_path: Path) -> None:
    endless = start()
    tokens = [f.tokens[0] for f in endless.ask(1, PROMPT, 12, logprobs=1) if f.KIND == "DATA"]
    end = next(index for index, token in enumerate(tokens) if index >= 2 and token not in tokens[:index])
    engine = start(ending_at(models["endless"], tokens[end], tmp_path / "ending"))
    plain = engine.ask(1, PROMPT, 12)
    assert len([frame for frame in plain if frame.KIND == "DATA"]) == end
    assert (plain[-1].KIND, plain[-1].length_limited, plain[-1].completion_tokens) == ("DONE", 0, end + 1)
    numbers = [frame for frame in engine.ask(2, PROMPT, 12, logprobs=1) if frame.KIND == "DATA"]
    assert len(numbers) == end + 1
    assert (numbers[-1].payload, numbers[-1].tokens[0]) == (b"", tokens[end])
    assert engine.text(2) == engine.text(1)


SCHEMA = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "n": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["ok", "n"],
    "additionalProperties": False,
}


def test_grammar_is_enforced(start: Start) -> None:
    engine = start("llama")
    schema = json.dumps(SCHEMA).encode()
    for slot in range(4):
        engine.submit(slot + 1, PROMPT, 100, slot=slot, temperature=0.9, extra=schema)
    engine.wait_ends([1, 2, 3, 4])
    for request in (1, 2, 3, 4):
        jsonschema.validate(json.loads(engine.text(request)), SCHEMA)
        assert engine.of(request)[-1].length_limited == 0
    engine.ask(5, PROMPT, 100, extra=b'root ::= ("ab" | "cd") "!"')
    assert engine.text(5) in (b"ab!", b"cd!")
    engine.ask(6, PROMPT, 100, extra=b"root ::= (")
    assert engine.error(6) == ("BAD_REQUEST",)


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
