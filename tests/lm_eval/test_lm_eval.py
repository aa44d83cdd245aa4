"""lm-evaluation-harness against a running gateway: its own model class, requests as token ids in batches.

Needs the extra ``lm-eval``; no hub is asked: tasks, data and tokenizer are local.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from server.model import embedded_model
from tests.clients.gateways import Gateway

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1")  # read when the harness is imported
lm_eval = pytest.importorskip("lm_eval")
tasks = pytest.importorskip("lm_eval.tasks")
models = pytest.importorskip("lm_eval.models.openai_completions")
instances = pytest.importorskip("lm_eval.api.instance")

HERE = Path(__file__).parent
EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "lm-eval"
CONTEXT = 2048
MARKER = "[gMASK]<sop><|user|>"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    gateway = Gateway("--engine", "reference", "--max-tokens", "64")
    yield f"{gateway.url}/v1/completions"
    assert gateway.close() == 0
    refusals = [line for line in gateway.lines if "outcome=refused" in line and "/v1/completions" in line]
    assert refusals == []  # the harness would only have retried


def options(url: str) -> dict[str, Any]:
    return {
        "model": "nano",
        "base_url": url,
        "tokenizer": str(embedded_model()),
        "max_length": CONTEXT,
        "max_retries": 1,
    }


def evaluate(
    url: str, batch_size: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> dict[str, list[Any]]:
    """Task → its samples, in the order of the documents."""
    monkeypatch.chdir(HERE)  # the tasks name their data relative to themselves
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path)
    found = lm_eval.simple_evaluate(
        model="local-completions",
        model_args=options(url),
        tasks=["colibri_sums", "colibri_answers"],
        task_manager=tasks.TaskManager(include_path=str(HERE), include_defaults=False),
        batch_size=batch_size,
        bootstrap_iters=0,
    )
    return {
        task: sorted(samples, key=lambda sample: sample["doc_id"])
        for task, samples in found["samples"].items()
    }


def test_the_task_of_the_documentation_runs_from_end_to_end(
    url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """B57: the accuracy the harness tells is that of the choice it scored highest."""
    monkeypatch.chdir(EXAMPLE.parents[2])  # the task names its data from the top of the checkout
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path)
    found = lm_eval.simple_evaluate(
        model="local-completions",
        model_args=options(url),
        tasks=["capitals"],
        task_manager=tasks.TaskManager(include_path=str(EXAMPLE), include_defaults=False),
        batch_size=4,
        bootstrap_iters=0,
    )
    right = [
        max(range(len(sample["resps"])), key=lambda place: sample["resps"][place][0][0]) == sample["target"]
        for sample in found["samples"]["capitals"]
    ]
    assert len(right) == 3
    assert found["results"]["capitals"]["acc,none"] == pytest.approx(sum(right) / len(right))


def test_a_whole_evaluation_scores_as_it_generates_and_batches_change_nothing(
    url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    single = evaluate(url, 1, monkeypatch, tmp_path)
    batched = evaluate(url, 3, monkeypatch, tmp_path)
    greedy = 0
    for scored, in_batch, answered in zip(
        single["colibri_sums"], batched["colibri_sums"], single["colibri_answers"], strict=True
    ):
        scores = [response[0] for response in scored["resps"]]
        for (value, flag), (other, other_flag) in zip(
            scores, (response[0] for response in in_batch["resps"]), strict=True
        ):
            assert value == pytest.approx(other, abs=1e-5)
            assert flag == other_flag
            assert value < 0
        generated = answered["resps"][0][0]
        for choice, (_, flag) in zip(scored["doc"]["choices"], scores, strict=True):
            assert flag == (generated == choice), (choice, generated)  # B57: greedy is what greedy makes
            greedy += flag
    assert greedy > 0
    assert [sample["resps"] for sample in batched["colibri_answers"]] == [
        sample["resps"] for sample in single["colibri_answers"]
    ]


def test_b73_rolling_windows_fill_the_context_to_its_last_token(url: str) -> None:
    model = models.LocalCompletionsAPI(**options(url), batch_size=2)
    text = " ".join(f"{number} + {number} = {2 * number}." for number in range(1, 500))
    tokens = model.tok_encode(text)
    assert len(tokens) > CONTEXT
    (whole,) = model.loglikelihood_rolling([instances.Instance("loglikelihood_rolling", {}, (text,), 0)])
    assert -20 * len(tokens) < whole < 0


def test_b55_and_b56_the_score_of_a_continuation_is_the_sum_over_its_tokens(url: str) -> None:
    model = models.LocalCompletionsAPI(**options(url), batch_size=1)
    context = model.tok_encode(f"{MARKER}what is 2 + 2?<|assistant|><think></think>")
    continuation = model.tok_encode("2 + 2 = 4.")
    asked = [
        (("", f"token {place}"), context + continuation[:place], continuation[place : place + 1])
        for place in range(len(continuation))
    ]
    (whole, greedy), *parts = model._loglikelihood_tokens([(("", "whole"), context, continuation), *asked])
    assert whole == pytest.approx(sum(value for value, _ in parts), abs=1e-4)
    assert greedy == all(flag for _, flag in parts)
