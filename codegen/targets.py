"""The table of targets: what is made from the model, by which view and template, and where it goes.

A view module has one function ``build(model) -> Mapping[str, object]`` whose keys are the output paths of
its target as listed here. A value is handed to the output's template as ``view`` (a dataclass or a mapping
of plain values); where the output has no template it must be the finished text. A path that ends in ``/``
is a folder: its value maps file names to texts. The key :data:`TABLES` holds Markdown tables by name, for
injection into the pages of ``docs``.

Guarantees: every output is made by exactly one target; a template that asks for a name its view lacks is a
finding with the template's file and line, and then nothing at all is written.
"""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from .findings import Findings, Location, Rule
from .output import Products

if TYPE_CHECKING:
    from .model import Model

TABLES: Final = "tables"

RULES: Final = (
    Rule(
        "target.view",
        "A view makes exactly the outputs its target lists.",
        "Align codegen/targets.py and the view.",
    ),
    Rule(
        "target.template", "A template renders with its view.", "Give the view the name, or fix the template."
    ),
    Rule("target.clash", "No output is made twice.", "Remove the path from one of the targets."),
)


@dataclass(frozen=True, slots=True)
class Output:
    """One output path relative to the project's root, and the template that makes it (None: the view's own
    text).
    """

    path: str
    template: str | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """A group of outputs that share a view builder (``module.build``)."""

    name: str
    doc: str
    module: str
    outputs: tuple[Output, ...]


TARGETS: Final[tuple[Target, ...]] = (
    Target(
        "model",
        "The resolved model as JSON, with both fingerprints: what `diff` compares and `release` freezes.",
        "codegen.fingerprint",
        (Output("generated/model.json"),),
    ),
    Target(
        "python",
        "The Python package both sides of the wire and the gateway's API are built on.",
        "codegen.views.python",
        (
            Output("generated/__init__.py", "python/__init__.py.j2"),
            Output("generated/py.typed"),
            Output("generated/fingerprint.py", "python/fingerprint.py.j2"),
            Output("generated/limits.py", "python/limits.py.j2"),
            Output("generated/states.py", "python/states.py.j2"),
            Output("generated/families.py", "python/families.py.j2"),
            Output("generated/markup.py", "python/markup.py.j2"),
            Output("generated/settings.py", "python/settings.py.j2"),
            Output("generated/launch.py", "python/launch.py.j2"),
            Output("generated/http.py", "python/http.py.j2"),
            Output("generated/words.py", "python/words.py.j2"),
            Output("generated/errors.py", "python/errors.py.j2"),
            Output("generated/fields.py", "python/fields.py.j2"),
            Output("generated/wire.py", "python/wire.py.j2"),
            Output("generated/frames.py", "python/frames.py.j2"),
            Output("generated/commands.py", "python/commands.py.j2"),
        ),
    ),
    Target(
        "testing",
        "Strategies for property tests, and vectors that the tests of both languages read.",
        "codegen.views.testing",
        (
            Output("generated/testing/__init__.py", "testing/__init__.py.j2"),
            Output("generated/testing/strategies.py", "testing/strategies.py.j2"),
            Output("generated/vectors/frames.json"),
            Output("generated/vectors/commands.json"),
        ),
    ),
    Target(
        "openapi",
        "The HTTP API as an OpenAPI 3.1 document.",
        "codegen.views.openapi",
        (Output("generated/openapi.json"),),
    ),
    Target(
        "c",
        "The C header for engines, and the program that shows the tests what it makes of a message.",
        "codegen.views.c",
        (
            Output("generated/c/colibri_wire.h", "c/colibri_wire.h.j2"),
            Output("generated/c/agree.c", "c/agree.c.j2"),
        ),
    ),
    Target(
        "schema",
        "The shape of the spec file as JSON Schema, for editors.",
        "codegen.views.spec_schema",
        (Output("generated/protocol.schema.json"),),
    ),
    Target(
        "docs",
        "Reference tables of docs/protocol.md and docs/api.md, and the diagrams beside them.",
        "codegen.views.docs",
        (Output("docs/diagrams/"),),
    ),
)


def build_products(model: Model, findings: Findings, targets: tuple[Target, ...] = TARGETS) -> Products:
    """Run every target; what goes wrong is added to ``findings`` and the products are then incomplete."""
    files: dict[str, str] = {}
    tables: dict[str, str] = {}
    for target in targets:
        views = importlib.import_module(target.module).build(model)
        tables.update(views.get(TABLES, {}))
        listed = {output.path for output in target.outputs}
        for path in sorted(set(views) - listed - {TABLES}):
            findings.error(
                "target.view", Location(_file_of(target)), f"the view makes {path!r}, which is not listed"
            )
        for output in target.outputs:
            if output.path not in views:
                message = f"the view of target {target.name!r} does not make {output.path!r}"
                findings.error("target.view", Location(_file_of(target)), message)
                continue
            for path, text in _texts(target, output, views[output.path], findings):
                if path in files:
                    findings.error(
                        "target.clash", Location(path), f"target {target.name!r} makes this file again"
                    )
                files[path] = text
    return Products(files, tables)


def _file_of(target: Target) -> str:
    return target.module.replace(".", "/") + ".py"


def _texts(target: Target, output: Output, view: Any, findings: Findings) -> list[tuple[str, str]]:
    if output.path.endswith("/"):
        return [(output.path + name, text) for name, text in sorted(view.items())]
    if output.template is None:
        return [(output.path, view)]
    text = _render(target, output, output.template, view, findings)
    return [] if text is None else [(output.path, text)]


def _render(target: Target, output: Output, template: str, view: Any, findings: Findings) -> str | None:
    from jinja2 import TemplateError  # jinja2 costs 80 ms to import; only rendering needs it

    from .render import header, render

    context: dict[str, Any] = dict(view) if isinstance(view, Mapping) else {}
    context.update(view=view, header=header(output.path, target.name, template))
    try:
        return render(template, context)
    except (TemplateError, TypeError, ValueError, LookupError, AttributeError) as error:
        file = f"codegen/templates/{template}"
        line = getattr(error, "lineno", None) or _template_line(error, template)
        message = f"cannot render {output.path}: {type(error).__name__}: {error}"
        findings.error("target.template", Location(file, line), message)
        return None


def _template_line(error: BaseException, template: str) -> int:
    """Line of the template where ``error`` arose; Jinja puts template lines into the traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename.endswith(template) and frame.lineno]
    return lines[-1] if lines else 1
