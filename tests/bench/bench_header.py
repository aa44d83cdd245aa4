"""The C header's writers beside snprintf in the same run: messages per second of CPU time."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def main() -> int:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        print("no C compiler on this machine")
        return 0
    with tempfile.TemporaryDirectory() as name:
        program = Path(name) / "bench"
        source = [f"-I{ROOT / 'generated' / 'c'}", str(HERE / "bench_header.c"), "-o", str(program), "-lm"]
        subprocess.run([compiler, "-std=c11", "-O2", *source], check=True)
        lines = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout.splitlines()
    rates = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}
    for what, rate in rates.items():
        print(f"{what:16} {rate:14,.0f} /s")
    ratio = rates["write ECHO"] / rates["snprintf ECHO"]
    print(
        f"ECHO with 32 alternatives: {ratio:.1f} times snprintf (asked for: 5); DATA asked for: 10,000,000 /s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
