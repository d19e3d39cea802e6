"""The numbers that a process counts, in a piece of memory that another process may read, also after its death.

Counted by one process, under a lock (events come from several threads); read by anybody, at any moment. Layout:

    header   bytes used of the names, written after they are
    names    one JSON list per line: the metric's name, its first slot, how many, its labels
    slots    a number each; a histogram has its buckets, then the sum
"""

from __future__ import annotations

import json
import threading
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from holdfast.observability.catalogue import BY_NAME, Metric
from holdfast.observability.naming import OTHER

_HEADER: Final = 64
_NAMES: Final = 384 * 1024
_SLOTS: Final = (1024 * 1024 - _HEADER - _NAMES) // 8
SIZE: Final = _HEADER + _NAMES + 8 * _SLOTS


class Full(Exception):
    """There is no room for one more series."""


class Series(NamedTuple):
    """One series, as it stands."""

    metric: Metric
    labels: tuple[str, ...]
    values: Sequence[float]


class Tally:
    """See the module's sentence. Without `memory`, or with too little of it, in memory of its own."""

    def __init__(self, memory: memoryview | None = None) -> None:
        if memory is None or len(memory) < SIZE:
            memory = memoryview(bytearray(SIZE))
        self.lock = threading.Lock()
        self._used = memory[:8].cast("q")
        self._names = memory[_HEADER : _HEADER + _NAMES]
        self._at = self._used[0]
        self._taken = 0
        self._series: dict[tuple[str, tuple[str, ...]], int] = {}
        self.numbers = memory[_HEADER + _NAMES : SIZE].cast("d")
        """By slot. To add is to read and to write: only under the lock."""

    def series(self, metric: Metric, *labels: str) -> int:
        """The first slot of a series, which exists from now on. Full: there is no room for it."""
        slot = self._series.get((metric.name, labels))
        if slot is not None:
            return slot
        with self.lock:
            line = json.dumps([metric.name, self._taken, metric.slots, *labels]).encode() + b"\n"
            if self._at + len(line) > _NAMES or self._taken + metric.slots > _SLOTS:
                raise Full
            self._names[self._at : self._at + len(line)] = line
            self._at += len(line)
            slot, self._taken = self._taken, self._taken + metric.slots
            self._used[0] = self._at
            self._series[metric.name, labels] = slot
        return slot

    def add(self, slot: int, amount: float = 1.0) -> None:
        with self.lock:
            self.numbers[slot] += amount

    def put(self, slot: int, value: float) -> None:
        self.numbers[slot] = value

    def observe(self, slot: int, bounds: Sequence[float], value: float) -> None:
        with self.lock:
            self.numbers[slot + bisect_left(bounds, value)] += 1.0
            self.numbers[slot + len(bounds) + 1] += value

    def read(self) -> Iterator[Series]:
        """Every series, as it stands."""
        return read(bytes(self._used), bytes(self._names[: self._at]), self.numbers)


def read_margin(memory: bytes) -> Iterator[Series]:
    """The same from the memory of another process, which may have another version of us: what is not known is left
    out."""
    if len(memory) < SIZE:
        return iter(())
    used = memoryview(memory)[:8]
    numbers = memoryview(memory)[_HEADER + _NAMES : SIZE].cast("d")
    return read(bytes(used), memory[_HEADER : _HEADER + _NAMES], numbers)


def read(used: bytes, names: bytes, numbers: memoryview[float]) -> Iterator[Series]:
    """Series by their names; those of `other` that have nothing to say are left out."""
    length = memoryview(used).cast("q")[0]
    for line in names[: max(0, length)].splitlines():
        try:
            name, slot, count, *labels = json.loads(line)
            metric = BY_NAME[name]
        except (ValueError, KeyError, TypeError):
            continue
        if metric.slots == count and len(metric.labels) == len(labels):
            values = numbers[slot : slot + count].tolist()
            if any(values) or OTHER not in labels:
                yield Series(metric, tuple(labels), values)
