#!/usr/bin/env python3
"""An engine for the gateway benchmark that scores token ids: every prompt id comes back with a table of k.

The numbers are fixed; what counts is their volume, written as fast as the pipe takes it. Only the standard
library.
"""

from __future__ import annotations

import re
import sys

TAIL_VALUE = b"-0.470000"


def table(k: int) -> bytes:
    """The words of a table of ``k`` entries after the token's own value."""
    return b" ".join(
        [b"%d" % k, *(b"%d %.6f" % (100_000 + place, -0.47 - place * 0.37) for place in range(k))]
    )


def frames(identifier: bytes, positions: int, k: int) -> bytes:
    """Everything that answers one request."""
    numbers = TAIL_VALUE + b" " + table(k)
    parts = [b"ACCEPT %s %d\n" % (identifier, positions), b"ECHO %s 4 0 nan 0\n tok\n" % identifier]
    parts += [
        b"ECHO %s 4 %d %s\n tok\n" % (identifier, position, numbers) for position in range(1, positions)
    ]
    parts.append(b"DATA %s 2 %s\nok\n" % (identifier, numbers))
    parts.append(b"DONE %s STAT 1 1.0 0 1.0 %d 1\n" % (identifier, positions))
    return b"".join(parts)


def main() -> None:
    commands, out = sys.stdin.buffer, sys.stdout.buffer
    out.write(b"\x01\x01READY\x01\x01\nSTAT 0 0.0 0.0 1.0\n")
    out.flush()
    while line := commands.readline():
        words = line.split()
        if words and words[0] == b"SUBMIT":
            prompt = commands.read(int(words[3]) + 1)
            asked = re.search(rb"logprobs=([0-9]+)", line)
            out.write(frames(words[1], len(prompt.split()), int(asked[1]) if asked else 0))
            out.flush()


if __name__ == "__main__":
    main()
