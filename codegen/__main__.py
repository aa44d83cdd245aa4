"""Command line of the compiler: ``python -m codegen check | lint | generate | diff | rules | explain``.

Exit codes: 0 when all is well, 1 when there are error findings (nothing has been written then), 2 for a
wrong command line.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from .findings import RENDERERS, Findings, Level, SpecRejected

if TYPE_CHECKING:
    from .compat import CompatRule
    from .model import Model

ROOT = Path(__file__).resolve().parent.parent

_EPILOG = """
Typical round: edit spec/protocol.yaml, `python -m codegen generate`, run the tests, commit the spec
together with everything that changed under generated/ and docs/. Findings are printed as FILE:LINE:COLUMN:
level[rule]: message; `python -m codegen explain RULE` says why a rule exists and what to do about it.
"""


@click.group(
    epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
def main() -> None:
    """Compile spec/protocol.yaml into generated/ and the tables of docs/.

    One YAML file promises; everything else follows from it. Every command reads the whole spec, reports all
    findings at once with their places, and writes nothing as long as one of them is an error.
    """


def _common(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option(
            "--format",
            "output_format",
            type=click.Choice(sorted(RENDERERS)),
            default="text",
            show_default=True,
            help="How findings are printed; github makes annotations in a workflow run.",
        ),
        click.option(
            "--root",
            type=click.Path(exists=True, file_okay=False, path_type=Path),
            default=ROOT,
            help="Project to work on (default: the one this compiler belongs to).",
        ),
        click.option(
            "--spec", default="spec/protocol.yaml", show_default=True, help="Spec file, relative to --root."
        ),
    ):
        command = option(command)
    return command


def _finish(findings: Findings, output_format: str) -> NoReturn:
    """Print everything found and leave with the code it deserves."""
    click.echo(RENDERERS[output_format](findings), nl=False)
    if output_format == "text" and findings.has_errors:
        errors, warnings = findings.count(Level.ERROR), findings.count(Level.WARNING)
        click.echo(f"{errors} error(s), {warnings} warning(s)", err=True)
    sys.exit(1 if findings.has_errors else 0)


def _load(root: Path, spec: str, findings: Findings, output_format: str) -> Model:
    """The linted model; leaves the program with all findings when the spec has errors."""
    from .lint import lint_model
    from .resolve import load_model

    try:
        model = load_model(root / spec, name=spec, findings=findings)
    except SpecRejected as rejected:
        _finish(rejected.findings, output_format)
    lint_model(model, findings)
    if findings.has_errors:
        _finish(findings, output_format)
    return model


@main.command()
@_common
def lint(root: Path, spec: str, output_format: str) -> None:
    """Read the spec, resolve it and run every lint rule; touch no output."""
    findings = Findings()
    _load(root, spec, findings, output_format)
    _finish(findings, output_format)


@main.command()
@_common
def generate(root: Path, spec: str, output_format: str) -> None:
    """Make every output current.

    Files that are right already are not touched, files no target makes any more are removed, and tables are
    put between the markers of the pages in docs/.
    """
    from . import stamp

    findings = Findings()
    if stamp.is_current(root, spec):
        if output_format == "text":
            count = len(stamp.outputs_listed(root))
            click.echo(f"{count} of {count} outputs were current")
        _finish(findings, output_format)
    started_with = stamp.inputs(root, spec)

    from .output import apply_plan, make_plan
    from .targets import build_products

    model = _load(root, spec, findings, output_format)
    products = build_products(model, findings)
    if findings.has_errors:
        _finish(findings, output_format)
    plan = make_plan(root, products, findings)
    if findings.has_errors:
        _finish(findings, output_format)
    apply_plan(root, plan)
    if output_format == "text":
        for path in plan.writes:
            click.echo(f"wrote {path}")
        for path in plan.removals:
            click.echo(f"removed {path}")
        current = len(products.files) - sum(path in products.files for path in plan.writes)
        click.echo(f"{current} of {len(products.files)} outputs were current")
    if not findings:
        stamp.renew(root, spec, started_with)
    _finish(findings, output_format)


@main.command()
@_common
def check(root: Path, spec: str, output_format: str) -> None:
    """Lint the spec and prove that every output is current.

    Prints a unified diff from what is there to what `generate` would write, and fails if there is any.
    Writes nothing.
    """
    from .output import make_plan, report_stale
    from .targets import build_products

    findings = Findings()
    model = _load(root, spec, findings, output_format)
    products = build_products(model, findings)
    if findings.has_errors:
        _finish(findings, output_format)
    plan = make_plan(root, products, findings)
    diff_text = report_stale(root, plan, findings)
    if output_format == "text":
        click.echo(diff_text, nl=False)
    _finish(findings, output_format)


@main.command()
@_common
@click.option(
    "--against",
    help="Baseline: a file of spec/released (1.0.json) or a git revision. Default: the newest release.",
)
def diff(root: Path, spec: str, output_format: str, against: str | None) -> None:
    """Judge every change since a baseline: breaking, dangerous or safe.

    Changes point at the spec, removals at the baseline. Breaking and dangerous ones are errors until
    spec/acknowledged.yaml accepts them (rule, item, reason, version); a breaking one needs a new major
    version all the same.
    """
    from .release import compare_with, load_baseline

    findings = Findings()
    model = _load(root, spec, findings, output_format)
    baseline = load_baseline(root, against, spec, findings)
    if baseline is not None:
        compare_with(root, model, baseline, findings)
    if output_format == "text" and not findings.has_errors:
        name = baseline.name if baseline is not None else "nothing, because no release is frozen yet"
        click.echo(f"compared with {name}: {len(findings)} change(s), none in need of a decision")
    _finish(findings, output_format)


@main.command()
@_common
@click.argument("version")
def release(root: Path, spec: str, output_format: str, version: str) -> None:
    """Freeze the model as spec/released/MAJOR.MINOR.json.

    Refuses while a change since the newest release is neither safe nor accepted, or lacks its version number.
    """
    from .release import freeze

    findings = Findings()
    model = _load(root, spec, findings, output_format)
    path = freeze(root, model, version, findings)
    if path is not None and output_format == "text":
        click.echo(f"froze {path.relative_to(root).as_posix()}")
    _finish(findings, output_format)


@main.command()
def rules() -> None:
    """Print every rule: those of a spec, then the catalogue of compatibility rules with both directions."""
    from .catalogue import all_rules
    from .compat import COMPAT_RULES

    for rule in all_rules():
        click.echo(f"{rule.id:<34} {rule.level.value:<32} {rule.purpose}")
    for entry in COMPAT_RULES.values():
        fwd = f"by {entry.tolerance}" if entry.tolerance else str(entry.fwd)
        level = f"{entry.classes} {entry.back}/{fwd}"
        click.echo(f"{entry.id:<34} {level:<32} {entry.purpose}")


@main.command()
@click.argument("rule_id", metavar="RULE")
def explain(rule_id: str) -> None:
    """Say why RULE exists and what to do about a finding of it."""
    from .catalogue import all_rules
    from .compat import COMPAT_RULES
    from .findings import alternatives

    by_id = {rule.id: rule for rule in all_rules()}
    if rule_id in COMPAT_RULES:
        click.echo(_explained(COMPAT_RULES[rule_id]))
    elif rule_id in by_id:
        rule = by_id[rule_id]
        click.echo(f"{rule.id} ({rule.level.value})\n\nWhy: {rule.purpose}\nWhat to do: {rule.advice}")
    else:
        group = rule_id.partition(".")[0]
        near = [known for known in (*by_id, *COMPAT_RULES) if known.partition(".")[0] == group]
        raise click.UsageError(f"there is no rule {rule_id!r}; {alternatives(rule_id, near, 'rules')}")


_CLASSES = {"W": "wire", "S": "source", "H": "HTTP", "O": "operator", "V": "version", "-": "no promise"}


def _explained(rule: CompatRule) -> str:
    fwd = str(rule.fwd)
    if rule.tolerance:
        fwd += f", or safe where the baseline says {rule.tolerance}: ignore"
    lines = [
        f"{rule.id} (compatibility: {', '.join(_CLASSES[letter] for letter in rule.classes)})",
        "",
        f"Why: {rule.purpose}",
        f"What to do: {rule.advice}",
        f"Old writers with new readers: {rule.back}",
        f"New writers with old readers: {fwd}",
    ]
    if rule.hard:
        lines.append("It can never be acknowledged.")
    if rule.dormant:
        lines.append(f"The notation cannot express it yet: {rule.dormant}.")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
