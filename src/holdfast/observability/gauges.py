"""What was seen of the cluster, as series."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from holdfast.observability import catalogue as c
from holdfast.observability.cluster import Away, Cluster
from holdfast.observability.merging import Merged
from holdfast.observability.tally import Series

_STATES = ("ready", "scheduled", "blocked", "parked", "running", "dead")


def cluster_series(seen: Cluster | Away | None, label: Callable[[str], str]) -> Iterator[Series]:
    """`label` bounds the names of queues; those without one of their own count together."""
    yield Series(c.STORE_UP, (), (float(isinstance(seen, Cluster)),))
    if isinstance(seen, Cluster):
        yield from Merged(_queues(seen, label))
        yield Series(c.WORKERS, (), (len(seen.workers),))
        yield Series(c.WORKER_SLOTS, (), (sum(worker.concurrency for worker in seen.workers),))
        yield Series(c.WORKERS_LAG, (), (max((worker.lag_s for worker in seen.workers), default=0.0),))
        yield Series(c.LEADER, (), (float(seen.term is not None),))


def _queues(seen: Cluster, label: Callable[[str], str]) -> Iterator[Series]:
    for queue in seen.queues:
        name = label(queue.name)
        for priority, count in queue.by_priority.items():
            yield Series(c.DEPTH, (name, str(priority)), (count,))
        for state in _STATES:
            yield Series(c.JOBS, (name, state), (getattr(queue, state),))
        yield Series(c.OLDEST, (name,), (queue.oldest_ready_s or 0.0,))
        yield Series(c.ACCEPTING, (name,), (float(queue.accepting),))
        yield Series(c.PAUSED, (name,), (float(queue.settings.paused),))
        yield Series(c.QUEUE_WORKERS, (name,), (seen.workers_of(queue.name),))
