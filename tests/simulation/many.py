"""Many seeds in several processes, and what happened in all of them together."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field

from tests.simulation.replaced import replaced
from tests.simulation.run import Outcome, simulate_here

CHUNK = 25


@dataclass(slots=True)
class Totals:
    """Of all seeds so far. `broken`: the seeds that failed, and what was wrong in each."""

    seeds: int = 0
    jobs: int = 0
    runs: int = 0
    virtual_s: float = 0.0
    slowest_rest_s: float = 0.0
    slowest_rest_seed: int = 0
    overlaps: int = 0
    states: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    happened: Counter[str] = field(default_factory=Counter)
    broken: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def add(self, outcome: Outcome) -> None:
        self.seeds += 1
        self.jobs += outcome.report.jobs
        self.runs += outcome.report.runs
        self.virtual_s += outcome.virtual_s
        self.overlaps += outcome.report.overlapping_runs
        self.states.update(outcome.report.states)
        self.causes.update(outcome.report.extra_runs)
        self.happened.update(outcome.happened)
        if outcome.to_rest_s > self.slowest_rest_s:
            self.slowest_rest_s, self.slowest_rest_seed = outcome.to_rest_s, outcome.seed
        if outcome.broken:
            self.broken[outcome.seed] = outcome.broken

    def join(self, other: Totals) -> None:
        self.seeds += other.seeds
        self.jobs += other.jobs
        self.runs += other.runs
        self.virtual_s += other.virtual_s
        self.overlaps += other.overlaps
        self.states.update(other.states)
        self.causes.update(other.causes)
        self.happened.update(other.happened)
        self.broken |= other.broken
        if other.slowest_rest_s > self.slowest_rest_s:
            self.slowest_rest_s, self.slowest_rest_seed = other.slowest_rest_s, other.slowest_rest_seed


def run_seeds(seeds: range, only: str | None = None) -> Totals:
    """In this process."""
    totals = Totals()
    with replaced():
        for seed in seeds:
            totals.add(simulate_here(seed, only=only))
            if totals.seeds % 20 == 0:
                gc.collect()
    gc.collect()
    return totals


def run_many(seeds: range, *, processes: int, only: str | None = None) -> Iterator[Totals]:
    """The totals of part after part, as they come."""
    parts = [seeds[start : start + CHUNK] for start in range(0, len(seeds), CHUNK)]
    if processes == 1:
        yield from (run_seeds(part, only) for part in parts)
        return
    with ProcessPoolExecutor(processes, initializer=gc.freeze) as pool:
        waiting: set[Future[Totals]] = set()
        for part in parts:
            waiting.add(pool.submit(run_seeds, part, only))
            if len(waiting) >= 2 * processes:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (each.result() for each in done)
        yield from (each.result() for each in waiting)
