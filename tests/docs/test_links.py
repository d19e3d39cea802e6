"""What the documentation points at exists: pages, headings, files, directories, tests, contract checks."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from tests.docs.pages import ROOT, name_of, pages, prose

from holdfast.testing.contracts import CHECKS

#: Where a path in the text may start.
BASES = ("", "src/holdfast", "src/holdfast/stores/sqlite", "src/holdfast/stores/sqlite/sql", "docs", "tests")
PATH = re.compile(r"[\w.*-]+(?:/[\w.*-]+)*(?:\.(?:py|sql|md|txt)|/)")
#: Paths that stand for a user's own files, not for ours.
USERS = {"app.py", "holdfast.toml", "pyproject.toml", "shop.py", "shop/jobs.py", "test_shop.py"}


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", prose(page.read_text("utf-8")), re.MULTILINE)
    return {_anchor(heading) for heading in headings}


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page.read_text("utf-8"))):
        if target.startswith(("https://", "http://")):
            continue
        file, _, anchor = target.partition("#")
        other = (page.parent / file).resolve() if file else page
        if not other.exists() or (anchor and anchor not in _anchors(other)):
            broken.append(target)
    assert not broken


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_files_that_are_named_exist(page: Path) -> None:
    names = {name for name in re.findall(r"`([^`\n]+)`", prose(page.read_text("utf-8"))) if PATH.fullmatch(name)}
    missing = [name for name in names - USERS if not any(_exists(base, name) for base in BASES)]
    assert not missing


def _exists(base: str, name: str) -> bool:
    return bool(list((ROOT / base).glob(name.rstrip("/"))))


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_tests_and_checks_that_are_named_exist(page: Path) -> None:
    text = prose(page.read_text("utf-8"))
    missing = [f"{file}::{test}" for file, test in re.findall(r"`([\w/]+\.py)::(\w+)`", text) if not _has(file, test)]
    missing += [check for check in re.findall(r"`contract: ([\w.]+)`", text) if check not in CHECKS]
    assert not missing


def _has(file: str, test: str) -> bool:
    path = ROOT / file
    if not path.is_file():
        return False
    return any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == test
        for node in ast.parse(path.read_text("utf-8")).body
    )
