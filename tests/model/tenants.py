"""Tags in the model: how a lane with tenants is ordered. Written from decision 0086, not from a store."""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.core.fairness import Lane
from holdfast.core.job import JobId

COST = 10_000


@dataclass
class Tags:
    """What is known of all lanes."""

    tenanted: set[str] = field(default_factory=set)
    reached: dict[Lane, int] = field(default_factory=dict)
    last: dict[tuple[Lane, str], tuple[int, JobId]] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)

    def give(self, lane: Lane, tenant: str, job_id: JobId, waiting: set[tuple[int, JobId, str]]) -> int:
        """The tag of a job that goes to the tail; `waiting` is what waits in its lane, with tags and tenants."""
        if lane.queue not in self.tenanted:
            return 0
        cost = round(COST / self.weights.get(tenant, 1.0))
        reached = self.reached.get(lane, 0)
        tag = base = max(reached, 1)
        last = self.last.get((lane, tenant))
        if last is not None:
            before = last[0] if last[0] <= reached or (*last, tenant) in waiting else None
            if before is None:  # who cancels his last job does not begin anew beside his own backlog
                others = [each for each, _, whose in waiting if whose == tenant and reached - cost < each < last[0]]
                before = max(others, default=last[0] if last[0] <= base else None)
            tag = base if before is None else max(base, before + cost)
        self.last[lane, tenant] = (tag, job_id)
        return tag

    def claimed(self, lane: Lane, tag: int) -> None:
        if tag:
            self.reached[lane] = max(tag, self.reached.get(lane, 1))

    def sweep(self) -> None:
        self.last = {key: last for key, last in self.last.items() if last[0] > self.reached.get(key[0], 0)}
