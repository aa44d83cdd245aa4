"""C compilers of this machine, and programs built with them once per session."""

from __future__ import annotations

import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INCLUDE = ROOT / "generated" / "c"
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
C_COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)] or [
    n for n in ("cc",) if shutil.which(n)
]
CPP_COMPILERS = [name for name in ("g++", "clang++") if shutil.which(name)]
NO_COMPILER = "no C compiler on this machine (cc, gcc or clang)"


def build(source: Path, program: Path, compiler: str, *flags: str) -> Path:
    """Compile and link ``source`` against the header. Fails the test with the compiler's words."""
    command = [compiler, *STRICT, *flags, f"-I{INCLUDE}", str(source), "-o", str(program), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"
    return program


@lru_cache(maxsize=1)
def sanitizers(directory: Path) -> tuple[str, ...]:
    """Sanitizer flags, if programs built with them run here."""
    flags = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    probe = directory / "probe.c"
    probe.write_text("int main(void) { return 0; }\n")
    program = directory / "probe"
    built = subprocess.run([C_COMPILERS[0], *flags, str(probe), "-o", str(program)], capture_output=True)
    usable = built.returncode == 0 and subprocess.run([str(program)], timeout=20).returncode == 0
    return flags if usable else ()


class Agree:
    """The running agreement program: bytes of a message in, its line out."""

    def __init__(self, program: Path) -> None:
        self.process = subprocess.Popen([str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, direction: str, data: bytes) -> str:
        """What C makes of the first message in ``data`` ("frame" or "command")."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{direction} {data.hex()}\n".encode())
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the program died of {data!r}"
        return line.decode("ascii").rstrip("\n")

    def close(self) -> int:
        """End the program; its exit code."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(10)


@pytest.fixture(scope="session")
def agree(tmp_path_factory: pytest.TempPathFactory):
    """The agreement program under the sanitizers, not optimised: that takes ten times as long to build, and
    lets fewer faults stand for the sanitizers to see.
    """
    if not C_COMPILERS:
        pytest.skip(NO_COMPILER)
    directory = tmp_path_factory.mktemp("agree")
    flags = sanitizers(directory)
    program = build(INCLUDE / "agree.c", directory / "agree", C_COMPILERS[0], "-std=c11", "-O0", *flags)
    running = Agree(program)
    yield running
    assert running.close() == 0
