"""Data-parallel training in a few single-threaded processes of one machine.

A model this small gains little from threads inside an operation, so each process takes its share of every
batch and the gradients are averaged once a step. All processes hold the same weights at all times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import torch
from torch import distributed, multiprocessing


class Team:
    """This process among its peers; ``size`` 1 is a run without peers."""

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank, self.size = rank, size

    @property
    def leads(self) -> bool:
        """True in the one process that writes files and log lines."""
        return self.rank == 0

    def average(self, values: Iterable[torch.Tensor]) -> None:
        """Replace every tensor by its mean over the processes."""
        if self.size == 1:
            return
        tensors = list(values)
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        distributed.all_reduce(flat)
        flat /= self.size
        for tensor, part in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
            tensor.copy_(part.view_as(tensor))

    def agree(self, decision: bool) -> bool:
        """The decision of the leading process, in all of them."""
        if self.size == 1:
            return decision
        flag = torch.tensor(int(decision))
        distributed.broadcast(flag, 0)
        return bool(flag.item())

    def wait(self) -> None:
        """Return when every process has come here."""
        if self.size > 1:
            distributed.barrier()


def _worker(rank: int, size: int, meeting: str, work: Callable[[Team], None]) -> None:
    distributed.init_process_group("gloo", init_method=meeting, rank=rank, world_size=size)
    try:
        work(Team(rank, size))
    finally:
        distributed.destroy_process_group()


def run_in_processes(size: int, directory: Path, work: Callable[[Team], None]) -> None:
    """Call ``work`` in ``size`` processes, or right here for one; a failure of one ends all."""
    if size == 1:
        work(Team())
        return
    meeting = directory.resolve() / "meeting"
    directory.mkdir(parents=True, exist_ok=True)
    meeting.unlink(missing_ok=True)
    multiprocessing.spawn(_worker, args=(size, meeting.as_uri(), work), nprocs=size)
