"""The store's side of the wire: the contract's verbs on the model, one after the other, with a trail of every move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from tests.history.records import AuditOp, AuditRow
from tests.model.leading import Leading
from tests.model.model import Expected, Job, Model
from tests.simulation.flow_server import FlowServer
from tests.simulation.process import EPOCH_S
from tests.simulation.world import World

from holdfast.core.breaker import BreakerMark
from holdfast.core.cause import Cause
from holdfast.core.errors import LeaseLost, StoreUnavailable
from holdfast.core.fairness import Lane
from holdfast.core.job import ClaimedJob, JobId, JobInfo, NewJob, WorkerId
from holdfast.core.queue import QueueSettings
from holdfast.core.settlement import UNKNOWN_TASK, Settlement, Succeed, Verdict
from holdfast.core.state import State
from holdfast.core.worker import NewWorker
from holdfast.stores.base import (
    CancelAnswer,
    CancelRequest,
    Claim,
    Ended,
    HeldJob,
    Hint,
    InsertResult,
    JobFilter,
    JobPage,
    Lead,
    Promotion,
    Reaped,
    Renewal,
    Swept,
)
from holdfast.stores.dead import Replayed

#: The name of a task that no worker knows: its jobs stay parked.
NOBODYS = "nobodys"


class Where(NamedTuple):
    """A job's place, as the trail has it."""

    state: State
    token: int | None
    worker: str | None
    is_live: bool

    @property
    def is_lease(self) -> bool:
        return self.state is State.RUNNING


class Lease(NamedTuple):
    """One run's lease; `…_at` by the store's clock, `…_s` in the world's time."""

    attempt: int
    worker: str
    started_at: float
    started_s: float
    is_alone: bool
    ended_at: float = float("inf")
    ended_s: float = float("inf")


