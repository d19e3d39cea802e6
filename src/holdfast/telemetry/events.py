"""Every event that Holdfast emits: its name and its fields. How events are delivered or shown is not here.

No event carries a job's arguments or result: what is logged or exported stays free of users' data, except for
the text of the errors that their tasks raise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias, get_args

from holdfast.core.job import JobId, WorkerId
from holdfast.telemetry.flow_events import FlowEvent
from holdfast.telemetry.process_events import (
    IsolateNotStarted,
    ProcessDied,
    ProcessFailed,
    ProcessHandedBack,
    ProcessKilled,
    ProcessLeftWaiting,
    ProcessReady,
    ProcessReplaced,
    ProcessTold,
)
from holdfast.telemetry.transport_events import (
    TransportDown,
    TransportFilled,
    TransportGarbage,
    TransportRefused,
    TransportUp,
)

# One job


@dataclass(frozen=True, slots=True)
class JobEnqueued:
    """The store has committed a new job."""

    name: ClassVar[str] = "job.enqueued"
    job_id: JobId
    task: str
    queue: str
    priority: int
    state: str


@dataclass(frozen=True, slots=True)
class JobStarted:
    """A worker has claimed the job and calls its task."""

    name: ClassVar[str] = "job.started"
    job_id: JobId
    task: str
    queue: str
    attempt: int
    worker: WorkerId


@dataclass(frozen=True, slots=True)
class JobSettled:
    """What came of a run has been written; `outcome` says what that was."""

    name: ClassVar[str] = "job.settled"
    job_id: JobId
    task: str
    queue: str
    attempt: int
    outcome: str
    duration_s: float


@dataclass(frozen=True, slots=True)
class JobRetried:
    """A run failed and the job will run again after a delay."""

    name: ClassVar[str] = "job.retried"
    job_id: JobId
    task: str
    attempt: int
    delay_s: float
    error: str
    error_class: str = "other"


@dataclass(frozen=True, slots=True)
class JobBuried:
    """The job is dead and waits among the dead letters for a person."""

    name: ClassVar[str] = "job.buried"
    job_id: JobId
    task: str
    attempt: int
    error: str
    reason: str
    error_class: str = ""


@dataclass(frozen=True, slots=True)
class JobCrashed:
    """The process that had this job alone died; the job is ready again, or dead as poison after the third time."""

    name: ClassVar[str] = "job.crashed"
    job_id: JobId
    task: str
    attempt: int
    why: str


@dataclass(frozen=True, slots=True)
class JobLost:
    """A write for the job was refused as stale: somebody else owns it by now."""

    name: ClassVar[str] = "job.lost"
    job_id: JobId
    task: str
    token: int


@dataclass(frozen=True, slots=True)
class JobParked:
    """The job waits for something other than time: a task's code, a free slot."""

    name: ClassVar[str] = "job.parked"
    job_id: JobId
    task: str
    reason: str
    key: str


@dataclass(frozen=True, slots=True)
class JobOverdue:
    """The run is past its hard limit by `seconds` and has not ended."""

    name: ClassVar[str] = "job.overdue"
    job_id: JobId
    task: str
    seconds: float


@dataclass(frozen=True, slots=True)
class JobErrorIgnored:
    """The task raised an error after its job had succeeded inside `transaction()`; the job stays so."""

    name: ClassVar[str] = "job.error_ignored"
    job_id: JobId
    task: str
    error: str


# Many jobs


@dataclass(frozen=True, slots=True)
class JobsPromoted:
    """Scheduled jobs were due and are ready."""

    name: ClassVar[str] = "job.promoted"
    count: int


@dataclass(frozen=True, slots=True)
class JobsPruned:
    """Ended jobs past their retention were removed."""

    name: ClassVar[str] = "job.pruned"
    count: int


@dataclass(frozen=True, slots=True)
class JobsSwept:
    """The sweep found jobs that were left behind and moved them on; `counts` says how many of each kind."""

    name: ClassVar[str] = "job.swept"
    counts: Mapping[str, int]


# Workers


@dataclass(frozen=True, slots=True)
class WorkerStarted:
    """The worker has a lease and begins to claim; no queues means every queue that it knows."""

    name: ClassVar[str] = "worker.started"
    worker: WorkerId
    concurrency: int
    queues: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WorkerDraining:
    """The worker claims nothing more and waits for what it runs."""

    name: ClassVar[str] = "worker.draining"
    worker: WorkerId
    running: int


@dataclass(frozen=True, slots=True)
class WorkerStopped:
    """The worker has ended in good order and holds nothing."""

    name: ClassVar[str] = "worker.stopped"
    worker: WorkerId


