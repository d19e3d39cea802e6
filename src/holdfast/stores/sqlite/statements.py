"""Loads the SQL files that lie beside this module; not for building SQL (nothing is ever substituted into it)."""

from __future__ import annotations

import re
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def load(verb: str) -> Mapping[str, str]:
    """The statements of `sql/<verb>.sql`, by the names in their `-- name:` lines."""
    text = (files(__package__) / "sql" / f"{verb}.sql").read_text("utf-8")
    parts = _NAME.split(text)
    return MappingProxyType(dict(zip(parts[1::2], (part.strip() for part in parts[2::2]), strict=True)))


def migrations() -> list[tuple[int, str, str]]:
    """(version, name, script) of every migration, in order."""
    found = [
        (int(entry.name[:4]), entry.name, entry.read_text("utf-8"))
        for entry in (files(__package__) / "migrations").iterdir()
        if entry.name.endswith(".sql")
    ]
    return sorted(found)
