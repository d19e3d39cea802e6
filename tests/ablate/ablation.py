"""What an ablation is."""

from __future__ import annotations

from typing import NamedTuple


class Ablation(NamedTuple):
    """One safeguard, removed by replacing `old` with `new` in `file`."""

    promise: str
    safeguard: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    """Arguments for pytest: paths, and `-k` expressions."""
