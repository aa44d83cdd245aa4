"""schemathesis against a live gateway, from the generated document."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
REFINED = ("positive_data_acceptance", "negative_data_rejection")
"""Checks that tests/openapi/checks.py replaces by ones that know what the notation cannot say."""

OUTCOME = re.compile(r"([\d,]+) generated")


@dataclass(frozen=True)
class Run:
    """One run: whether it passed, how many requests it made, and all it printed."""

    passed: bool
    requests: int
    output: str


def document_for(model: str) -> dict[str, Any]:
    """The generated document with the served model's id put in, so that requests come further than the 404 of
    an unknown model.
    """
    document = json.loads((ROOT / "generated" / "openapi.json").read_text())
    schemas = document["components"]["schemas"]
    for path, item in document["paths"].items():
        for operation in item.values():
            if "{id}" in path:
                operation["parameters"][0]["schema"] = {"enum": [model]}
            if "requestBody" not in operation:
                continue
            content = operation["requestBody"]["content"]["application/json"]
            for example in content["examples"].values():
                example["value"]["model"] = model
            fields = schemas[content["schema"]["$ref"].rpartition("/")[2]]["properties"]
            fields["model"] = {"const": model}
    return document


def run(url: str, model: str, directory: Path, seed: int, *options: str) -> Run:
    """All checks of schemathesis, with the given seed."""
    schema = directory / "openapi.json"
    schema.write_text(json.dumps(document_for(model)))
    command = [
        *(sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()"),
        *("run", str(schema), "--url", url, "--seed", str(seed), "--checks", "all"),
        *("--exclude-checks", ",".join(REFINED), "--continue-on-failure"),
        *("--generation-database", "none", "--no-color", *options),
    ]
    environment = {**os.environ, "SCHEMATHESIS_HOOKS": str(Path(__file__).with_name("checks.py"))}
    done = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    found = OUTCOME.search(done.stdout)
    return Run(
        done.returncode == 0, int(found[1].replace(",", "")) if found else 0, done.stdout + done.stderr
    )
