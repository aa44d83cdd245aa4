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
"""The grammar library follows references by calling itself, and a stack that ends is the process's end. A
chain as long as the largest grammar text can hold takes a quarter of this; what is not used takes no memory.
"""


def on_a_deep_stack(work: Callable[[], int]) -> int:
    """What `work` returns, run in a thread of its own; 1 after an exception, whose traceback is on stderr."""
    code = 1

    def run() -> None:
        nonlocal code
        code = work()

    threading.stack_size(DEEP_STACK_BYTES)
    thread = threading.Thread(target=run, name="engine")
    thread.start()
    thread.join()
    return code


def main() -> int:
    """Run the engine; returns the exit code."""
    try:
        launch = read_launch(sys.argv, os.environ)
        choose_threads(launch.directory, os.environ)
        # numpy reads the thread variables when it is imported, so everything that needs it is imported only
        # now.
        import numpy as np

        from engine.loop import EngineLoop
        from engine.reference.model import ReferenceModel
        from engine.stdio import restore_default_signals, serve

        model = ReferenceModel(launch.directory, launch.slots, launch.context, launch.seed)
    except KeyboardInterrupt:
        return 130
    except LaunchError as error:
        print(f"coli-engine-reference: {error}", file=sys.stderr)
        return 2
    np.seterr(
        over="ignore"
    )  # exp of a strongly negative gate is meant to become infinite: 1 / (1 + inf) is 0
    restore_default_signals()
    gc.collect()
    gc.freeze()  # what was loaded stays: later collections need not look at it between two tokens
    loop = EngineLoop(model)
    return on_a_deep_stack(lambda: serve(loop, sys.stdin.fileno(), sys.stdout.fileno()))


if __name__ == "__main__":
    sys.exit(main())
