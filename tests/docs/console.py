"""Documentation that runs: fenced blocks of a page, executed in order in a scratch copy of the project.

* ```` ```console ````: lines `$ command` run in a shell, and below each what it must print; `…` stands for
  anything. Positions in files, times and numbers of passed tests may differ.
* ```` ```diff title="FILE" ````: an edit; its context and removed lines must be found exactly once.

`python -m tests.docs.console PAGE` runs a page and puts the real output where it differs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r'^```(console|diff)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
COMMAND_SECONDS = 120
COUNT_OF_ERRORS = re.compile(r"^\d+ error\(s\), \d+ warning\(s\)\n", re.MULTILINE)
"""The compiler's last line, on stderr: `invoke` passes both streams on, each as it comes."""


class PageFault(AssertionError):
    """A block of the page does not hold."""


@dataclass(frozen=True)
class Command:
    """One command of a console block and the output the page shows."""

    line: str
    shown: str


def commands_of(block: str) -> Iterator[Command]:
    """The commands of a console block, each with the lines below it."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        line, _, shown = part.partition("\n")
        while line.endswith("\\"):
            more, _, shown = shown.partition("\n")
            line += "\n" + more
        yield Command(line, shown)


def scratch_copy(directory: Path) -> Path:
    """The tracked files of the working tree in a directory of their own, as a git repository."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        if name.startswith(("engine/nano/", "tests/")) and not name.startswith("tests/pins/"):
            continue
        if (ROOT / name).is_file():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, directory / name)
    run(
        "git init -q . && git add -A && git -c user.name=t -c user.email=t@example.net commit -qm start",
        directory,
    )
    return directory


def run(command: str, directory: Path) -> str:
    """What a command prints, both streams together. Nothing but the directory says whose code is meant."""
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "COLUMNS": "120",
    }
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=COMMAND_SECONDS,
        check=False,
    )
    return COUNT_OF_ERRORS.sub("", done.stdout) + "".join(COUNT_OF_ERRORS.findall(done.stdout))


def fits(shown: str, printed: str) -> bool:
    """Whether the printed text is what the page shows."""
    pattern = re.escape(shown.strip())
    pattern = re.sub(r":\d+:\d+:", r":\\d+:\\d+:", pattern)
    pattern = re.sub(r"\d+\\\.\d+s", r"\\d+\\.\\d+s", pattern)
    pattern = re.sub(r"\d+\\ passed", r"\\d+\\ passed", pattern)
    pattern = re.sub(r"^…\\\n", r"(?:.*\n)?", pattern, flags=re.MULTILINE).replace("…", ".*")
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


def apply_edit(edit: str, path: Path) -> None:
    """Replace the context and removed lines of a diff block by its context and added ones."""
    lines = edit.splitlines()
    old = "".join(line[1:] + "\n" for line in lines if not line.startswith("+"))
    new = "".join(line[1:] + "\n" for line in lines if not line.startswith("-"))
    text = path.read_text(encoding="utf-8")
    if text.count(old) != 1:
        raise PageFault(f"{path.name} holds these lines {text.count(old)} times, not once:\n{old}")
    path.write_text(text.replace(old, new), encoding="utf-8")


def run_page(page: str, directory: Path) -> tuple[str, list[str]]:
    """Run every block of a page in ``directory``: the page with the real output, and what differed."""
    faults: list[str] = []

    def replaced(block: re.Match[str]) -> str:
        kind, title, text = block.groups()
        if kind == "diff":
            apply_edit(text, directory / title)
            return block[0]
        parts = []
        for command in commands_of(text):
            printed = run(command.line, directory)
            if not fits(command.shown, printed):
                faults.append(f"$ {command.line}\nshown:\n{command.shown}\nprinted:\n{printed}")
            shown = command.shown if fits(command.shown, printed) else printed.strip() + "\n"
            parts.append(f"$ {command.line}\n{shown}")
        return "```console\n" + "".join(parts) + "```"

    return FENCE.sub(replaced, page), faults


def main() -> None:
    """Write the real output into a page."""
    path = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as directory:
        text, faults = run_page(path.read_text(encoding="utf-8"), scratch_copy(Path(directory)))
    path.write_text(text, encoding="utf-8")
    print(f"{len(faults)} output(s) replaced")


if __name__ == "__main__":
    main()
