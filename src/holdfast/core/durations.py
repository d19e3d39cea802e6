"""Durations as users give them, as seconds; nothing else."""

from __future__ import annotations

from datetime import timedelta
from typing import Final, TypeAlias

from holdfast.core.errors import InvalidOptions
from holdfast.core.shown import shown

Seconds: TypeAlias = float | int | timedelta

LONGEST_S: Final = 10 * 365 * 86_400.0


def seconds(name: str, value: Seconds, *, at_least: float = 0.0) -> float:
    """A duration as seconds."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidOptions(f"{name}={shown(value)}: needs seconds or a timedelta, not {type(value).__name__}")
    if not at_least <= value <= LONGEST_S:
        raise InvalidOptions(f"{name}={shown(value)}: needs to be from {at_least:g} seconds to ten years")
    return float(value)
