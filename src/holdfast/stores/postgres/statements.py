"""Loads the SQL files that lie beside this module; the schema's name is all that is ever put into them, once.

Rows that belong to given ids are joined by `x.job_id = ANY (ARRAY[y.job_id])`, which finds what `x.job_id = y.job_id`
finds, but which the planner can only use to look them up, one by one. With the plain form it may read the whole table
instead, when statistics from before a backlog say that there is nothing in it (decision 0101).
"""

from __future__ import annotations

import re
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING

from holdfast.core.urls import check_schema

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.resources.abc import Traversable

DEFAULT_SCHEMA = "holdfast"

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
# The files are valid as they are, for the default schema: `holdfast.job`, `CREATE SCHEMA holdfast;`.
_SCHEMA = re.compile(r"\bholdfast(?=\.)")


def statements(schema: str) -> Mapping[str, str]:
    """Every statement of `sql/*.sql` by `file.name`, for a schema."""
    return read_statements(files(__package__) / "sql", schema)


def read_statements(folder: Traversable, schema: str) -> Mapping[str, str]:
    """The same of any folder."""
    check_schema(schema)
    found: dict[str, str] = {}
    for entry in folder.iterdir():
        verb = entry.name.removesuffix(".sql")
        parts = _NAME.split(_SCHEMA.sub(schema, entry.read_text("utf-8")))
        for name, text in zip(parts[1::2], parts[2::2], strict=True):
            found[f"{verb}.{name}"] = text.strip()
    return MappingProxyType(found)


def migrations(schema: str) -> list[tuple[int, str, str]]:
    """(version, name, script) of every migration, in order."""
    check_schema(schema)
    found = [
        (int(entry.name[:4]), entry.name, _SCHEMA.sub(schema, entry.read_text("utf-8")))
        for entry in (files(__package__) / "migrations").iterdir()
        if entry.name.endswith(".sql")
    ]
    return sorted(found)
