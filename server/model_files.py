"""Reading the files of a model directory, which only have the names of what they should be."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def read_model_file(path: Path) -> bytes:
    """All bytes of a regular file; OSError for anything else: reading a pipe nobody writes to never ends."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        return file.read()
