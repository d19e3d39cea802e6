"""What is measured while a campaign goes on: throughput and memory over time, per role."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field

from tests.campaign.crew import PRODUCER, SUPERVISOR, WORKER, Crew
from tests.campaign.processes import children_of, memory_mb, most

EVERY_S = 5.0


@dataclass(frozen=True, slots=True)
class Sample:
    """At one moment; megabytes are those of the largest process of a role."""

    at_s: float
    jobs: int
    ended: int
    strikes: int
    memory_mb: dict[str, float]


@dataclass(slots=True)
class Samples:
    """Taken at most every few seconds, whenever there is an occasion."""

    judge: int
    postmaster: int | None = None
    began: float = field(default_factory=time.monotonic)
    all: list[Sample] = field(default_factory=list)

    def take(self, crew: Crew, *, jobs: int, live: int, strikes: Counter[str]) -> None:
        at_s = time.monotonic() - self.began
        if self.all and at_s < self.all[-1].at_s + EVERY_S:
            return
        self.all.append(Sample(round(at_s, 1), jobs, max(0, jobs - live), strikes.total(), self._memory(crew)))

    def _memory(self, crew: Crew) -> dict[str, float]:
        supervisors = [child.pid for child in crew.of(SUPERVISOR)]
        roles = {
            "worker": [child.pid for child in crew.of(WORKER)],
            "supervisor": supervisors,
            "process under a supervisor": [pid for each in supervisors for pid in children_of(each)],
            "producer": [child.pid for child in crew.of(PRODUCER)],
            "judge": [self.judge],
        }
        return {role: round(most(map(memory_mb, pids)), 1) for role, pids in roles.items()}
