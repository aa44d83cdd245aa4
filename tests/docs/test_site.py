"""The site builds strictly: no broken link, no broken anchor, no page outside the navigation."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("mkdocs") is None, reason="the extra `docs` is not installed"
)


def build(top: Path, site: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", "docs/mkdocs.yml"]
    return subprocess.run(
        [*command, "-d", str(site)],
        cwd=top,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_site_builds_strictly_with_every_page_in_the_navigation(tmp_path):
    done = build(ROOT, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "not included in the" not in done.stderr
    for page in (ROOT / "docs").glob("*.md"):
        name = "index.html" if page.stem == "index" else f"{page.stem}/index.html"
        assert (tmp_path / name).is_file()


def test_broken_anchor_stops_the_build(tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text("# Top\n\n[away](#nowhere)\n")
    settings = (ROOT / "docs" / "mkdocs.yml").read_text().partition("\nnav:")[0]
    (docs / "mkdocs.yml").write_text(settings.replace("../build/site", "../site"))
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode == 1
    assert "nowhere" in done.stderr
