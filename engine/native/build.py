"""Builds the native engine with the C compiler of this machine.

    python -m engine.native.build [--directory DIR]
    python -m engine.native.build --find

Guarantees: the program appears whole or not at all, under the name `PROGRAM`; it is built anew only when a
source, the header, the compiler or the flags changed; without a compiler one sentence says so and the exit
code is 2. In a checkout the program goes to `engine/native/build`, for an installed package (which may not be
writable) to the user's cache.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import generated

NAME = "Build the native engine."
PROGRAM = "colibri-engine"
HERE = Path(__file__).parent
SOURCES = HERE / "src"
HEADER = Path(generated.__file__).parent / "c"
COMPILERS = ("cc", "gcc", "clang")
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion")
LANGUAGE = ("-std=c11", "-D_GNU_SOURCE", "-ffp-contract=fast", "-pthread")
OPTIMISED = ("-O3", "-march=native")
SANITIZED = (
    "-O0",
    "-g",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
)
NO_COMPILER = f"no C compiler on this machine ({', '.join(COMPILERS)}); set CC to use another one"


class BuildError(Exception):
    """The engine cannot be built; the text is for the person who asked."""


class NoCompiler(BuildError):
    """There is no compiler: nothing is wrong with the sources."""


def find_compiler() -> str:
    """The compiler `CC` names, else the first of `COMPILERS` there is. Raises NoCompiler."""
    wanted = os.environ.get("CC")
    for name in (wanted,) if wanted else COMPILERS:
        found = shutil.which(name)
        if found is not None:
            return found
    raise NoCompiler(f"the compiler {wanted} of CC does not exist" if wanted else NO_COMPILER)


def default_directory() -> Path:
    """Where the program belongs: next to its sources in a checkout, else in the user's cache."""
    if (HERE.parents[1] / "pyproject.toml").exists():
        return HERE / "build"
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "colibri-serve" / "native"


def sources() -> list[Path]:
    """Every translation unit."""
    return sorted(SOURCES.glob("*.c"))


def _run(command: Sequence[str]) -> None:
    """Run the compiler; its warnings go to stderr. Raises BuildError with its words when it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"the native engine does not compile: {' '.join(command)}\n{done.stderr}")
    print(done.stderr, file=sys.stderr, end="")


def compile_program(program: Path, units: Sequence[Path], flags: Sequence[str] = OPTIMISED) -> Path:
    """Compile `units`, as many at once as there are processors, and link them into `program`, which appears
    whole or not at all. Raises BuildError.
    """
    compiler = find_compiler()
    common = [compiler, *LANGUAGE, *flags, *WARNINGS, f"-I{HEADER}", f"-I{SOURCES}"]
    program.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=program.parent, prefix=".build-") as scratch:
        objects = [Path(scratch) / f"{unit.stem}.o" for unit in units]
        commands = [
            [*common, "-c", str(unit), "-o", str(made)] for unit, made in zip(units, objects, strict=True)
        ]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(_run, commands))
        linked = Path(scratch) / program.name
        _run([compiler, *LANGUAGE, *flags, *map(str, objects), "-o", str(linked), "-lm"])
        os.replace(linked, program)
    return program


def _fingerprint(compiler: str) -> str:
    """Of everything the program depends on."""
    state = hashlib.sha256(" ".join([compiler, *LANGUAGE, *OPTIMISED, *WARNINGS]).encode())
    for path in (*sources(), *sorted(SOURCES.glob("*.h")), *sorted(HEADER.glob("*.h"))):
        state.update(path.name.encode() + b"\0" + path.read_bytes())
    return state.hexdigest()


def build(directory: Path | None = None) -> Path:
    """The program, built if it is not there or not up to date; of several builds at once, one builds and the
    others wait for it. Raises BuildError.
    """
    where = directory or default_directory()
    program, stamp = where / PROGRAM, where / f"{PROGRAM}.sha256"
    fingerprint = _fingerprint(find_compiler())
    try:
        where.mkdir(parents=True, exist_ok=True)
        with (where / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if program.is_file() and stamp.is_file() and stamp.read_text(encoding="ascii") == fingerprint:
                return program
            compile_program(program, sources())
            stamp.write_text(fingerprint, encoding="ascii")
    except OSError as error:
        raise BuildError(f"{where} cannot be written: {error.strerror}") from None
    return program


def find_program() -> Path | None:
    """The program where `build` puts it, or None when it is not there."""
    program = default_directory() / PROGRAM
    return program if program.is_file() and os.access(program, os.X_OK) else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, or look for what was built, and say where; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m engine.native.build", description="Build the native engine."
    )
    parser.add_argument("--directory", type=Path, help="where the program goes")
    parser.add_argument("--find", action="store_true", help="say where the program is, without building it")
    options = parser.parse_args(arguments)
    if options.find:
        program = find_program()
        print("the native engine is not built" if program is None else program)
        return 2 if program is None else 0
    try:
        print(build(options.directory))
    except BuildError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
