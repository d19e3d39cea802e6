"""Every metric there is: its name, kind, labels and meaning. Who counts it, and how it is written, is elsewhere.

Labels are names that the app's code or its operators chose (tasks, queues, reasons), bounded in `naming`; never
tenants, ids or arguments.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """As Prometheus calls them."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Merge(StrEnum):
    """What several processes under one supervisor, or several queues called `other`, say together."""

    SUM = "sum"
    LEAST = "least"
    MOST = "most"


class Source(StrEnum):
    """Who knows it."""

    PROCESS = "process"
    """Counted where it happens: every process has its own, and they are summed up over all."""
    STORE = "store"
    """Read from the store at a scrape: the same from every process, so take the largest and never the sum."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric."""

    name: str
    """As it is scraped; that of a counter ends in `_total`."""
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    source: Source = Source.PROCESS
    merge: Merge = Merge.SUM
    bounds: tuple[float, ...] = ()
    """Upper bounds of a histogram's buckets, without the infinite one."""

    @property
    def slots(self) -> int:
        """Numbers that one series of it needs."""
        return len(self.bounds) + 2 if self.bounds else 1


SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
LAGS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

_JOB: Final = ("queue", "task")


def _counter(name: str, help: str, *labels: str) -> Metric:  # noqa: A002  # what Prometheus calls it
    return Metric(f"holdfast_{name}_total", Kind.COUNTER, help, labels)


def _gauge(name: str, help: str, *labels: str, merge: Merge = Merge.SUM) -> Metric:  # noqa: A002  # likewise
    return Metric(f"holdfast_{name}", Kind.GAUGE, help, labels, merge=merge)


def _seen(name: str, help: str, *labels: str, merge: Merge = Merge.SUM) -> Metric:  # noqa: A002  # likewise
    return Metric(f"holdfast_{name}", Kind.GAUGE, help, labels, Source.STORE, merge)


def _histogram(name: str, help: str, bounds: tuple[float, ...], *labels: str) -> Metric:  # noqa: A002  # likewise
    return Metric(f"holdfast_{name}_seconds", Kind.HISTOGRAM, help, labels, bounds=bounds)


# Jobs
ENQUEUED = _counter("jobs_enqueued", "Jobs that this process has enqueued, and the store has committed.", *_JOB)
STARTED = _counter("jobs_started", "Runs that have begun here.", *_JOB)
SETTLED = _counter(
    "jobs_settled",
    "Runs whose outcome is written: succeeded, retry, snooze, handed_back, crashed, parked, dead or cancelled.",
    *_JOB,
    "outcome",
)
RETRIED = _counter(
    "jobs_retried", "Runs that failed and will be tried again, by the class of the error.", "task", "error_class"
)
DEAD = _counter("jobs_dead", "Jobs that became dead letters by a run here, by the reason.", "task", "reason")
RUN = _histogram("job_run", "Seconds from the start of a run until its outcome was written.", SECONDS, *_JOB)
WAIT = _histogram(
    "job_wait", "Seconds from a job's enqueue to its first start; a delay that was asked for counts in.", SECONDS, *_JOB
)
PARKED = _counter("jobs_parked", "Runs that ended because the job waits for something other than time.", "reason")
LOST = _counter("jobs_lost", "Outcomes refused as stale: the job belonged to somebody else by then.")
OVERDUE = _counter("jobs_overdue", "Runs that did not end at their hard limit.")
# Upkeep
PROMOTED = _counter("jobs_promoted", "Scheduled jobs that this process made ready when they were due.")
PRUNED = _counter("jobs_pruned", "Ended jobs that this process removed after their retention.")
SWEPT = _counter("jobs_swept", "What this process's sweeps had to put right; more than a few are worth a look.")
REAPED_WORKERS = _counter("workers_reaped", "Silent workers that this process declared dead.")
REAPED_JOBS = _counter("jobs_reaped", "Jobs of silent workers that this process made ready again.")
LEADS = _counter("leads_taken", "Times that this process took the lead in the upkeep.")
CLOCK = _counter("clock_disagreements", "Times that the store's clock moved against this machine's.")
# Backpressure
CLOSED = _counter("queue_closed", "Times that a queue was found full by this process.", "queue")
REFUSED = _counter(
    "enqueues_refused", "Enqueues that were refused, because the queue is full or draining.", "queue", "why"
)
STRETCHED = _counter("queue_retries_stretched", "Times that a queue's retries went over their budget here.", "queue")
BREAKERS = _counter("breakers_opened", "Circuit breakers that runs here have opened.")
# Workers and processes
LEASES_LOST = _counter("leases_lost", "Leases that a worker here could not renew in time.")
LAG = _histogram("loop_lag", "How late the event loop was, looked at twice a second.", LAGS)
BLOCKED = _counter("loop_blocked", "Times that a job kept the event loop from everything else for a second.")
SERVICES = _counter("services_crashed", "Background loops of this process that ended by an unexpected error.")
PROCESSES = _gauge("processes", "Worker processes of this supervisor, by what they do.", "role")
SLOTS = _gauge("process_slots", "Jobs that the worker processes of this supervisor may run at once.")
TAKEN = _gauge("process_slots_taken", "Jobs that they run now.")
LAG_NOW = _gauge(
    "process_lag_seconds", "The longest that one of their event loops has kept others waiting now.", merge=Merge.MOST
)
DIED = _counter("processes_died", "Worker processes that ended unasked.")
KILLED = _counter("processes_killed", "Worker processes that the supervisor had to kill.")
HANDED_BACK = _counter("jobs_handed_back", "Jobs of dead worker processes that the supervisor handed back.")
# Store and transport, as this process finds them
STORE_UP = _gauge(
    "store_up", "Whether the store answered this scrape; what is read from it is left out where not.", merge=Merge.LEAST
)
STORE_LOST = _counter("store_lost", "Times that the store stopped answering this process.")
TRANSPORT_UP = _gauge("transport_up", "Whether Redis is used; absent where none is configured.", merge=Merge.LEAST)
TRANSPORT_LOST = _counter("transport_lost", "Times that Redis stopped being used by this process.")
# Read from the store
DEPTH = _seen("queue_ready", "Jobs that may start now, by priority; counted up to 10,000 of each.", "queue", "priority")
JOBS = _seen("queue_jobs", "Jobs by state: ready exactly, the others counted up to 10,000.", "queue", "state")
OLDEST = _seen("queue_oldest_ready_seconds", "Age of the job that has been ready longest.", "queue", merge=Merge.MOST)
ACCEPTING = _seen(
    "queue_accepting",
    "1 while enqueues go through at once, 0 while it is full or draining.",
    "queue",
    merge=Merge.LEAST,
)
PAUSED = _seen("queue_paused", "1 while nothing of it is started.", "queue", merge=Merge.MOST)
QUEUE_WORKERS = _seen("queue_workers", "Live workers that serve the queue.", "queue", merge=Merge.LEAST)
WORKERS = _seen("workers", "Live workers: processes with a lease.")
WORKER_SLOTS = _seen("worker_slots", "Jobs that all live workers may run at once.")
WORKERS_LAG = _seen(
    "workers_lag_seconds", "The longest that a worker's event loop last took to answer.", merge=Merge.MOST
)
LEADER = _seen("leader", "1 while somebody leads the upkeep.")

INFO = _gauge("build_info", "Always 1, with the version of Holdfast.", "version", merge=Merge.MOST)

CATALOGUE: Final[tuple[Metric, ...]] = tuple(value for value in list(globals().values()) if isinstance(value, Metric))
BY_NAME: Final = {metric.name: metric for metric in CATALOGUE}
