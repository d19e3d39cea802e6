"""The environment has one reader, so that every setting is documented, checked, and known by its origin."""

from __future__ import annotations

import ast

from tests.architecture.sources import Source, dotted, imported, sources

READERS = {"os.environ", "os.environb", "os.getenv", "os.getenvb", "os.putenv", "os.unsetenv"}


def uses(source: Source) -> list[str]:
    named = [(n.lineno, dotted(n)) for n in ast.walk(source.tree) if isinstance(n, ast.Attribute)]
    return [f"{source.name}:{line} {name}" for line, name in named + imported(source.tree) if name in READERS]


def test_only_config_reads_the_environment() -> None:
    assert [use for source in sources() if source.name != "config.py" for use in uses(source)] == []


def test_the_check_sees_what_config_does() -> None:
    (config,) = (source for source in sources() if source.name == "config.py")
    assert uses(config)
