"""`coli-engine-reference`: the numpy engine as a process on the serve protocol.

Whatever is wrong before READY is one line on stderr and exit code 2; EOF on stdin is exit code 0.
"""

from __future__ import annotations

import gc
import os
import sys

from engine.reference.errors import LaunchError
from engine.reference.launch import choose_threads, read_launch


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
    return serve(EngineLoop(model), sys.stdin.fileno(), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
