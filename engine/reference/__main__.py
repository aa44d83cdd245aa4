"""`coli-engine-reference`: the numpy engine as a process on the serve protocol.

Whatever is wrong before READY is one line on stderr and exit code 2; EOF on stdin is exit code 0.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable
from typing import Final

from engine.reference.errors import LaunchError
from engine.reference.launch import choose_threads, read_launch

DEEP_STACK_BYTES: Final = 1 << 30
"""The grammar library follows references by calling itself, and a stack that ends is the process's end. What
is not used of it takes no memory, only addresses.
"""
STACK_PER_GRAMMAR_BYTE: Final = 1 << 10
"""Four times what the densest chain of references needs (some 210 bytes)."""
_SMALL_STACK_BYTES: Final = 1 << 20


def on_a_deep_stack(work: Callable[[int], int]) -> int:
    """What `work` returns, run in a thread of its own and given the bytes of its stack: as many as asked for,
    or halved until there are addresses enough. 1 after an exception, whose traceback is on stderr; raises
    LaunchError when no thread can be started.
    """
    code, size, before = 1, DEEP_STACK_BYTES, threading.stack_size()

    def run() -> None:
        nonlocal code
        code = work(size)

    while True:
        threading.stack_size(size)
        thread = threading.Thread(target=run, name="engine")
        try:
            thread.start()
        except RuntimeError as error:
            if size <= _SMALL_STACK_BYTES:
                raise LaunchError(f"no thread with a stack of {size} bytes: {error}") from None
            size //= 2
        else:
            thread.join()
            return code
        finally:
            threading.stack_size(before)


def _serve() -> int:
    """Load the model and serve it; raises LaunchError."""
    launch = read_launch(sys.argv, os.environ)
    choose_threads(launch.directory, os.environ)
    # numpy reads the thread variables when it is imported, so everything that needs it is imported only now.
    import numpy as np

    from engine.loop import EngineLoop
    from engine.reference.model import ReferenceModel
    from engine.stdio import restore_default_signals, serve

    model = ReferenceModel(launch.directory, launch.slots, launch.context, launch.seed)
    np.seterr(
        over="ignore"
    )  # exp of a strongly negative gate is meant to become infinite: 1 / (1 + inf) is 0
    restore_default_signals()
    gc.collect()
    gc.freeze()  # what was loaded stays: later collections need not look at it between two tokens

    def run(stack_bytes: int) -> int:
        model.largest_grammar = stack_bytes // STACK_PER_GRAMMAR_BYTE
        return serve(EngineLoop(model), sys.stdin.fileno(), sys.stdout.fileno())

    return on_a_deep_stack(run)


def main() -> int:
    """Run the engine; returns the exit code."""
    try:
        return _serve()
    except KeyboardInterrupt:
        return 130
    except LaunchError as error:
        print(f"coli-engine-reference: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
