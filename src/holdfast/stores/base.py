"""The store's contract: every verb of a job's life, batch-shaped, in small protocols.

It promises what DESIGN calls P1–P5: what a method has answered is committed and durable; every write on behalf of
a running job is fenced by job, token and worker; every ending goes through one routine. A conformance suite in
`holdfast.testing.contracts` runs on every store. Errors are those of `core.errors`; no driver's error leaves here.
Times that decide anything (leases, due times, expiry) are the store's own clock; callers pass durations.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Flag, StrEnum, auto
from typing import NamedTuple, Protocol

from holdfast.core.breaker import BreakerMark
from holdfast.core.cause import Cause
from holdfast.core.fairness import Lane
from holdfast.core.job import ClaimedJob, JobId, JobInfo, NewJob, WorkerId
from holdfast.core.queue import QueueSettings
from holdfast.core.settlement import Settlement, Verdict
from holdfast.core.state import State
from holdfast.core.worker import NewWorker
from holdfast.stores.dead import DeadStore
from holdfast.stores.flow import FlowStore
from holdfast.stores.lead_reports import LeadReports
from holdfast.stores.parking import ParkingStore
from holdfast.stores.queue_reports import QueueReports
from holdfast.stores.tenants import TenantStore
from holdfast.stores.transactions import GuestStore


class Inserted(NamedTuple):
    """The job is in the store, put there by this call or by an earlier one with the same id."""

    job_id: JobId
    state: State | None
    """Where it was put; None when an earlier call had put it there."""

    @property
    def repeated(self) -> bool:
        return self.state is None


class Existing(NamedTuple):
    """The idempotency key belongs to this job, which is the same request."""

    job_id: JobId


class Conflict(NamedTuple):
    """The idempotency key belongs to this job, which is another request. Nothing was inserted."""

    job_id: JobId


class Taken(NamedTuple):
    """Another job has what has to be unique, and the call is to be refused then. Nothing was inserted."""

    job_id: JobId


class Full(NamedTuple):
    """The queue does not accept now. Nothing was inserted."""

    queue: str
    depth: int
    high: int
    low: int
    age_s: float | None = None  # how long its oldest job has waited, where that matters
    draining: bool = False
    """An operator has closed it: to wait is of no use."""
    parked: int = 0
    """Of the depth, those that wait for something else than a worker."""


class Withheld(NamedTuple):
    """Only with `whole=True`: this item was fine, but another one was not, so nothing was inserted."""


InsertResult = Inserted | Existing | Conflict | Taken | Full | Withheld


class Claim(NamedTuple):
    """What a claim brought."""

    jobs: list[ClaimedJob]
    scanned: dict[Lane, int]
    """Rows taken out of `ready` per lane, also those that were parked or ended instead of run: fewer than the
    quota means that the lane is empty."""
    lonely: bool = False
    """Jobs that must run alone wait in these lanes; they were passed over."""


class HeldJob(NamedTuple):
    """A lease as the store has it."""

    job_id: JobId
    token: int


class CancelRequest(NamedTuple):
    """A running job that somebody asked to cancel."""

    job_id: JobId
    token: int
    reason: str


class Renewal(NamedTuple):
    """The lease was prolonged."""

    now: float
    held: list[HeldJob]
    """Leases of this worker older than the age asked for: those it does not know of are lost claims."""


class CancelAnswer(StrEnum):
    """What a cancellation did."""

    CANCELLED = "cancelled"
    """It waited; now it has ended."""
    REQUESTED = "requested"
    """It runs; its worker will be told. A success that comes first wins."""
    ENDED = "ended"
    """It had ended before."""
    MISSING = "missing"
    """There is no such job; `cancel` raises `JobNotFound`."""


class Promotion(NamedTuple):
    """Due jobs that were made ready."""

    promoted: int
    next_due_in_s: float | None
    """None: nothing is scheduled."""


class Reaped(NamedTuple):
    """Workers declared dead, and what became of their jobs."""

    workers: tuple[WorkerId, ...]
    returned: int
    ended: int


class Lead(NamedTuple):
    """A role is led by whoever asked, for one lease from the asking on."""

    term: int
    """Grows with every change of hands, and stays while the same holder prolongs."""


class Swept(NamedTuple):
    """What the sweep, the net under everything else, had to put right."""

    released: int
    unparked: int
    slots_freed: int
    keys_dropped: int
    counters_fixed: int


class Ended(NamedTuple):
    """A job's ending, as far as a waiter needs it."""

    job_id: JobId
    state: State
    result: bytes | None
    reason: str | None
    error_type: str | None
    error_message: str | None


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs; None means any. Times are epoch seconds."""

    state: State | None = None
    queue: str | None = None
    task: str | None = None
    tenant: str | None = None
    tag: str | None = None
    error_type: str | None = None
    fingerprint: str | None = None
    """Of the error (dead jobs): the same failure, whatever numbers and names its message holds."""
    text: str | None = None
    """Words, all of which are in the error's message (dead jobs)."""
    created_after: float | None = None
    created_before: float | None = None
    reason: str | None = None


