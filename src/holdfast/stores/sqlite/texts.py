"""Texts that statements ask for as bytes: one that is no text at all would fail the whole statement otherwise."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def text_of(value: Any) -> str | None:
    """None where it is no text."""
    try:
        return value.decode() if isinstance(value, bytes) else None
    except UnicodeDecodeError:
        return None


def as_text(row: Iterable[Any]) -> tuple[Any, ...]:
    """A row with its texts as they are, and what nobody can read with marks in its place."""
    return tuple(value.decode("utf-8", "replace") if isinstance(value, bytes) else value for value in row)
