"""Run lm-eval as docs/lm-eval.md describes it and put the tables into that page.

    .venv/bin/python tests/lm_eval/remake_tables.py

After a change of the embedded model. Needs the extra ``lm-eval``; no hub is asked.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1")  # read when the harness is imported
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import lm_eval  # noqa: E402
from lm_eval.tasks import TaskManager  # noqa: E402
from lm_eval.utils import make_table  # noqa: E402

from server.model import embedded_model  # noqa: E402
from tests.clients.gateways import Gateway  # noqa: E402

PAGE = ROOT / "docs" / "lm-eval.md"
HERE = Path(__file__).resolve().parent
RUNS = (
    (ROOT, ROOT / "docs" / "examples" / "lm-eval", ["capitals"], 4, 512),
    (HERE, HERE, ["colibri_sums", "colibri_answers"], 3, 2048),
)
"""Directory to run in, where the tasks are, the tasks, batch size, context: one run a table of the page."""


def table(url: str, run: tuple[Path, Path, list[str], int, int]) -> str:
    """What the harness prints for one run."""
    directory, tasks, names, batch_size, context = run
    os.chdir(directory)  # the tasks name their data from here
    results = lm_eval.simple_evaluate(
        model="local-completions",
        model_args={
            "model": "nano",
            "base_url": f"{url}/v1/completions",
            "tokenizer": str(embedded_model()),
            "tokenizer_backend": "huggingface",
            "max_length": context,
        },
        tasks=names,
        task_manager=TaskManager(include_path=str(tasks), include_defaults=False),
        batch_size=batch_size,
    )
    return make_table(results).strip()


def main() -> None:
    gateway = Gateway("--engine", "reference")
    try:
        tables = iter([table(gateway.url, run) for run in RUNS])
    finally:
        gateway.close()
    page = PAGE.read_text(encoding="utf-8")
    page, count = re.subn(
        r"```text\n\|.*?\n```", lambda _: f"```text\n{next(tables)}\n```", page, flags=re.DOTALL
    )
    if count != len(RUNS):
        raise SystemExit(f"{PAGE} has {count} tables, and {len(RUNS)} were made")
    PAGE.write_text(page, encoding="utf-8")
    print(f"{count} tables in {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
