"""The site: it builds without a warning, fetches nothing from elsewhere, and has every public name."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from tests.docs.pages import ROOT

API = (ROOT / "docs" / "reference" / "api.md").read_text("utf-8")
PUBLIC = (ROOT / "tests" / "architecture" / "public_surface.txt").read_text("utf-8").split()
DIRECTIVES = re.findall(r"^::: ([\w.]+)$", API, re.MULTILINE)


def test_the_site_builds_is_whole_and_fetches_nothing_from_elsewhere(tmp_path: Path) -> None:
    """One test, because a build takes a while."""
    site = tmp_path / "site"
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(site)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (built.returncode, built.stdout + built.stderr) == (0, "")
    assert pages_of(ROOT / "docs", ".md") <= pages_of(site, ".html")
    assert not fetching(site)
    assert {name for name in DIRECTIVES if name != "holdfast.__version__"} <= explained(site)


def pages_of(directory: Path, suffix: str) -> set[str]:
    found = {path.relative_to(directory).with_suffix("").as_posix() for path in directory.rglob(f"*{suffix}")}
    assert len(found) > 20
    return {name.replace("README", "index") for name in found}


def fetching(site: Path) -> list[str]:
    """Files that have a browser ask another server; a drawing by Mermaid would, for its program."""
    tag = r"<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//"
    patterns = {".html": rf"{tag}|class=[\"']mermaid", ".css": r"(?:url\(|@import )[\"']?(?:https?:)?//"}
    return [
        str(path)
        for suffix, pattern in patterns.items()
        for path in site.rglob(f"*{suffix}")
        if re.search(pattern, path.read_text("utf-8"))
    ]


def explained(site: Path) -> set[str]:
    """Names under whose heading in the reference there is a text."""
    headings = (site / "reference" / "api.html").read_text("utf-8").split('<h3 id="')[1:]
    return {part.partition('"')[0] for part in headings if re.search(r"<p>(?:<code>)?\w", part)}


def test_the_reference_has_every_public_name_and_no_other() -> None:
    listed = [name.removeprefix("holdfast.") for name in DIRECTIVES if name.count(".") == 1]
    assert sorted(listed) == sorted(PUBLIC)


@pytest.mark.parametrize("name", DIRECTIVES)
def test_what_the_reference_lists_exists(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    assert hasattr(import_module(module), attribute)
