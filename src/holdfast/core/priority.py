"""Priorities by number and by name, and the weight of each; how weights become shares is in `fairness`."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from holdfast.core.errors import InvalidOptions
from holdfast.core.shown import shown

PRIORITY_NAMES: Final[Mapping[str, int]] = MappingProxyType(
    {"critical": 9, "high": 7, "normal": 5, "low": 2, "bulk": 0}
)
LOWEST: Final = 0
HIGHEST: Final = 9
PRIORITIES: Final = range(LOWEST, HIGHEST + 1)
DEFAULT_WEIGHTS: Final[Mapping[str, int | float]] = MappingProxyType(
    {"critical": 60, "high": 30, "normal": 10, "low": 3, "bulk": 1}
)
LARGEST_WEIGHT: Final = 1_000_000
_NAME_LIST = ", ".join(f"{name} ({number})" for name, number in PRIORITY_NAMES.items())


def parse_priority(value: int | str) -> int:
    """The number 0–9 for a number, a digit as text, or a name; 9 is the most urgent."""
    match value:
        case bool():
            pass
        case int() if LOWEST <= value <= HIGHEST:
            return int(value)
        case str() if value in PRIORITY_NAMES:
            return PRIORITY_NAMES[value]
        case str() if len(value) == 1 and value in "0123456789":
            return int(value)
        case str():
            raise InvalidOptions(
                f"there is no priority {value[:40]!r}{_nearest(value)}; give one of {_NAME_LIST} or a number 0 to 9"
            )
    raise InvalidOptions(
        f"priority={shown(value)}: needs a whole number from 0 to 9 (most urgent) or one of {_NAME_LIST}"
    )


def name_of(priority: int) -> str:
    """The name whose weight a priority takes: its own, or the next lower one."""
    for name, number in PRIORITY_NAMES.items():
        if number <= priority:
            return name
    raise InvalidOptions(f"priority={priority!r}: the lowest is 0")


def weight_of(priority: int, weights: Mapping[str, int | float] = DEFAULT_WEIGHTS) -> int | float:
    """The weight of a priority; a name that `weights` leaves out has its default."""
    name = name_of(priority)
    return weights[name] if name in weights else DEFAULT_WEIGHTS[name]


def check_weights(weights: Mapping[str, int | float]) -> dict[str, int | float]:
    """Weights for all five names: those given, and the default for each name left out."""
    for name, weight in weights.items():
        if name not in PRIORITY_NAMES:
            raise InvalidOptions(
                f"weights: there is no priority {shown(name, 40)}{_nearest(name)}; the names are {_NAME_LIST}"
            )
        if isinstance(weight, bool) or not isinstance(weight, (int, float)):
            raise InvalidOptions(f"weights: {name}={shown(weight)} must be a number")
        if not 0 <= weight <= LARGEST_WEIGHT:
            raise InvalidOptions(
                f"weights: {name}={shown(weight)} must lie between 0 (only when nothing else is ready) "
                f"and {LARGEST_WEIGHT:,}"
            )
    whole = {**DEFAULT_WEIGHTS, **weights}
    if not any(whole.values()):
        raise InvalidOptions("weights: all of them are 0; give at least one priority a positive weight")
    return whole


def _nearest(name: object) -> str:
    close = difflib.get_close_matches(str(name).lower(), PRIORITY_NAMES, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