class JobPage(list[JobInfo]):
    """Jobs, newest first, and where to go on."""

    def __init__(self, jobs: Iterable[JobInfo] = (), *, cursor: JobId | None = None) -> None:
        super().__init__(jobs)
        self.next = cursor
        """None: there are no more. Else the `before` of the next page, also where this one is short: a store may stop
        to look after a bounded number of jobs that do not match."""


class Hint(Flag):
    """What may have changed; a reason to look, never a fact to act on. Hints may be lost or come for nothing."""

    NOTHING = 0
    READY = auto()
    TIMER = auto()
    ENDED = auto()
    CANCEL = auto()
    OPENED = auto()
    """A queue accepts again."""
    SETTINGS = auto()
    RUNNING = auto()
    """A job was claimed, or its run reported progress."""
    ANYTHING = READY | TIMER | ENDED | CANCEL | OPENED | SETTINGS | RUNNING


# ---------------------------------------------------------------- protocols


class EnqueueStore(Protocol):
    """What a producer needs."""

    async def insert_jobs(
        self, jobs: Sequence[NewJob], *, whole: bool = False, admit: bool = True
    ) -> list[InsertResult]:
        """Store new jobs; one answer each, in order, after the commit.

        Repeating a call with the same ids is safe and inserts nothing twice. `whole`: all or nothing.
        `admit=False`: not subject to watermarks (follow-ups).
        """
        ...

    async def cancel_jobs(self, job_ids: Sequence[JobId], *, reason: str) -> list[CancelAnswer]:
        """End what waits, flag what runs."""
        ...

    async def endings(self, job_ids: Sequence[JobId]) -> dict[JobId, Ended | None]:
        """The endings among these jobs; None where there is no such job; live jobs are left out."""
        ...


class LeaseStore(ParkingStore, Protocol):
    """What a worker needs. `renew_worker` MUST be callable from any event loop."""

    async def register_worker(self, worker: NewWorker, *, lease_s: float) -> None: ...

    async def renew_worker(
        self, worker: WorkerId, *, lease_s: float, held_for_s: float, lag_s: float | None = None
    ) -> Renewal:
        """Prolong the lease. LeaseLost: this worker was declared dead; its row is never made anew. One whose lease has
        run out but whom nobody has reaped may go on: its jobs are still its own. `lag_s` is only shown."""
        ...

    async def claim_jobs(
        self, worker: WorkerId, lanes: Mapping[Lane, int], *, deadline_s: float, alone: bool = False
    ) -> Claim:
        """Lease up to a quota per lane, oldest first. LeaseLost if the worker's lease is not valid now.

        `alone`: nothing runs here, so take one job of these lanes that must run alone, and nothing else.
        Not begun within `deadline_s`, the store drops the request (the caller has gone by then).
        """
        ...

    async def settle_jobs(
        self, worker: WorkerId, settlements: Sequence[Settlement], *, marks: Sequence[BreakerMark] = ()
    ) -> list[Verdict]:
        """Write the outcomes of runs, each fenced by job, token and worker; and what those that are applied, and
        successes that are on record already, say about their breakers (`settling.counting`)."""
        ...

    async def record_progress(
        self,
        worker: WorkerId,
        job_id: JobId,
        token: int,
        *,
        done: float,
        total: float | None,
        stage: str | None,
    ) -> bool:
        """False: the lease has passed on, nothing was written."""
        ...

    async def cancel_requests(self, worker: WorkerId) -> list[CancelRequest]:
        """This worker's running jobs that are asked to stop."""
        ...

    async def hand_back_worker(
        self, worker: WorkerId, *, cause: Cause, why: str, suspects: Collection[int] | None = None
    ) -> int:
        """Remove a worker and return its jobs to their old places, uncharged. For its own clean end, or by whoever
        knows that it is dead; then `suspects` are the runs (tokens) that may have killed it, None: any."""
        ...