class Server(FlowServer):
    """Synchronous: each call is one transaction."""

    def __init__(self, world: World, *, lanes_at_once: bool) -> None:
        self._world = world
        self.model = Model(EPOCH_S, lanes_at_once=lanes_at_once)
        self.serves_at_once = not lanes_at_once  # as the stores do that look at their lanes in that way
        self.ahead_s = 0.0
        """By how much the clock that decides leases was set forward."""
        self.audit: list[AuditRow] = []
        self.leases: dict[int, Lease] = {}
        """By token."""
        self.removed_workers: dict[str, float] = {}
        """Until when their leases would have been, by the store's clock."""
        self.verdicts: Counter[str] = Counter()
        self.parkings: Counter[JobId] = Counter()
        """How often somebody parked a job whose task it did not know."""
        self.live = 0
        """Jobs that have not ended and that somebody can run."""
        self._leading = Leading()
        self._last_token = 0
        self.places: dict[JobId, Where] = {}
        self._names: dict[JobId, int] = {}
        self._touched = False

    def tick(self) -> None:
        """Before each verb: its time."""
        self.model.now = EPOCH_S + self._world.now_s + self.ahead_s

    def note_moves(self) -> Hint:
        """After each verb: who waited for what it freed, the trail, and what others may want to hear of."""
        if self._touched:
            self.serve_freed()
        hint = Hint.NOTHING
        if not self._touched:
            return hint
        self._touched = False
        for job_id, job in self.model.jobs.items():
            before = self.places.get(job_id)
            if before is None or before.state is not job.state or (before.token != job.token and before.is_lease):
                hint |= _HINTS[job.state]
                self._note_move(job, before)
        return hint

    def _note_move(self, job: Job, before: Where | None) -> None:
        job_id, now_s = job.new.id, self._world.now_s
        after = Where(job.state, None, None, _is_live(job))
        if job.state is State.RUNNING or (job.state.ended and before is not None and before.is_lease):
            after = after._replace(token=job.token, worker=str(job.worker))
        self.places[job_id] = after
        self.live += after.is_live - (before is not None and before.is_live)
        if before is not None:
            self._trail(AuditOp.DELETE, job, before)
            if before.is_lease and before.token is not None:
                lease = self.leases[before.token]
                self.leases[before.token] = lease._replace(ended_at=self.model.now, ended_s=now_s)
        if before is not None and (before.state, after.state) == (State.PARKED, State.RUNNING):
            between = Where(State.READY, None, None, True)  # a hand-over is two moves of one transaction
            self._trail(AuditOp.INSERT, job, between)
            self._trail(AuditOp.DELETE, job, between)
        self._trail(AuditOp.INSERT, job, after)
        self.parkings[job_id] += job.state is State.PARKED
        if after.is_lease and after.token is not None:
            is_alone = job.losses >= 2
            self.leases[after.token] = Lease(job.attempt, after.worker or "", self.model.now, now_s, is_alone)
        if self._world.trace is not None:
            was = before.state if before else "new"
            under = f" under token {after.token} of {after.worker}" if after.token else ""
            self._world.say("store", f"{self.name_of(job_id)} {was} → {job.state}{under}")

    def _trail(self, op: AuditOp, job: Job, where: Where) -> None:
        number, text = len(self.audit), str(job.new.id)
        row = AuditRow(number, text, op, *where[:3], job.attempt, job.crashes, self.model.now)
        self.audit.append(row)

    def alone_s(self, since_s: float) -> float:
        """For how long since then some job ran that had to run alone: perhaps nothing else could."""
        total_s, now_s = 0.0, self._world.now_s
        for lease in sorted((each for each in self.leases.values() if each.is_alone), key=lambda each: each.started_s):
            ended_s = min(lease.ended_s, now_s)
            total_s += max(0.0, ended_s - max(lease.started_s, since_s))
            since_s = max(since_s, ended_s)
        return total_s

    def name_of(self, job_id: JobId) -> str:
        """For whoever reads the trace: ids are long."""
        return f"job {self._names.setdefault(job_id, len(self._names) + 1)}"

    # ------------------------------------------------------------ enqueue

    def insert_jobs(self, jobs: Sequence[NewJob], *, whole: bool, admit: bool) -> list[InsertResult]:
        self._touched = True
        return self.model.insert(jobs, whole=whole, admit=admit)

    def cancel_jobs(self, job_ids: Sequence[JobId], *, reason: str) -> list[CancelAnswer]:
        self._touched = True
        return [self.model.cancel(job_id, reason) for job_id in job_ids]

    def endings(self, job_ids: Sequence[JobId]) -> dict[JobId, Ended | None]:
        found: dict[JobId, Ended | None] = {}
        for job_id in job_ids:
            job = self.model.jobs.get(job_id)
            if job is None:
                found[job_id] = None
            elif job.state.ended:
                found[job_id] = Ended(job_id, job.state, _result(job), job.reason, None, None)
        return found

    # ------------------------------------------------------------ leases

    def register_worker(self, worker: NewWorker, *, lease_s: float) -> None:
        self.model.workers[worker.id] = self.model.now + lease_s

    def renew_worker(self, worker: WorkerId, *, lease_s: float, held_for_s: float) -> Renewal:
        if worker not in self.model.workers:
            raise LeaseLost(f"worker {worker} was declared dead")
        self.model.workers[worker] = self.model.now + lease_s
        return Renewal(self.model.now, [HeldJob(*held) for held in sorted(self.model.held(worker, held_for_s))])

    def claim_jobs(self, worker: WorkerId, lanes: Mapping[Lane, int], *, alone: bool) -> Claim:
        self._must_be_valid(worker)
        return self._leased(worker, *self.model.claim(lanes, alone=alone))

    def claim_parked(self, worker: WorkerId, lanes: Collection[Lane], *, tasks: Sequence[str]) -> Claim:
        if not self.model.parked(UNKNOWN_TASK, tasks):
            return Claim([], {})
        self._must_be_valid(worker)
        return self._leased(worker, *self.model.claim_parked(lanes, tasks), lonely=False)

    def _must_be_valid(self, worker: WorkerId) -> None:
        if not self.model.valid(worker):
            raise LeaseLost(f"worker {worker} has no valid lease")

    def _leased(self, worker: WorkerId, runs: list[Expected], scanned: dict[Lane, int], lonely: bool) -> Claim:
        self._touched = any(scanned.values())
        claimed = []
        for run in runs:
            self._last_token += 1
            self.model.lease(worker, {run.job_id: self._last_token})
            new = self.model.jobs[run.job_id].new
            claimed.append(
                ClaimedJob(
                    new.id,
                    self._last_token,
                    run.attempt,
                    new.task,
                    new.queue,
                    new.priority,
                    new.payload,
                    new.options,
                    new.max_attempts,
                    new.tenant,
                    run.alone,
                )
            )
        return Claim(claimed, scanned, lonely)

    def settle_jobs(
        self, worker: WorkerId, settlements: Sequence[Settlement], marks: Sequence[BreakerMark] = ()
    ) -> list[Verdict]:
        self._touched = True
        verdicts = []
        for settlement in settlements:
            may_be = sorted(self.model.settle(worker, settlement))
            verdict = may_be[0] if len(may_be) == 1 else self._world.rng.choice(may_be)
            self.verdicts[verdict] += 1
            verdicts.append(verdict)
        self.model.mark(marks, zip(settlements, verdicts, strict=True))
        return verdicts

    def record_progress(self, worker: WorkerId, job_id: JobId, token: int) -> bool:
        return self.model.holds(worker, job_id, token)

    def cancel_requests(self, worker: WorkerId) -> list[CancelRequest]:
        asked = []
        for job_id, token in sorted(self.model.held(worker)):
            reason = self.model.jobs[job_id].cancel_reason
            if reason is not None:
                asked.append(CancelRequest(job_id, token, reason))
        return asked

    def hand_back_worker(self, worker: WorkerId, *, cause: Cause, suspects: Collection[int] | None) -> int:
        self._touched = True
        self._note_removal(worker)
        return self.model.hand_back(worker, cause, None if suspects is None else set(suspects))

    def unpark_jobs(self, *, reason: str, keys: Sequence[str]) -> int:
        unparked = self.model.unpark(reason, keys)
        self._touched = unparked > 0
        return unparked

    # ------------------------------------------------------------ upkeep

    def now(self) -> float:
        return self.model.now

    def promote_jobs(self, *, limit: int) -> Promotion:
        promoted = self.model.promote(limit)
        self._touched = promoted > 0
        due = self.model.next_due()
        return Promotion(promoted, None if due is None else max(0.0, due - self.model.now))

    def expire_jobs(self) -> int:
        expired = self.model.expire()
        self._touched = expired > 0
        return expired

    def reap_workers(self, *, as_of: float | None = None) -> Reaped:
        for worker in self.model.expired(as_of):
            self._note_removal(worker)
            self._touched = True
        workers, returned, ended = self.model.reap(as_of)
        return Reaped(tuple(sorted(workers)), returned, ended)

    def _note_removal(self, worker: WorkerId) -> None:
        if worker in self.model.workers:
            self.removed_workers[str(worker)] = self.model.workers[worker]

    def prune_jobs(self, *, keep_succeeded_s: float, keep_cancelled_s: float) -> int:
        return self.model.prune(keep_succeeded_s, keep_cancelled_s)

    def sweep(self) -> Swept:
        return Swept(0, 0, 0, self.model.drop_keys().start, 0)

    def lead(self, role: str, holder: UUID, *, lease_s: float) -> Lead | None:
        return self._leading.lead(role, holder, lease_s=lease_s, now=self.model.now)

    def resign(self, role: str, holder: UUID) -> None:
        self._leading.resign(role, holder, now=self.model.now)

    # ------------------------------------------------------------ people

    def replay_jobs(self, job_ids: Sequence[JobId]) -> Replayed:
        self._touched = True
        return self.model.replay_jobs(job_ids)

    def queue_settings(self) -> dict[str, QueueSettings]:
        return {
            queue: QueueSettings(paused=queue in self.model.paused)
            for queue in dict.fromkeys(job.new.queue for job in self.model.jobs.values())
        }

    def set_queue(self, queue: str, settings: QueueSettings) -> None:
        (self.model.paused.add if settings.paused else self.model.paused.discard)(queue)

    def tenant_weights(self) -> dict[str, float]:
        return dict(self.model.tags.weights)

    def set_tenant_weight(self, tenant: str, weight: float | None) -> None:
        self.model.tags.weights.pop(tenant, None)
        if weight is not None:
            self.model.tags.weights[tenant] = weight

    def job_infos(self, job_ids: Sequence[JobId]) -> list[JobInfo | None]:
        return [self._info(self.model.jobs.get(job_id)) for job_id in job_ids]

    def list_jobs(self, where: JobFilter, *, limit: int, before: JobId | None) -> JobPage:
        if where != JobFilter(state=where.state):
            raise StoreUnavailable("this store only knows jobs by their state")
        ids = sorted((job_id for job_id, job in self.model.jobs.items() if job.state is where.state), reverse=True)
        page = [job_id for job_id in ids if before is None or job_id < before]
        return JobPage(self.job_infos(page[:limit]), cursor=page[limit - 1] if len(page) > limit else None)

    def _info(self, job: Job | None) -> Any:
        if job is None:
            return None
        new = job.new
        created_at = datetime.fromtimestamp(EPOCH_S, UTC)
        return JobInfo(
            new.id,
            new.task,
            new.queue,
            new.priority,
            new.tenant,
            job.state,
            job.attempt,
            new.max_attempts,
            created_at,
            reason=job.reason,
            cancel_requested=job.cancel_reason is not None,
        )


_HINTS = {
    State.READY: Hint.READY,
    State.SCHEDULED: Hint.TIMER,
    State.BLOCKED: Hint.NOTHING,
    State.RUNNING: Hint.RUNNING,
    State.PARKED: Hint.NOTHING,
    State.SUCCEEDED: Hint.ENDED,
    State.DEAD: Hint.ENDED,
    State.CANCELLED: Hint.ENDED,
}


def _is_live(job: Job) -> bool:
    return not job.state.ended and not (job.state is State.PARKED and job.park_key == NOBODYS)


def _result(job: Job) -> bytes | None:
    last = job.settled.get(job.token or 0)
    return last[1].result if last is not None and isinstance(last[1], Succeed) else None
