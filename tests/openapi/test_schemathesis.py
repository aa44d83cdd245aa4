"""The generated OpenAPI document and the running gateway say the same: requests made from the one, sent to
the other, every check of schemathesis on. `invoke evidence` runs more seeds, longer, and the stateful phase.
"""

from __future__ import annotations

import importlib.util
import json
import os

import pytest

from .running import ROOT, document_for, run

# asked for, not imported: it runs in a process of its own
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("schemathesis") is None, reason="the extra `clients` is not installed"
)

LONG = int(os.environ.get("SCHEMATHESIS_SECONDS", "0"))  # set by `invoke evidence`
SEEDS = (1, 2, 3) if LONG else (1,)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", SEEDS)
def test_every_answer_is_what_the_document_says(gateway, tmp_path, seed):
    if LONG:
        options = ("--max-time", str(LONG))
    else:
        options = ("--phases", "examples,coverage,fuzzing", "--max-examples", "5")
    done = run(gateway.url, "nano", tmp_path, seed, *options)
    assert done.passed, done.output
    assert done.requests > 500
    assert "Tested: 12" in done.output


def test_a_document_that_promises_too_much_is_found(gateway, tmp_path, monkeypatch):
    """The harness can fail: a value the server refuses, and an answer of another type."""
    document = document_for("nano")
    schemas = document["components"]["schemas"]
    schemas["AnthropicThinking"]["properties"]["type"] = {"const": "sometimes"}
    schemas["TokenCount"]["properties"]["input_tokens"] = {"type": "string"}
    monkeypatch.setattr("tests.openapi.running.document_for", lambda model: document)
    options = ("--phases", "examples,coverage", "--include-path", "/v1/messages/count_tokens")
    done = run(gateway.url, "nano", tmp_path, 1, *options)
    assert not done.passed
    assert "refused although valid: : thinking" in done.output
    assert 'is not of type "string"' in done.output


def test_the_document_asks_for_the_served_model_only_in_the_test():
    document = json.loads((ROOT / "generated" / "openapi.json").read_text())
    assert document_for("nano") != document
    assert document["components"]["schemas"]["CompletionsRequest"]["properties"]["model"]["type"] == "string"
