"""Mutation testing of a sample: would the tests notice if this line were wrong?

A mutant is one module with one small change: a comparison, a boolean, a number, an operator, a condition.
Each runs in a process forked from one with pytest loaded; an import hook gives the tests the changed module
in place of the file. Killed means that some test failed; a mutant that runs too long counts as killed too.

    python -m tests.evidence.mutation [--each 5] [--after 0] [--seed 1] [--target NAME]
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
MUTANT_SECONDS = 120

TARGETS = {  # module -> the tests that answer for it, the quick ones first
    "generated.fields": ["tests/generated/test_fields.py", "tests/pins"],
    "generated.wire": ["tests/generated", "tests/pins"],
    "server.text.arguments": ["tests/server/text"],
    "server.text.pipeline": ["tests/server/text"],
    "server.text.places": ["tests/server/text"],
    "server.text.reasoning": ["tests/server/text"],
    "server.text.records": ["tests/server/text"],
    "server.text.stop": ["tests/server/text"],
    "server.text.tools": ["tests/server/text"],
    "server.text.utf8": ["tests/server/text"],
}

UNTIMED = ("-k", "not linear and not megabyte")
"""What measures time says little while many mutants run."""

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
}


@dataclass(frozen=True)
class Mutant:
    """One change of one module: where, what it was and what it became."""

    module: str
    line: int
    was: str
    became: str
    site: int


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """The small changes of one node, each as a node to put in its place."""
    changed = copy.deepcopy(node)
    if isinstance(changed, ast.Compare):
        for index, operator in enumerate(changed.ops):
            other = copy.deepcopy(changed)
            other.ops[index] = COMPARISONS[type(operator)]()
            yield other
    elif isinstance(changed, ast.BoolOp):
        changed.op = ast.And() if isinstance(changed.op, ast.Or) else ast.Or()
        yield changed
    elif isinstance(changed, ast.BinOp) and type(changed.op) in OPERATORS:
        changed.op = OPERATORS[type(changed.op)]()
        yield changed
    elif isinstance(changed, ast.UnaryOp) and isinstance(changed.op, ast.Not):
        yield changed.operand
    elif isinstance(changed, ast.Constant) and isinstance(changed.value, bool):
        yield ast.copy_location(ast.Constant(not changed.value), changed)
    elif isinstance(changed, ast.Constant) and isinstance(changed.value, int):
        yield ast.copy_location(ast.Constant(changed.value + 1), changed)
    elif isinstance(changed, ast.Return) and changed.value is not None:
        changed.value = ast.copy_location(ast.Constant(None), changed)
        yield changed


def sites(tree: ast.Module) -> list[tuple[ast.AST, str, int | None, ast.AST, ast.AST]]:
    """Every possible change inside functions: parent, attribute, index, old node, new node."""
    found = []
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        annotations = {id(inner) for part in ast.walk(function) for inner in annotation_of(part)}
        for parent in ast.walk(ast.Module(function.body, [])):
            for attribute, value in ast.iter_fields(parent):
                for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
                    if isinstance(node, ast.AST) and id(node) not in annotations:
                        for changed in changes(node):
                            found.append((parent, attribute, index, node, changed))
    return found


def annotation_of(node: ast.AST) -> Iterator[ast.AST]:
    for name in ("annotation", "returns"):
        inner = getattr(node, name, None)
        if isinstance(inner, ast.AST):
            yield from ast.walk(inner)


def source_of(module: str) -> Path:
    return ROOT / (module.replace(".", "/") + ".py")


def mutants(module: str) -> list[Mutant]:
    """All mutants of a module."""
    found = []
    for number, (_, _, _, old, new) in enumerate(sites(ast.parse(source_of(module).read_text("utf-8")))):
        was, became = ast.unparse(old), ast.unparse(new)
        if was != became:
            found.append(Mutant(module, getattr(old, "lineno", 0), was[:90], became[:90], number))
    return found


def mutated(mutant: Mutant) -> ast.Module:
    tree = ast.parse(source_of(mutant.module).read_text("utf-8"))
    parent, attribute, index, _, new = sites(tree)[mutant.site]
    if index is None:
        setattr(parent, attribute, new)
    else:
        getattr(parent, attribute)[index] = new
    return ast.fix_missing_locations(tree)


class MutantFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives the changed module to whoever imports it."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(self, name, path, target=None):
        if name != self._mutant.module:
            return None
        return importlib.util.spec_from_file_location(name, source_of(name), loader=self)

    def create_module(self, spec):
        return None

    def exec_module(self, module) -> None:
        exec(compile(mutated(self._mutant), module.__spec__.origin, "exec"), module.__dict__)


def survives(mutant: Mutant | None, tests: list[str]) -> bool:
    """Whether all tests pass with the mutant (with None: as they are)."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setsid()
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            if mutant is not None:
                sys.meta_path.insert(0, MutantFinder(mutant))
            import pytest

            options = [
                "-x",
                "-q",
                "-p",
                "no:cacheprovider",
                "-p",
                "no:xdist",
                "--hypothesis-seed=0",
                *UNTIMED,
            ]
            status = int(pytest.main([*options, f"--rootdir={ROOT}", *tests]))
        finally:
            os._exit(status)
    deadline = time.monotonic() + MUTANT_SECONDS
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def run(each: int, after: int, seed: int, targets: list[str]) -> Iterator[tuple[Mutant, bool]]:
    """``each`` mutants of every target, drawn at random but always the same; each with whether it survived.

    The first ``after`` of each are left out: to go on where another run ended.
    """
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    import hypothesis  # noqa: F401  (loaded once, before the forks)
    import pytest  # noqa: F401

    for tests in {tuple(TARGETS[module]) for module in targets}:
        if not survives(None, list(tests)):
            raise SystemExit(f"{' '.join(tests)} fail, or take too long, without any mutant")
    for module in targets:
        found = mutants(module)
        chosen = random.Random(f"{seed} {module}").sample(found, min(after + each, len(found)))
        for mutant in chosen[after:]:
            yield mutant, survives(mutant, TARGETS[module])


def main() -> None:
    parser = argparse.ArgumentParser(description="Mutation testing of a sample.")
    parser.add_argument("--each", type=int, default=5, help="mutants of each module")
    parser.add_argument("--after", type=int, default=0, help="leave out the first ones")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", action="append", choices=sorted(TARGETS))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    outcomes = []
    targets = options.target or list(TARGETS)
    for mutant, survived in run(options.each, options.after, options.seed, targets):
        outcomes.append({**asdict(mutant), "survived": survived})
        if survived:
            print(f"survived: {mutant.module}:{mutant.line}: {mutant.was}  ->  {mutant.became}", flush=True)
    survivors = sum(outcome["survived"] for outcome in outcomes)
    print(f"{len(outcomes)} mutants, {len(outcomes) - survivors} killed, {survivors} survived")
    if options.json:
        options.json.write_text(json.dumps(outcomes, indent=1))


if __name__ == "__main__":
    main()
