"""House rules that no linter knows."""

from __future__ import annotations

import ast
from pathlib import PurePosixPath

import pytest
from tests.architecture.sources import Source, sources

WITH_CODE = [source for source in sources() if source.text.strip()]


@pytest.mark.parametrize("source", WITH_CODE, ids=lambda source: source.name)
def test_a_module_says_what_it_is_for(source: Source) -> None:
    assert ast.get_docstring(source.tree), "a module begins with what it is for, and what it is not for"


def test_modules_with_code_postpone_annotations() -> None:
    wrong = []
    for source in WITH_CODE:
        code = [node for node in source.tree.body if not isinstance(node, ast.Expr)]
        postponed = any(isinstance(n, ast.ImportFrom) and n.module == "__future__" for n in code)
        if code and not postponed:
            wrong.append(source.name)
    assert not wrong, "these lack `from __future__ import annotations`"


def test_no_module_is_a_bucket() -> None:
    buckets = {"utils", "util", "common", "helpers", "helper", "manager", "managers", "misc", "base_classes"}
    assert not [s.name for s in sources() if buckets & set(PurePosixPath(s.name).with_suffix("").parts)]


def test_imports_stand_at_the_top() -> None:
    """Inside functions they hide cycles and move an ImportError from the start into some later night."""
    wrong = [
        f"{source.name}:{node.lineno}"
        for source in sources()
        for function in ast.walk(source.tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert not wrong


def test_only_the_command_line_prints() -> None:
    wrong = [
        f"{source.name}:{node.lineno}"
        for source in sources()
        if not source.name.startswith(("cli/", "cli.py"))
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert not wrong