@dataclass(frozen=True, slots=True)
class WorkerLeaseLost:
    """The worker could not renew in time, was declared dead, and stops its jobs."""

    name: ClassVar[str] = "worker.lease_lost"
    worker: WorkerId


@dataclass(frozen=True, slots=True)
class WorkerTold:
    """Somebody asked what the worker is doing: one line of the answer."""

    name: ClassVar[str] = "worker.told"
    worker: WorkerId
    line: str


@dataclass(frozen=True, slots=True)
class WorkerBlocked:
    """Nothing else has run in this process for `seconds`: `blame` does not yield, and is at the line `where`."""

    name: ClassVar[str] = "worker.blocked"
    worker: WorkerId
    seconds: float
    blame: str
    where: str


@dataclass(frozen=True, slots=True)
class WorkersReaped:
    """Workers were silent past their leases; their jobs are ready again."""

    name: ClassVar[str] = "worker.reaped"
    workers: tuple[WorkerId, ...]
    jobs: int


@dataclass(frozen=True, slots=True)
class LeadTaken:
    """This process leads: what should run once in the cluster runs here."""

    name: ClassVar[str] = "lead.taken"
    role: str
    term: int


@dataclass(frozen=True, slots=True)
class LeadLost:
    """This process leads no longer, though it did not mean to stop: it could not prolong in time."""

    name: ClassVar[str] = "lead.lost"
    role: str
    term: int


# The rest of the system


@dataclass(frozen=True, slots=True)
class StoreDown:
    """The store stopped answering; everything that needs it keeps trying."""

    name: ClassVar[str] = "store.down"
    error: str


@dataclass(frozen=True, slots=True)
class StoreUp:
    """The store answers again."""

    name: ClassVar[str] = "store.up"
    after_s: float


@dataclass(frozen=True, slots=True)
class QueueClosed:
    """The queue has reached its high watermark: enqueues wait."""

    name: ClassVar[str] = "queue.closed"
    queue: str
    depth: int
    """Ready and parked jobs."""
    parked: int = 0


@dataclass(frozen=True, slots=True)
class QueueOpened:
    """The queue has drained to its low watermark: enqueues go through."""

    name: ClassVar[str] = "queue.opened"
    queue: str


@dataclass(frozen=True, slots=True)
class QueueRefused:
    """A caller in this process was told that the queue does not take its job now: it is `full` or `draining`."""

    name: ClassVar[str] = "queue.refused"
    queue: str
    why: str


@dataclass(frozen=True, slots=True)
class QueueRetriesStretched:
    """More than its share of the queue's runs are retries, in this process: from now on they wait longer."""

    name: ClassVar[str] = "queue.retries_stretched"
    queue: str
    percent: int


@dataclass(frozen=True, slots=True)
class QueueRetriesEased:
    """Retries of the queue are within their share again; so often one was put off meanwhile."""

    name: ClassVar[str] = "queue.retries_eased"
    queue: str
    stretched: int


@dataclass(frozen=True, slots=True)
class ClockDisagrees:
    """The store's clock and this machine's drifted apart; nothing is reaped for one lease."""

    name: ClassVar[str] = "clock.disagrees"
    difference_s: float


@dataclass(frozen=True, slots=True)
class ServiceCrashed:
    """A background loop has ended by an error that it did not expect."""

    name: ClassVar[str] = "service.crashed"
    service: str
    error: str


Event: TypeAlias = (
    JobEnqueued
    | JobStarted
    | JobSettled
    | JobRetried
    | JobBuried
    | JobCrashed
    | JobLost
    | JobParked
    | JobOverdue
    | JobErrorIgnored
    | JobsPromoted
    | JobsPruned
    | JobsSwept
    | WorkerStarted
    | WorkerDraining
    | WorkerStopped
    | WorkerLeaseLost
    | WorkerTold
    | WorkerBlocked
    | WorkersReaped
    | IsolateNotStarted
    | LeadTaken
    | LeadLost
    | ProcessReady
    | ProcessFailed
    | ProcessKilled
    | ProcessDied
    | ProcessHandedBack
    | ProcessLeftWaiting
    | ProcessReplaced
    | ProcessTold
    | StoreDown
    | StoreUp
    | TransportDown
    | TransportRefused
    | TransportUp
    | TransportFilled
    | TransportGarbage
    | QueueClosed
    | QueueOpened
    | QueueRefused
    | QueueRetriesStretched
    | QueueRetriesEased
    | FlowEvent
    | ClockDisagrees
    | ServiceCrashed
)

EVENTS: tuple[type[Event], ...] = get_args(Event)
