"""The wheel works outside the checkout: built, installed into an empty environment, and used from an empty
directory with an empty home.

    python -m tests.evidence.check_wheel

Needs the package index (or the wheels of the dependencies where pip finds them) and the package `build`.
Prints one line for each step with the seconds it took; the exit code is 0 when all held.
"""

from __future__ import annotations

import http.client
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[2]
MUST_HOLD = (
    "engine/nano/model/model.safetensors",
    "engine/nano/model/tokenizer.json",
    "engine/nano/model/chat_template.jinja",
    "engine/native/src/main.c",
    "generated/c/colibri_wire.h",
    "generated/openapi.json",
    "server/api/docs.html",
    "codegen/templates/python/frames.py.j2",
    "codegen/layout.lark",
)


class CheckFailed(Exception):
    """A step did not hold; the text says which and how."""


def expect(holds: object, what: str) -> None:
    if not holds:
        raise CheckFailed(what)


class Installed:
    """An environment with the wheel in it, and an empty place to stand."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.bin = directory / "environment" / "bin"
        self.work = directory / "elsewhere"
        self.home = directory / "home"
        self.work.mkdir()
        self.home.mkdir()

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name in ("LANG", "LC_ALL", "TMPDIR")}
        return {**kept, "HOME": str(self.home), "PATH": f"{self.bin}:/usr/bin:/bin"}

    def run(self, *command: str) -> str:
        done = subprocess.run(
            command, cwd=self.work, env=self.environment(), capture_output=True, text=True, timeout=300
        )
        expect(done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}")
        return done.stdout


def build_wheel(installed: Installed) -> Path:
    """From what is committed, so that nothing untracked or half done can help or harm."""
    source = installed.directory / "source"
    source.mkdir()
    packed = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(source, filter="data")
    wheels = installed.directory / "wheels"
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(wheels), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    expect(done.returncode == 0, done.stdout + done.stderr)
    (wheel,) = wheels.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    expect(set(MUST_HOLD) <= names, f"not in the wheel: {sorted(set(MUST_HOLD) - names)}")
    expect(not any(name.startswith("tests/") for name in names), "the wheel holds the tests")
    return wheel


def install(installed: Installed, wheel: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(installed.bin.parent)], check=True)
    command = [str(installed.bin / "python"), "-m", "pip", "install", "--quiet", str(wheel)]
    done = subprocess.run(command, cwd=installed.work, capture_output=True, text=True, timeout=600)
    expect(done.returncode == 0, done.stdout + done.stderr)
    found = installed.run("python", "-c", "import server, engine, generated; print(server.__file__)")
    expect(str(installed.bin.parent) in found, f"imported from {found}")


def demo_outside_the_checkout(installed: Installed) -> None:
    printed = installed.run("coli", "demo")
    expect("2 + 2 = 4" in printed, printed)
    expect("Paris" in printed, printed)


@contextmanager
def serving(installed: Installed, *options: str) -> Iterator[str]:
    process = subprocess.Popen(
        ["coli", "serve", "--port", "0", *options],
        executable=str(installed.bin / "coli"),
        cwd=installed.work,
        env=installed.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    try:
        url, printed = "", []
        for line in process.stdout:
            printed.append(line)
            found = re.search(r"listening on (http://[0-9.:]+)", line)
            url = found[1] if found else url
            if line.startswith("ready:"):
                break
        expect(url, "".join(printed))
        yield url
    finally:
        process.terminate()
        process.communicate(timeout=60)
    expect(process.returncode == 0, f"coli serve ended with {process.returncode}")


def serve_outside_the_checkout(installed: Installed) -> None:
    """The embedded model answers, and the pages that lie beside the code are there."""
    with serving(installed) as url:
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
        body = {
            "model": "nano",
            "temperature": 0,
            "messages": [{"role": "user", "content": "what is 2 + 2?"}],
        }
        connection.request("POST", "/v1/chat/completions", json.dumps(body))
        answer = json.loads(connection.getresponse().read())
        expect(answer["choices"][0]["message"]["content"] == "2 + 2 = 4.", str(answer))
        for path, start in (("/docs", b"<!doctype html>"), ("/openapi.json", b"{"), ("/health", b"{")):
            connection.request("GET", path)
            response = connection.getresponse()
            expect((response.status, response.read(15)[: len(start)]) == (200, start), path)
            response.read()


def native_outside_the_checkout(installed: Installed) -> None:
    """The C engine is built from the installed sources into the user's cache, and serves."""
    if shutil.which("cc") is None:
        print("  (no C compiler here: left out)")
        return
    installed.run("python", "-m", "engine.native.build")
    printed = installed.run("coli", "demo", "--engine", "native")
    expect("2 + 2 = 4" in printed, printed)


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        installed = Installed(Path(directory))
        wheel: list[Path] = []
        steps: list[tuple[str, Callable[[], object]]] = [
            ("the wheel builds and holds all it needs", lambda: wheel.append(build_wheel(installed))),
            ("it installs into an empty environment", lambda: install(installed, wheel[0])),
            ("coli demo answers outside the checkout", lambda: demo_outside_the_checkout(installed)),
            ("coli serve answers outside the checkout", lambda: serve_outside_the_checkout(installed)),
            ("the native engine builds and serves", lambda: native_outside_the_checkout(installed)),
        ]
        for name, step in steps:
            start = time.monotonic()
            try:
                step()
            except (CheckFailed, subprocess.SubprocessError) as failed:
                sys.exit(f"{name}: FAILED\n{failed}")
            print(f"{name}: {time.monotonic() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
