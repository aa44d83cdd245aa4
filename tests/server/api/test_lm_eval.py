"""The evaluation harness lm-eval against a running gateway: `local-completions`, a local task, no hub.

Needs the extra `lm-eval`; skipped without it. docs/lm-eval.md shows the same run by hand.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from server.model import embedded_model

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "lm-eval"


@pytest.fixture(scope="module")
def offline() -> Any:
    """No look at any hub: tokenizer and data are files here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("HF_DATASETS_OFFLINE", "1")
        yield


@pytest.fixture(scope="module")
def language_model(offline: Any, real_gateway: Any) -> Any:
    completions = pytest.importorskip(
        "lm_eval.models.openai_completions", reason="the extra `lm-eval` is not installed"
    )
    context = real_gateway.get("/v1/models").json["data"][0]["context_length"]
    return completions.LocalCompletionsAPI(
        model="test-model",
        base_url=f"http://127.0.0.1:{real_gateway.port}/v1/completions",
        tokenizer=str(embedded_model()),
        tokenizer_backend="huggingface",
        batch_size=4,
        max_length=context,
    )


def requests(kind: str, *arguments: tuple[Any, ...]) -> list[Any]:
    instance = pytest.importorskip("lm_eval.api.instance").Instance
    return [instance(kind, {}, given, index) for index, given in enumerate(arguments)]


def test_b55_and_b57_continuations_are_scored_and_the_likelier_one_is_greedy(language_model: Any) -> None:
    pairs = [("The capital of France is", " Paris."), ("The capital of France is", " Berlin.")]
    (paris, greedy), (berlin, other) = language_model.loglikelihood(requests("loglikelihood", *pairs))
    assert 0 > paris > berlin
    assert (greedy, other) == (True, False)


def test_b72_a_batch_scores_like_its_members_alone(language_model: Any) -> None:
    pairs = [("2 + 2 =", f" {number}") for number in range(6)]
    together = language_model.loglikelihood(requests("loglikelihood", *pairs))
    alone = [language_model.loglikelihood(requests("loglikelihood", pair))[0] for pair in pairs]
    for (value, greedy), (single, single_greedy) in zip(together, alone, strict=True):
        assert math.isclose(value, single, abs_tol=1e-5)
        assert greedy == single_greedy


def test_rolling_scores_and_generation_work(language_model: Any) -> None:
    text = "The capital of France is Paris."
    (rolling,) = language_model.loglikelihood_rolling(requests("loglikelihood_rolling", (text,)))
    assert math.isfinite(rolling) and rolling < 0
    options = {"until": ["."], "max_gen_toks": 8}
    (generated,) = language_model.generate_until(requests("generate_until", (text[:-7], options)))
    assert generated == " Paris"


def test_the_local_task_of_the_documentation_runs_from_end_to_end(
    language_model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluator = pytest.importorskip("lm_eval.evaluator")
    tasks = pytest.importorskip("lm_eval.tasks").TaskManager(
        include_path=str(EXAMPLE), include_defaults=False
    )
    monkeypatch.chdir(EXAMPLE.parents[2])  # the task names its data from the top of the checkout
    result = evaluator.simple_evaluate(
        model=language_model, tasks=["capitals"], task_manager=tasks, bootstrap_iters=0, log_samples=False
    )
    assert result["results"]["capitals"]["acc,none"] == 1.0
