"""Examine the embedded model through a real engine process and write the table of its report.

``python -m engine.nano.evaluate --help``. Every answer is greedy; "exact" means the whole answer is right,
character for character, and the model ended its turn itself.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.progress import Progress
from tokenizers import Tokenizer

from engine.nano import MODEL_DIRECTORY
from engine.nano.engine_client import REFERENCE_ENGINE, EngineProcess
from engine.nano.examination import (
    Question,
    Verdict,
    chat_questions,
    context_questions,
    equation_questions,
    judge,
    tool_questions,
)

REPORT_START: Final = "<!-- examination: written by engine.nano.evaluate -->"
REPORT_END: Final = "<!-- end of examination -->"


@dataclass
class Score:
    """Sums over the questions of one task and mode."""

    asked: int = 0
    exact: int = 0
    form: int = 0
    ended: int = 0

    def add(self, verdict: Verdict) -> None:
        """Count one verdict."""
        self.asked += 1
        self.exact += verdict.exact
        self.form += verdict.form
        self.ended += verdict.ended

    def share(self) -> float:
        """Exactly right answers, 0 … 1."""
        return self.exact / self.asked


Scores = dict[tuple[str, str], Score]


@dataclass(frozen=True)
class Failure:
    """A wrong answer, kept for the reader of the log."""

    question: Question
    text: str


def examine(
    engine: EngineProcess, questions: Sequence[Question], show: bool = False
) -> tuple[Scores, list[Failure]]:
    """Ask every question; scores by (task, mode), and the wrong answers."""
    scores: Scores = defaultdict(Score)
    failures = []
    with Progress(disable=not show) as progress:
        task = progress.add_task("questions", total=len(questions))
        answers = engine.answer(
            [(question.prompt, question.max_tokens) for question in questions],
            lambda count: progress.update(task, completed=count),
        )
    for question, answer in zip(questions, answers, strict=True):
        verdict = judge(question, answer.text, answer.ended)
        scores[question.task, question.mode].add(verdict)
        if not verdict.exact:
            failures.append(Failure(question, answer.text))
    return dict(scores), failures


def markdown_table(scores: Scores) -> str:
    """One row a task; columns are the modes that were asked."""
    modes = sorted({mode for _, mode in scores})
    tasks = list(dict.fromkeys(task for task, _ in scores))
    lines = [
        "| task | n | " + " | ".join(f"{mode} exact | {mode} form" for mode in modes) + " |",
        "|---|---|" + "---|---|" * len(modes),
    ]
    for task in tasks:
        cells = []
        for mode in modes:
            score = scores.get((task, mode))
            cells += [f"{score.share():.3f}", f"{score.form / score.asked:.3f}"] if score else ["", ""]
        asked = max(score.asked for (name, _), score in scores.items() if name == task)
        lines.append(f"| {task} | {asked} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def ended_share(scores: Iterable[Score]) -> float:
    """Turns the model ended by itself."""
    listed = list(scores)
    return sum(score.ended for score in listed) / sum(score.asked for score in listed)


def gather_questions(model: Path, count: int) -> list[tuple[str, list[Question]]]:
    """The sections of the examination: (heading, questions)."""
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))

    def length(text: str) -> int:
        return len(tokenizer.encode(text, add_special_tokens=False).ids)

    return [
        ("Chat", list(chat_questions(count))),
        ("Tools", list(tool_questions(count))),
        ("Long contexts", list(context_questions(max(count // 5, 2), length))),
        ("Raw completion", list(equation_questions(count))),
    ]


def renew_report(path: Path, text: str) -> None:
    """Replace what stands between the two markers of a report; raises ValueError when a marker is missing."""
    before, start, rest = path.read_text(encoding="utf-8").partition(REPORT_START)
    _, end, after = rest.partition(REPORT_END)
    if not (start and end):
        raise ValueError(f"{path} has no {REPORT_START} … {REPORT_END}")
    path.write_text(f"{before}{start}\n{text}\n{end}{after}", encoding="utf-8")


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m engine.nano.evaluate", description="Examine the embedded model through a real engine."
    )
    parser.add_argument("--model", type=Path, default=MODEL_DIRECTORY, help="checkpoint directory")
    parser.add_argument(
        "--count", type=int, default=500, help="questions per task and mode (default: %(default)s)"
    )
    parser.add_argument("--slots", type=int, default=8, help="requests in flight (default: %(default)s)")
    parser.add_argument(
        "--engine", type=shlex.split, default=REFERENCE_ENGINE, help="command that starts the engine"
    )
    parser.add_argument(
        "--report", type=Path, default=None, help="file whose tables between the markers are renewed"
    )
    parser.add_argument("--failures", type=int, default=0, help="wrong answers to print per section")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Print the tables of the report."""
    options = parse_arguments(arguments)
    total: list[Score] = []
    sections: list[str] = []
    with EngineProcess(options.model, options.slots, options.engine) as engine:
        for heading, questions in gather_questions(options.model, options.count):
            scores, failures = examine(engine, questions, show=sys.stderr.isatty())
            total += scores.values()
            sections.append(f"### {heading}\n\n{markdown_table(scores)}")
            print(sections[-1] + "\n", flush=True)
            for failure in failures[: options.failures]:
                tail = failure.question.prompt[-120:]
                right = failure.question.expected
                print(f"{failure.question.task}: {tail!r} -> {failure.text!r}, not {right!r}")
    sections.append(f"Turns ended by the model itself: {ended_share(total):.4f}")
    print(sections[-1])
    if options.report is not None:
        renew_report(options.report, "\n\n".join(sections))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
