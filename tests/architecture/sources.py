"""The package's own files, read once, for the tests that look at code rather than run it."""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "holdfast"


@dataclass(frozen=True)
class Source:
    """One module of the package; parsed when a test asks for its tree, as every process of a run collects all tests."""

    name: str
    """Its path below the package, as in `core/errors.py`."""
    text: str

    @functools.cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def lines(self) -> int:
        return self.text.count("\n")


def sources(below: str = "") -> list[Source]:
    """Every module of the package, or of one part of it."""
    found = [source for source in _all() if source.name.startswith(f"{below}/" if below else "")]
    assert found, f"no source files below {PACKAGE / below}: the test would check nothing"
    return found


@functools.cache
def _all() -> list[Source]:
    return [
        Source(path.relative_to(PACKAGE).as_posix(), path.read_text(encoding="utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    ]


def dotted(node: ast.AST) -> str:
    """`a.b.c` for such an expression, else nothing."""
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute() if start := dotted(node.value):
            return f"{start}.{node.attr}"
        case _:
            return ""


def imported(tree: ast.AST) -> list[tuple[int, str]]:
    """Line and full name of everything imported; `from os import environ` is `os.environ`."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                found += [(node.lineno, alias.name) for alias in node.names]
            case ast.ImportFrom():
                module = "." * node.level + (node.module or "")
                found += [(node.lineno, f"{module}.{alias.name}") for alias in node.names]
    return found
