"""How much work a queue has now, as autoscalers read it: KEDA's metrics-api scaler takes one number of this."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from holdfast.app import Holdfast
from holdfast.core.errors import StoreUnavailable
from holdfast.core.names import check_name
from holdfast.observability.cluster import Away, Cluster
from holdfast.observability.views import view_of


@dataclass(frozen=True, slots=True)
class Demand:
    """What waits, what runs, and who is there for it."""

    queue: str
    value: int
    """Jobs that could run now: ready and running; of a paused queue only those that run. Divide it by the jobs that a
    worker is to have, and you have the number of workers."""
    ready: int
    running: int
    oldest_ready_s: float
    workers: int
    slots: int
    """Jobs that these workers may run at once, in this queue and others."""
    paused: bool
    known: bool
    """Whether the store has ever heard of the queue."""

    def to_data(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


async def autoscale(hf: Holdfast, queue: str) -> Demand:
    """The demand for workers of one queue; of one that nobody has heard of, none. StoreUnavailable: it is not known."""
    check_name("queue", queue)
    seen = await view_of(hf).look()
    if isinstance(seen, Away):
        raise StoreUnavailable(seen.why)
    return demand(seen, queue)


def demand(seen: Cluster, queue: str) -> Demand:
    """The same of what was seen."""
    serving = [worker for worker in seen.workers if not worker.queues or queue in worker.queues]
    about = {"workers": len(serving), "slots": sum(worker.concurrency for worker in serving)}
    found = next((each for each in seen.queues if each.name == queue), None)
    if found is None:
        return Demand(queue, 0, 0, 0, 0.0, paused=False, known=False, **about)
    paused = found.settings.paused
    return Demand(
        queue,
        value=found.running + (0 if paused else found.ready),
        ready=found.ready,
        running=found.running,
        oldest_ready_s=found.oldest_ready_s or 0.0,
        paused=paused,
        known=True,
        **about,
    )