class UpkeepStore(Protocol):
    """What keeps the cluster in order. Every method is bounded by `limit` and safe to run anywhere, any time."""

    async def now(self) -> float:
        """The clock that decides leases, in epoch seconds."""
        ...

    async def promote_jobs(self, *, limit: int) -> Promotion: ...

    async def expire_jobs(self, *, limit: int) -> int:
        """Cancel what was not started by its deadline."""
        ...

    async def reap_workers(self, *, limit: int, as_of: float | None = None) -> Reaped:
        """Declare workers with expired leases dead and return their jobs; also jobs without a worker row.

        `as_of`: a time of the store's clock that the caller believes. Only leases that had run out by then count, so
        that a clock which is set forward a moment later costs nobody a lease (rule 10)."""
        ...

    async def prune_jobs(self, *, keep_succeeded_s: float, keep_cancelled_s: float, limit: int) -> int: ...

    async def sweep(self, *, limit: int) -> Swept:
        """Put right what nothing else did. Of those who wait at gates only the ones that were left behind are counted:
        whom nobody was told of, or nobody has come for in `parking.LATE_S`."""
        ...

    async def fold_depths(self, *, limit: int) -> int:
        """Add up to `limit` noted changes to the depths they belong to; how many. 0 where depths need no notes."""
        ...

    async def lead(self, role: str, holder: WorkerId, *, lease_s: float) -> Lead | None:
        """Take the lead in a role that nobody holds, or prolong one's own. None: somebody else holds it.

        It only saves work: whatever a leader does MUST be safe where two do it.
        """
        ...

    async def resign(self, role: str, holder: WorkerId) -> None:
        """Give the lead up at once, if this one holds it."""
        ...


class QueueStore(TenantStore, Protocol):
    """Settings of queues and tenants, shared by all processes."""

    async def queue_settings(self) -> dict[str, QueueSettings]:
        """Every queue that has settings or has ever had a job."""
        ...

    async def set_queue(
        self, queue: str, settings: QueueSettings, *, only: Collection[str] | None = None, by: str = ""
    ) -> None:
        """Replace a queue's settings; with `only`, the fields, or the single options, of these names, whatever others
        change meanwhile: of the weights of its priorities then those that are named. InvalidOptions, if all of them
        would be 0."""
        ...

    async def purge_queue(self, queue: str, *, reason: str, limit: int) -> int:
        """Cancel up to `limit` waiting jobs of a queue."""
        ...


class InspectStore(LeadReports, QueueReports, Protocol):
    """Reports. Never used for decisions of the engine."""

    async def job_infos(self, job_ids: Sequence[JobId]) -> list[JobInfo | None]:
        """All tables in one statement, so that a moving job is never seen nowhere or twice."""
        ...

    async def list_jobs(self, where: JobFilter, *, limit: int, before: JobId | None = None) -> JobPage:
        """Newest first; `before` is `next` of the page before. A page may be short, or empty, and still have a next."""
        ...

    async def count_jobs(self, where: JobFilter, *, most: int | None = None) -> int:
        """How many match; with `most`, it stops counting there."""
        ...


class Store(
    EnqueueStore, GuestStore, LeaseStore, UpkeepStore, DeadStore, QueueStore, FlowStore, InspectStore, Protocol
):
    """A whole store."""

    async def open(self) -> None:
        """Connect, check and migrate. StoreBroken when a person has to act."""
        ...

    async def close(self) -> None: ...

    def subscribe(self, callback: Callable[[Hint], None]) -> Callable[[], None]:
        """Be called, on the loop that subscribed, when something may have changed; returns the way out."""
        ...
