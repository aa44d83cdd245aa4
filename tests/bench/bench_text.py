"""What the text pipeline adds to a token, what it makes of hostile text, and what rendering a prompt costs.

    python tests/bench/bench_text.py [--quick] [--json FILE]

CPU seconds of this process, the best of several rounds. Hostile text is a megabyte of nothing but markers
and their beginnings (tests/server/text/bodies.py) behind several starts, in one piece and in single bytes.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from rich.progress import track

from generated.families import FAMILIES
from server.chat import ChatRenderer, choose_tools, read_messages, read_tools, resolve_thinking
from server.text import Thinking, Utf8Decoder
from tests.bench.bench_gateway import ROOT, Row, machine, show
from tests.server.chat.conversations import long_conversation
from tests.server.text.bodies import BODIES, MEGABYTE, STARTS, filled, glm

TEMPLATE: Final = ROOT / "engine" / "nano" / "model" / "chat_template.jinja"


def best(work: Callable[[], object], rounds: int) -> float:
    """CPU seconds of the quickest of `rounds`."""
    found = []
    for _ in range(rounds):
        before = time.process_time()
        work()
        found.append(time.process_time() - before)
    return min(found)


def fed(pieces: Sequence[bytes], thinking: Thinking = Thinking.OFF) -> None:
    pipeline = glm(thinking)
    for piece in pieces:
        pipeline.feed(piece)
    pipeline.finish()


def decoded(pieces: Sequence[bytes]) -> None:
    decoder = Utf8Decoder()
    for piece in pieces:
        decoder.feed(piece)


def token_cost(tokens: int) -> list[Row]:
    """A plain token through every stage, beside the same bytes decoded alone."""
    rows = []
    for name, token in (("word", b" token"), ("single byte", b"x"), ("three-byte character", "€".encode())):
        pieces = [token] * tokens
        alone, through = (best(partial(work, pieces), 5) / tokens * 1e6 for work in (decoded, fed))
        over = through - alone
        rows.append(
            Row(f"a {name} over decoding it: µs", f"{over:.2f}", "<= 3", over <= 3, f"alone {alone:.2f}")
        )
    return rows


def hostile(share: int) -> list[Row]:
    """The slowest of all bodies and starts; of single bytes `1 / share` is fed and the time scaled up."""
    whole: list[tuple[float, str]] = []
    single: list[tuple[float, str]] = []
    cases = [(body, start) for body in BODIES for start in STARTS]
    for body, start in track(cases, "hostile text", disable=not sys.stderr.isatty()):
        thinking, opening = STARTS[start]
        data = filled(opening, BODIES[body])
        whole.append((best(partial(fed, [data], thinking), 3), f"{body}, {start}"))
        pieces = [data[place : place + 1] for place in range(MEGABYTE // share)]
        single.append((share * best(partial(fed, pieces, thinking), 2), f"{body}, {start}"))
    rows = []
    for name, found, target in (("one piece", whole, 0.2), ("single bytes", single, 2.0)):
        ordered = sorted(found)
        slowest, case = ordered[-1]
        middle = ordered[len(ordered) // 2][0]
        rows += [
            Row(f"1 MB in {name}, slowest of {len(found)}: s", f"{slowest:.2f}", f"<= {target}",
                slowest <= target, case),
            Row(f"1 MB in {name}, median: s", f"{middle:.3f}", "", None),
        ]  # fmt: skip
    return rows


def rendering() -> list[Row]:
    """A conversation of 200 messages with 20 tools, in both ways to render a glm prompt."""
    family = FAMILIES["glm"]
    messages, tools = long_conversation()
    read, use = read_messages(messages), choose_tools(read_tools({"tools": tools}), None, family)
    thinking = resolve_thinking(None, None, family)
    own = {"default": TEMPLATE.read_text("utf-8")}
    rows = []
    for name, renderer in (
        ("built-in layout", ChatRenderer(family)),
        ("the model's template", ChatRenderer(family, own)),
    ):
        cost = best(partial(renderer.prompt, read, use, thinking), 10) * 1e3
        rows.append(Row(f"200 messages, 20 tools, {name}: ms", f"{cost:.1f}", "<= 15", cost <= 15))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="What text costs between the engine and the client.")
    parser.add_argument("--quick", action="store_true", help="an eighth of the work: a smoke test")
    parser.add_argument("--json", type=Path, default=ROOT / ".bench" / "text.json")
    options = parser.parse_args()
    before = machine()
    share = 16 if options.quick else 2
    show("Text", [*token_cost(200_000 // share), *rendering(), *hostile(share)], before, options.json)


if __name__ == "__main__":
    main()
