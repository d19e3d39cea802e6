"""Several series of the same name and labels as one: sums, or the least or the most of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from holdfast.observability.catalogue import BY_NAME, Merge
from holdfast.observability.naming import OTHER
from holdfast.observability.tally import Series

_MERGERS: Final[dict[Merge, Callable[[float, float], float]]] = {
    Merge.SUM: lambda one, other: one + other,
    Merge.LEAST: min,
    Merge.MOST: max,
}

#: Processes that come and go under one supervisor may each bring names of their own.
MOST_SERIES: Final = 10_000


class Merged:
    """Takes series one after the other; the order in which they first came stays. So many, and the rest is `other`."""

    def __init__(self, series: Iterable[Series] = (), *, most: int = MOST_SERIES) -> None:
        self._most = most
        self._found: dict[tuple[str, tuple[str, ...]], list[float]] = {}
        self.take(series)

    def take(self, series: Iterable[Series]) -> None:
        for metric, labels, values in series:
            known = self._found.get((metric.name, labels))
            if known is None and labels and len(self._found) >= self._most:
                labels = (OTHER,) * len(labels)
                known = self._found.get((metric.name, labels))
            merge = _MERGERS[metric.merge]
            merged = list(values) if known is None else list(map(merge, known, values))
            self._found[metric.name, labels] = merged

    def __iter__(self) -> Iterator[Series]:
        return (Series(BY_NAME[name], labels, values) for (name, labels), values in self._found.items())
