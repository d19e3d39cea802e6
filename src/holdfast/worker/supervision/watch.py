"""Which worker processes have to be ended or replaced, told from their boards alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from holdfast.config import Config
from holdfast.core.shown import counted
from holdfast.worker.supervision.board import RunSeen
from holdfast.worker.supervision.child import Child, Role

#: A process that has shown no sign of life for this share of a lease is ended, while its lease still lasts.
SILENT: Final = 0.6
#: Looks are so far apart at most, in seconds and as a share of a lease.
LOOK_EVERY_S: Final = 0.5
LOOK_EVERY: Final = 0.1
#: A supervisor that did not come to look for this share of a lease was held up itself, and does not trust what it sees.
HELD_UP: Final = 0.3
#: Beyond the grace period, for winding up; then it is killed.
STOP_MARGIN_S: Final = 10.0


class Sentence(NamedTuple):
    """A process that has to be ended, why, and for which runs."""

    child: Child
    why: str
    culprits: Sequence[RunSeen]


class Watch:
    """Looks at boards; knows since when it can trust what it sees."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._looked_s = monotonic()
        self._awake_since_s = self._looked_s

    @staticmethod
    def interval_s(config: Config) -> float:
        """How long to wait from one look to the next."""
        return min(LOOK_EVERY_S, LOOK_EVERY * config.lease_s)

    def look(self, children: Iterable[Child], config: Config) -> Iterator[Sentence]:
        """The processes that have to be ended now."""
        now_s = self._monotonic()
        if now_s - self._looked_s > HELD_UP * config.lease_s:
            self._awake_since_s = now_s  # all of us were stopped: they get time to show that they live
        self._looked_s = now_s
        for child in children:
            overdue = [run for run in child.board.runs() if now_s >= run.overdue_s + config.kill_after_s]
            if overdue:
                shown = ", ".join(f"job {run.job_id} {run.task}" for run in overdue)
                yield Sentence(child, f"{shown} did not end at its hard limit of {overdue[0].limit_s:g} s", overdue)
            elif (silent_s := self._silence(child, now_s)) > SILENT * config.lease_s:
                yield Sentence(child, f"it has shown no sign of life for {silent_s:.1f} s", ())

    def overstaying(self, children: Iterable[Child], config: Config) -> Iterator[Child]:
        """Those that only stood by, were told to end and have not: something of theirs hangs while it starts."""
        now_s = self._monotonic()
        for child in children:
            told = child.role is Role.SPARE and child.leaving is not None and child.killed is None
            if told and now_s - child.leaving_since_s > config.grace_s + STOP_MARGIN_S:
                yield child

    def worn_out(self, child: Child, config: Config) -> str | None:
        """Why a process should be replaced by a new one, if it should."""
        done, age_s = child.board.worker().done, self._monotonic() - child.working_since_s
        if config.max_jobs and done >= config.max_jobs:
            return f"it has done {counted(done, 'job')}"
        if config.max_age_s and age_s >= config.max_age_s:
            return f"it is {age_s:.0f} s old"
        if config.max_memory_mb and (memory_mb := child.memory_mb()) > config.max_memory_mb:
            return f"it has {memory_mb:.0f} MB of memory"
        return None

    def _silence(self, child: Child, now_s: float) -> float:
        seen = child.board.worker()
        if seen.worker is None or not seen.beat_s:  # it has no lease that could end: not yet, or not any more
            return 0.0
        return now_s - max(seen.beat_s, self._awake_since_s, child.working_since_s)


def describe(child: Child, now_s: float) -> Iterator[str]:
    """A process and what it runs, in lines for people."""
    seen, runs = child.board.worker(), child.board.runs()
    doing = f"{len(runs)} running, {seen.done} done" if seen.worker else "ready" if child.is_ready else "starting"
    leaving = f", leaves: {child.leaving}" if child.leaving else ""
    yield (
        f"process {child.pid}, {child.role.name.lower()}, {now_s - child.started_s:.0f} s old: {doing}, "
        f"loop lag {seen.lag_s * 1000:.0f} ms, {child.memory_mb():.0f} MB{leaving}"
    )
    for run in runs:
        yield f"  process {child.pid}: job {run.job_id} {run.task}, for {now_s - run.began_s:.1f} s"
