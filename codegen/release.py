"""Baselines: finding one to compare with, and freezing a new one.

Guarantees: a frozen model is the whole resolved model as JSON under ``spec/released/MAJOR.MINOR.json``;
freezing refuses while the comparison with the newest release has an unaccepted change, and never overwrites
another version's promise.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from .acknowledge import load_acknowledgements, report
from .changes import Snapshot, snapshot_of, snapshot_of_release
from .compare import compare
from .findings import Findings, Location, Rule, SpecRejected
from .fingerprint import model_json
from .lint import version_of
from .model import Model
from .resolve import load_model

RELEASED: Final = "spec/released"
ACKNOWLEDGED: Final = "spec/acknowledged.yaml"

RULES: Final = (
    Rule(
        "release.baseline",
        "The baseline exists and can be read.",
        "Name a file of spec/released or a revision.",
    ),
    Rule("release.version", "A release has the version the spec states.", "Set protocol.version first."),
    Rule("release.frozen", "A frozen promise is never rewritten.", "Raise protocol.version."),
)


def newest_release(root: Path) -> Path | None:
    """The frozen model with the highest version, or None when nothing was released yet."""
    frozen = [path for path in (root / RELEASED).glob("*.json") if re.fullmatch(r"\d+\.\d+", path.stem)]
    return max(frozen, key=lambda path: version_of(path.stem), default=None)


def load_baseline(root: Path, against: str | None, spec: str, findings: Findings) -> Snapshot | None:
    """The snapshot to compare with: a frozen file, a git revision, or (None) the newest release.

    Returns None without a finding when nothing was released yet, and None with a finding when it cannot be
    read.
    """
    if against is None:
        newest = newest_release(root)
        return None if newest is None else _frozen(newest, root, findings)
    for candidate in (root / against, root / "spec" / against, root / RELEASED / against):
        if candidate.suffix == ".json" and candidate.is_file():
            return _frozen(candidate, root, findings)
    return _revision(root, against, spec, findings)


def _frozen(path: Path, root: Path, findings: Findings) -> Snapshot | None:
    name = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()
    try:
        return snapshot_of_release(path.read_text(encoding="utf-8"), name)
    except (OSError, ValueError) as error:
        findings.error("release.baseline", Location(name), f"cannot read the frozen model: {error}")
        return None


def _revision(root: Path, revision: str, spec: str, findings: Findings) -> Snapshot | None:
    name = f"{revision}:{spec}"
    command = ["git", "-C", str(root), "show", f"{revision}:./{spec}"]
    try:
        shown = subprocess.run(command, capture_output=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        findings.error("release.baseline", Location(name), f"cannot run git: {error}")
        return None
    if shown.returncode != 0:
        told = shown.stderr.decode("utf-8", "replace").strip().splitlines()
        findings.error(
            "release.baseline", Location(name), f"no frozen model and no revision: {told[-1] if told else ''}"
        )
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "protocol.yaml"
        path.write_bytes(shown.stdout)
        try:
            return snapshot_of(load_model(path, name=name))
        except SpecRejected as rejected:
            first = next(iter(rejected.findings))
            message = f"the spec of that revision cannot be read by this compiler: {first.message}"
            findings.error("release.baseline", first.location, message)
            return None


def compare_with(root: Path, model: Model, baseline: Snapshot, findings: Findings) -> None:
    """Compare ``model`` with ``baseline``; every change becomes a finding."""
    acknowledgements = load_acknowledgements(root / ACKNOWLEDGED, ACKNOWLEDGED, findings)
    try:
        changes = compare(baseline, snapshot_of(model))
    except (LookupError, TypeError, AttributeError) as error:
        message = f"the frozen model is damaged or of another compiler: {type(error).__name__}: {error}"
        findings.error("release.baseline", Location(baseline.name), message)
        return
    report(changes, acknowledgements, baseline.data["protocol"]["version"], findings)


def freeze(root: Path, model: Model, version: str, findings: Findings) -> Path | None:
    """Write the frozen model of ``version``; None with findings when it must not be released."""
    spec = model.protocol
    if version != spec.version:
        message = f"the spec is at {spec.version}, not at {version}"
        findings.error(
            "release.version", spec.location, message, hint="set protocol.version, then release it"
        )
        return None
    baseline = load_baseline(root, None, model.source, findings)
    if baseline is not None:
        compare_with(root, model, baseline, findings)
    if findings.has_errors:
        return None
    major, minor, _ = version.split(".")
    path = root / RELEASED / f"{major}.{minor}.json"
    if path.exists():
        there = json.loads(path.read_text(encoding="utf-8"))["protocol"]["version"]
        if there == version:
            message = f"{version} is frozen already"
            findings.error("release.frozen", Location(path.relative_to(root).as_posix()), message)
            return None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(model_json(model), encoding="utf-8")
    return path
