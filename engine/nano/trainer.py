"""The training run itself (needs torch): optimisers, schedule, steps, saved state, export.

Muon moves the matrices of the layers, AdamW the rest. The rate rises for the first 3 % of the steps, stays,
and falls linearly to zero; then it begins once more, high, and falls to zero again. The model is the mean of
the two low points: where it was tried (``REPORT.md``) it was better than either. A run stopped at any moment
goes on from its last saved state.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import torch
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from safetensors.torch import load_file
from tokenizers import Tokenizer

from engine.nano import WEIGHTS_FILE
from engine.nano.documents import Stream
from engine.nano.layout import END_TOKENS
from engine.nano.muon import Muon
from engine.nano.processes import Team
from engine.nano.shards import Rows, make_rows
from engine.nano.tokenizer_training import save_tokenizer, train_tokenizer
from engine.nano.torch_model import GlmModel, Shape, save_checkpoint, weighted_loss

SHORT_LENGTH: Final = 512
LONG_LENGTH: Final = 2048
LONG_BATCH: Final = 2
LONG_EVERY: Final = 4
"""Every fourth step sees rows of the full context; without them the model fails beyond 512 tokens."""
WARM_UP_SHARE: Final = 0.03
AGAIN_RATE: Final = 0.85
"""The factor of the rate from which it falls for the second time."""
VALIDATION_ROWS: Final = 24
VALIDATION_BATCH: Final = 4
VALIDATION_SEED: Final = 1_000_000
LOG_EVERY: Final = 50


@dataclass(frozen=True)
class Settings:
    """What defines a run; a stored state may only be resumed with the same seed."""

    steps: int
    seed: int
    muon_rate: float
    adam_rate: float
    decay_share: float
    again_share: float
    batch: int
    compiled: bool
    work: Path
    start_from: Path | None
    save_seconds: float
    stop_after: float | None


class Rates:
    """The learning-rate factor of a step: warm-up, plateau, linear fall to zero, and a shorter fall again.

    ``low`` is the number of steps after which the factor is at zero for the first time.
    """

    def __init__(self, settings: Settings) -> None:
        self._steps = settings.steps
        self.low = settings.steps - int(settings.steps * settings.again_share)
        self._warm_up = max(int(self.low * WARM_UP_SHARE), 1)
        self._decay = max(int(self.low * settings.decay_share), 1)

    def factor(self, step: int) -> float:
        """Between 0 and 1 for steps 0 … steps - 1."""
        if step >= self.low:
            return AGAIN_RATE * (self._steps - step) / (self._steps - self.low)
        return min((step + 1) / self._warm_up, 1.0, (self.low - step) / self._decay)


def product_type() -> torch.dtype:
    """bfloat16 where the processor has it; elsewhere it would take ten times as long as float32."""
    return torch.bfloat16 if torch.ops.mkldnn._is_mkldnn_bf16_supported() else torch.float32


def mixed_precision() -> torch.autocast:
    """The context in which products are of ``product_type``."""
    return torch.autocast("cpu", dtype=torch.bfloat16, enabled=product_type() is torch.bfloat16)


def build_optimisers(model: GlmModel, settings: Settings) -> list[torch.optim.Optimizer]:
    """Muon for the matrices of the layers, AdamW for embedding, norms and biases."""
    matrices = [value for name, value in model.named_parameters() if value.dim() == 2 and "embed" not in name]
    others = [value for name, value in model.named_parameters() if value.dim() != 2 or "embed" in name]
    return [
        Muon(matrices, settings.muon_rate, momentum=0.95, weight_decay=0.1, precision=product_type()),
        torch.optim.AdamW(others, lr=settings.adam_rate, betas=(0.9, 0.98), weight_decay=0.0),
    ]


def prepare(settings: Settings) -> tuple[Tokenizer, Rows, Rows, Rows]:
    """(tokenizer, short, long, validation rows), enough for one pass; kept in the work directory."""
    seed, work = settings.seed, settings.work
    if not (work / "tokenizer.json").exists():
        save_tokenizer(train_tokenizer(), work)
    tokenizer = Tokenizer.from_file(str(work / "tokenizer.json"))
    long_steps = settings.steps // LONG_EVERY + 1
    sizes = {
        "short": ((settings.steps - long_steps + 2) * settings.batch, SHORT_LENGTH, seed),
        "long": (long_steps * LONG_BATCH, LONG_LENGTH, seed),
        "validation": (VALIDATION_ROWS, SHORT_LENGTH, seed + VALIDATION_SEED),
    }
    rows = {}
    with Progress(disable=not sys.stderr.isatty()) as progress:
        for name, (count, length, stream_seed) in sizes.items():
            task = progress.add_task(f"{name} rows", total=1.0)
            path = work / f"{name}-{count}-{seed}.npz"
            if not path.exists():
                report = partial(_show_share, progress, task)
                stream = Stream.LONG if name == "long" else Stream.SHORT
                make_rows(tokenizer, stream_seed, count, length, stream, report).save(path)
            rows[name] = Rows.load(path)
    return tokenizer, rows["short"], rows["long"], rows["validation"]


def _show_share(progress: Progress, task: TaskID, share: float) -> None:
    progress.update(task, completed=share)


class Trainer:
    """One run: model, optimisers, rows and the step it has reached."""

    def __init__(self, settings: Settings, team: Team) -> None:
        self.settings, self.team = settings, team
        _, self.short, self.long, self.validation = prepare(settings)
        self.model = GlmModel(Shape(), settings.seed)
        self._optimisers = build_optimisers(self.model, settings)
        self._loss = torch.compile(weighted_loss, dynamic=False) if settings.compiled else weighted_loss
        self.rates = Rates(settings)
        self._low: dict[str, torch.Tensor] | None = None
        self.step, self._state = 0, settings.work / "state.pt"
        if self._state.exists():
            self._resume()
        elif settings.start_from is not None:
            stored = load_file(settings.start_from / WEIGHTS_FILE)
            self.model.load_state_dict({name: value.float() for name, value in stored.items()})

    def _resume(self) -> None:
        state: dict[str, Any] = torch.load(self._state, weights_only=True)
        if state["seed"] != self.settings.seed:
            raise ValueError(f"{self._state} belongs to seed {state['seed']}")
        self.model.load_state_dict(state["model"])
        for optimiser, stored in zip(self._optimisers, state["optimisers"], strict=True):
            optimiser.load_state_dict(stored)
        self.step, self._low = state["step"], state["low"]

    def save_state(self) -> None:
        """Write everything that is needed to go on; a crash in between leaves the last state whole."""
        state = {
            "seed": self.settings.seed,
            "step": self.step,
            "model": self.model.state_dict(),
            "low": self._low,
            "optimisers": [optimiser.state_dict() for optimiser in self._optimisers],
        }
        torch.save(state, self._state.with_suffix(".new"))
        os.replace(self._state.with_suffix(".new"), self._state)

    def take_step(self) -> float:
        """One update by all processes; returns the training loss of this process's share in nats."""
        if self.step % LONG_EVERY == LONG_EVERY - 1:
            arrays = self.long.batch(self.step // LONG_EVERY, LONG_BATCH)
        else:
            arrays = self.short.batch(self.step - self.step // LONG_EVERY, self.settings.batch)
        share = slice(self.team.rank, None, self.team.size)
        inputs, targets, weights = (torch.from_numpy(array[share].copy()) for array in arrays)
        factor = self.rates.factor(self.step)
        for optimiser, rate in zip(
            self._optimisers, (self.settings.muon_rate, self.settings.adam_rate), strict=True
        ):
            for group in optimiser.param_groups:
                group["lr"] = rate * factor
        with mixed_precision():
            loss: torch.Tensor = self._loss(self.model, inputs, targets, weights)
        loss.backward()
        self.team.average(value.grad for value in self.model.parameters() if value.grad is not None)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for optimiser in self._optimisers:
            optimiser.step()
            optimiser.zero_grad()
        self.step += 1
        if self.step == self.rates.low:
            self._low = {name: value.clone() for name, value in self.model.state_dict().items()}
        return float(loss.detach())

    def finish(self) -> None:
        """Put the mean of the two low points in the place of the last weights."""
        if self._low is not None:
            last = self.model.state_dict()
            self.model.load_state_dict({name: (last[name] + self._low[name]) / 2 for name in last})

    def validate(self) -> float:
        """Loss in nats per token the model has to write itself, on documents of another seed."""
        total, count = 0.0, 0.0
        with torch.no_grad(), mixed_precision():
            for number in range(VALIDATION_ROWS // VALIDATION_BATCH):
                inputs, targets, weights = (
                    torch.from_numpy(array) for array in self.validation.batch(number, VALIDATION_BATCH)
                )
                answer = (weights > 0.9).float()
                total += float(weighted_loss(self.model, inputs, targets, answer)) * float(answer.sum())
                count += float(answer.sum())
        return total / count

    def log(self, loss: float, speed: float) -> None:
        """One line; every tenth with the validation loss."""
        factor = self.rates.factor(self.step - 1)
        line = f"step {self.step} loss {loss:.4f} rate {factor:.3f} steps/s {speed:.3f}"
        if self.step % (10 * LOG_EVERY) == 0:
            line += f" validation {self.validate():.4f}"
        print(line, flush=True)


def export_checkpoint(model: GlmModel, work: Path, directory: Path) -> None:
    """Write the checkpoint directory an engine loads; ``work`` holds the tokenizer files of the run."""
    tokenizer = Tokenizer.from_file(str(work / "tokenizer.json"))
    vocabulary: dict[str, int] = tokenizer.get_vocab(with_added_tokens=True)
    save_checkpoint(model, directory, [vocabulary[token] for token in END_TOKENS])
    if directory.resolve() != work.resolve():
        for name in ("tokenizer.json", "tokenizer_config.json"):
            (directory / name).write_bytes((work / name).read_bytes())


def run(trainer: Trainer) -> None:
    """Train to the last step, or until ``stop_after`` seconds of this process have passed."""
    settings, first = trainer.settings, trainer.step
    started = saved = time.monotonic()
    smooth = 0.0
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[loss]}"),
    )
    with Progress(*columns, disable=not (trainer.team.leads and sys.stderr.isatty())) as progress:
        task = progress.add_task("training", total=settings.steps, completed=first, loss="")
        while trainer.step < settings.steps:
            loss = trainer.take_step()
            smooth = loss if trainer.step == first + 1 else 0.98 * smooth + 0.02 * loss
            progress.update(task, completed=trainer.step, loss=f"loss {smooth:.3f}")
            if trainer.step % LOG_EVERY:
                continue
            now = time.monotonic()
            if trainer.team.leads:
                trainer.log(smooth, (trainer.step - first) / (now - started))
                if now - saved > settings.save_seconds:
                    trainer.save_state()
                    saved = now
            over = settings.stop_after is not None and now - started > settings.stop_after
            if trainer.team.agree(over):
                break
    if trainer.team.leads:
        trainer.save_state()
        print(f"step {trainer.step} validation {trainer.validate():.4f}", flush=True)


def train(settings: Settings, output: Path, threads: int, team: Team) -> None:
    """The whole run of one process; the leading one writes ``output`` when the last step is done."""
    torch.set_num_threads(threads)
    trainer = Trainer(settings, team)
    run(trainer)
    if team.leads and trainer.step >= settings.steps:
        trainer.finish()
        print(f"mean of the low points: validation {trainer.validate():.4f}", flush=True)
        export_checkpoint(trainer.model, settings.work, output)
        print(f"wrote {output}", flush=True)
    elif team.leads:
        print("stopped early; the same command goes on", flush=True)
