"""Which names may be labels: a bounded number of them, and `other` for the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

OTHER: Final = "other"


class Names:
    """The first so many that come and are known stay for the life of the process; all others are `other`.

    Whoever sends jobs with made-up names to an app makes no new series, and costs no memory.
    """

    def __init__(self, most: int, *, known: Callable[[str], bool] = lambda name: True) -> None:
        self._most = most
        self._known = known
        self._taken: set[str] = set()

    def __call__(self, name: str) -> str:
        if name in self._taken:
            return name
        if len(self._taken) >= self._most or not self._known(name):
            return OTHER
        self._taken.add(name)
        return name
