"""Facts about the machine and this process for HWINFO and STAT, read from /proc where it exists.

A fact that cannot be learned is reported as zero or `unknown`, never guessed.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from functools import cache

_GIGABYTE = 1e9


@dataclass(frozen=True)
class Memory:
    """Main memory in units of 10^9 bytes."""

    total_gb: float
    available_gb: float


def cores() -> int:
    """Processors this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 0


@cache
def processor_name() -> str:
    """Marketing name of the processor on one line, without the separator of HWINFO."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            names = [line.partition(":")[2] for line in lines if line.startswith("model name")]
    except OSError:
        names = []
    name = " ".join((names[0] if names else platform.processor()).replace("|", " ").split())
    return name or "unknown"


def memory() -> Memory:
    """Total and available main memory."""
    sizes = {}
    try:
        with open("/proc/meminfo", encoding="ascii", errors="replace") as lines:
            for line in lines:
                name, _, rest = line.partition(":")
                if name in ("MemTotal", "MemAvailable"):
                    sizes[name] = int(rest.split()[0]) * 1024 / _GIGABYTE
    except (OSError, ValueError, IndexError):
        pass
    return Memory(sizes.get("MemTotal", 0.0), sizes.get("MemAvailable", 0.0))


def resident_gb() -> float:
    """Resident memory of this process in units of 10^9 bytes."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / _GIGABYTE
    except (OSError, ValueError, IndexError):
        return 0.0
