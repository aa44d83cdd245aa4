"""From views to texts: what a view and a template must agree on, and how a disagreement is told."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest

from codegen.findings import Findings
from codegen.model import Model
from codegen.output import Products
from codegen.resolve import load_model
from codegen.targets import TARGETS, Output, Target, build_products

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def model() -> Model:
    return load_model(ROOT / "spec/protocol.yaml")


def run(
    model: Model, monkeypatch: pytest.MonkeyPatch, view: Mapping[str, object], *outputs: Output
) -> tuple[Products, list[tuple[str, str, str]]]:
    module = ModuleType("view_under_test")
    module.__dict__["build"] = lambda _: view
    monkeypatch.setitem(sys.modules, "view_under_test", module)
    findings = Findings()
    products = build_products(model, findings, (Target("test", "For a test.", "view_under_test", outputs),))
    return products, [(f.rule, str(f.location), f.message) for f in findings]


def test_texts_folders_and_tables(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    view = {"a.txt": "text", "folder/": {"b": "2", "a": "1"}, "tables": {"t": "| x |"}}
    products, findings = run(model, monkeypatch, view, Output("a.txt"), Output("folder/"))
    assert findings == []
    assert products == Products({"a.txt": "text", "folder/a": "1", "folder/b": "2"}, {"t": "| x |"})


def test_a_view_that_makes_too_much_or_too_little(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    _, findings = run(model, monkeypatch, {"b.txt": ""}, Output("a.txt"))
    assert findings == [
        ("target.view", "view_under_test.py:1:1", "the view makes 'b.txt', which is not listed"),
        ("target.view", "view_under_test.py:1:1", "the view of target 'test' does not make 'a.txt'"),
    ]


def test_two_outputs_at_one_path(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    _, findings = run(model, monkeypatch, {"d/": {"a": ""}, "d/a": ""}, Output("d/"), Output("d/a"))
    assert findings == [("target.clash", "d/a:1:1", "target 'test' makes this file again")]


def test_a_name_the_view_lacks_is_a_finding_in_the_template(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = "python/limits.py.j2"
    products, findings = run(model, monkeypatch, {"x.py": {}}, Output("x.py", template))
    ((rule, place, message),) = findings
    file, line, _ = place.split(":")
    text = (ROOT / file).read_text(encoding="utf-8").splitlines()[int(line) - 1]
    assert (rule, file) == ("target.template", f"codegen/templates/{template}")
    assert "cannot render x.py: UndefinedError: " in message
    assert "view" in text
    assert products.files == {}


def test_the_real_table_has_no_path_twice_and_every_template_is_used() -> None:
    paths = [output.path for target in TARGETS for output in target.outputs]
    assert len(set(paths)) == len(paths)
    used = {output.template for target in TARGETS for output in target.outputs if output.template}
    templates = ROOT / "codegen/templates"
    missing = [name for name in used if not (templates / name).is_file()]
    assert missing == []
    texts = "".join(path.read_text(encoding="utf-8") for path in templates.rglob("*") if path.is_file())
    views = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "codegen/views").glob("*.py"))
    for path in templates.rglob("*"):
        name = path.relative_to(templates).as_posix()
        if path.is_file() and name not in used:
            assert name in texts or name in views or path.name in views, f"{name} belongs to no target"


def test_every_generated_file_says_where_it_comes_from(model: Model) -> None:
    findings = Findings()
    products = build_products(model, findings)
    assert list(findings) == []
    for path, text in products.files.items():
        if Path(path).suffix in (".py", ".h", ".c") and text:
            head = text[:600]
            assert "Generated from spec/protocol.yaml" in head, path
            assert "python -m codegen generate" in head, path
