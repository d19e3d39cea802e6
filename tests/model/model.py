"""The store as plain dictionaries, written from the contract and the design alone: what the real ones must equal.

A model, not a fake store: it keeps no promise but that of being short enough to be read. Where the contract leaves
something open (the numbers of tokens, some verdicts), the model takes what the store answered or says what it may
answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.model.flow import BARRIERS, Flow
from tests.model.tenants import Tags
from tests.model.unique import Unique

from holdfast.core.breaker import BreakerMark
from holdfast.core.cause import Cause
from holdfast.core.fairness import Lane
from holdfast.core.gates import Admission, Barrier, BreakerGate, Passed, Place, Skipped, Waits
from holdfast.core.job import JobId, NewJob, WorkerId
from holdfast.core.loss import alone
from holdfast.core.settlement import (
    UNKNOWN_TASK,
    Bury,
    Cancel,
    Crashed,
    HandBack,
    Park,
    Retry,
    Settlement,
    Snooze,
    Succeed,
    Verdict,
)
from holdfast.core.state import State
from holdfast.stores.base import CancelAnswer, Conflict, Existing, Full, Inserted, InsertResult, Withheld
from holdfast.stores.dead import Replayed

WAITING = {State.READY, State.SCHEDULED, State.BLOCKED, State.PARKED}
KEPT_AT_LEAST_S = 3600.0
EXPIRED, POISON = "expired", "poison"


@dataclass
class Job:
    """One job; `attempt` counts the charged runs, while one runs and after its end also that run."""

    new: NewJob
    state: State = State.READY
    attempt: int = 0
    losses: int = 0
    crashes: int = 0
    seq: int = 0
    tag: int = 0
    created_at: float = 0.0
    due_at: float = 0.0
    deadline: float | None = None
    reason: str | None = None
    park_key: str | None = None
    missing: set[JobId] = field(default_factory=set)
    arrived: set[JobId] = field(default_factory=set)
    token: int | None = None
    worker: WorkerId | None = None
    started_at: float = 0.0
    cancel_reason: str | None = None
    ended_at: float = 0.0
    causes: dict[int, Cause] = field(default_factory=dict)
    settled: dict[int, tuple[WorkerId, Settlement]] = field(default_factory=dict)

    @property
    def lane(self) -> Lane:
        return Lane(self.new.queue, self.new.priority)

    @property
    def place(self) -> tuple[int, int]:
        return self.tag, self.seq

    @property
    def at(self) -> Place | None:
        """The gate that it waits at, where it does."""
        waits = self.state is State.PARKED and self.reason in BARRIERS
        return Place(Barrier(self.reason or ""), self.park_key or "") if waits else None


class Key(NamedTuple):
    fingerprint: bytes
    job_id: JobId
    expires_at: float


class Expected(NamedTuple):
    """One run that a claim must bring."""

    job_id: JobId
    attempt: int
    alone: bool


class Model:
    """All verbs, synchronous, with the same answers as the store's."""

    def __init__(self, now: float, *, lanes_at_once: bool = False) -> None:
        """`lanes_at_once`: how a claim looks at its lanes, which the contract leaves open. See `claim`."""
        self.now = now
        self._lanes_at_once = lanes_at_once
        self.jobs: dict[JobId, Job] = {}
        self.workers: dict[WorkerId, float] = {}
        self.keys: dict[tuple[str, str], Key] = {}
        self.flow = Flow()
        self.unique = Unique(begun=lambda job_id: job_id in self.jobs and bool(self.jobs[job_id].causes))
        self.paused: set[str] = set()
        self.last: frozenset[Lane] = frozenset()
        """Those of weight 0."""
        self.draining: set[str] = set()
        self.tags = Tags()
        self._seq = 0

    # ------------------------------------------------------------ enqueue

    def insert(self, jobs: Sequence[NewJob], *, whole: bool, admit: bool = True) -> list[InsertResult]:
        self.tags.tenanted |= {job.queue for job in jobs if job.tenant}
        refused = self._refusals(jobs, self.draining if admit else set())
        if whole and any(not isinstance(answer, Existing) for answer in refused.values()):
            return [refused.get(index, Withheld()) for index in range(len(jobs))]
        replaced: list[tuple[JobId, JobId]] = []
        answers = [refused.get(index) or self._insert(job, replaced) for index, job in enumerate(jobs)]
        for older, newer in replaced:  # when all are there
            self.cancel(older, f"replaced by {newer}")
        return answers

    def _refusals(self, jobs: Sequence[NewJob], closed: set[str]) -> dict[int, InsertResult]:
        """One after the other, each as if those before it were there: idempotency keys, unique keys, closed queues."""
        refused: dict[int, InsertResult] = {}
        taken: dict[tuple[str, str], Key] = {}
        unique = self.unique.copy()
        new: dict[JobId, State] = {}

        def state_of(job_id: JobId) -> State | None:
            return new.get(job_id) or self.state_of(job_id)

        def waits_for_a_retry(job_id: JobId) -> bool:
            return job_id not in new and self._waits_for_a_retry(job_id)

        for index, job in enumerate(jobs):
            if job.id in self.jobs:  # a repeated call hears of its job, whoever has the key now
                continue
            by_key = self._key_refusal(job, taken) if job.key is not None else None
            answer = by_key or unique.refusal(job, state_of, self.now)
            if answer is None and job.queue in closed:
                answer = Full(job.queue, 0, 0, 0, draining=True)
            if answer is not None:
                refused[index] = answer
                continue
            new[job.id] = State.READY
            if job.key is not None:
                taken[job.tenant, job.key.key] = Key(job.key.fingerprint, job.id, self.now + job.key.window_s)
            if job.unique is not None:
                _, due_by = unique.take(job, state_of, self.now, waits_for_a_retry)
                new[job.id] = State.SCHEDULED if self._due_at(job, due_by) > self.now else State.READY
        return refused

    def _key_refusal(self, job: NewJob, taken: Mapping[tuple[str, str], Key]) -> InsertResult | None:
        assert job.key is not None
        scope = (job.tenant, job.key.key)
        holder = taken.get(scope) or self.keys.get(scope)
        if holder is None or holder.expires_at <= self.now or holder.job_id == job.id:
            return None
        same = holder.fingerprint == job.key.fingerprint
        return Existing(holder.job_id) if same else Conflict(holder.job_id)

    def state_of(self, job_id: JobId) -> State | None:
        return self.jobs[job_id].state if job_id in self.jobs else None

    def _due_at(self, new: NewJob, due_by: float | None) -> float:
        due_at = self.now + new.delay_s if new.delay_s is not None else new.run_at or 0.0
        return due_at if due_by is None else min(due_at, due_by)

    def _waits_for_a_retry(self, job_id: JobId) -> bool:
        return self.jobs[job_id].state is State.SCHEDULED and bool(self.jobs[job_id].causes)

    def _insert(self, new: NewJob, replaced: list[tuple[JobId, JobId]]) -> Inserted:
        if new.id in self.jobs:
            return Inserted(new.id, None)
        older, due_by = (
            (None, None)
            if new.unique is None
            else self.unique.take(new, self.state_of, self.now, self._waits_for_a_retry)
        )
        replaced += [] if older is None else [(older, new.id)]
        job = self.jobs[new.id] = Job(new, created_at=self.now)
        if new.key is not None:
            self.keys[new.tenant, new.key.key] = Key(new.key.fingerprint, new.id, self.now + new.key.window_s)
        job.deadline = new.expires_at if new.expires_in_s is None else self.now + new.expires_in_s
        job.missing = {other for other in new.waits_for if other in self.jobs and not self.jobs[other].state.ended}
        job.due_at = self._due_at(new, due_by)
        if job.missing:
            job.state = State.BLOCKED
        elif job.due_at > self.now:
            job.state = State.SCHEDULED
        else:
            self._to_tail(job)
        return Inserted(new.id, job.state)

    # ------------------------------------------------------------ leases

    def valid(self, worker: WorkerId) -> bool:
        return self.workers.get(worker, self.now) > self.now

    def claim(self, lanes: Mapping[Lane, int], *, alone: bool) -> tuple[list[Expected], dict[Lane, int], bool]:
        """What a valid worker gets; `lease` is called with the tokens that the store gave."""
        if self._lanes_at_once and not alone:
            return self._claim_at_once(lanes)
        runs: list[Expected] = []
        scanned: dict[Lane, int] = {}
        for lane, quota in lanes.items():
            if lane.queue in self.paused or (alone and runs):
                continue
            head = self.ready_in(lane, alone=alone)[: 1 if alone else quota]
            scanned[lane] = len(head)
            overdue = [job for job in head if self._overdue(job)]
            for job in head:
                self.tags.claimed(lane, job.tag)
            for job in overdue:
                self._end(job, State.CANCELLED, EXPIRED)
            self._run_or_hold_back([job for job in head if job not in overdue], runs)
        # At the end: what a later lane replaces may have been there alone in an earlier one.
        lonely = not alone and any(self.ready_in(lane, alone=True) for lane in scanned)
        return runs, scanned, lonely

    def claim_parked(self, lanes: Iterable[Lane], tasks: Iterable[str]) -> tuple[list[Expected], dict[Lane, int]]:
        """The same of one job that somebody parked who does not know its task."""
        parked = (job for job in self.parked(UNKNOWN_TASK, tasks) if job.losses < 2)
        found = next((job for job in parked if job.lane in set(lanes) and job.lane.queue not in self.paused), None)
        runs: list[Expected] = []
        if found is None:
            return runs, {}
        self.tags.claimed(found.lane, found.tag)
        if self._overdue(found):
            self._end(found, State.CANCELLED, EXPIRED)
        else:
            self._run_or_hold_back([found], runs)
        return runs, {found.lane: 1}

    def _claim_at_once(self, lanes: Mapping[Lane, int]) -> tuple[list[Expected], dict[Lane, int], bool]:
        """The heads of all lanes first; what their endings release or unpark is for the next claim."""
        asked = {lane: quota for lane, quota in lanes.items() if lane.queue not in self.paused}
        heads = {lane: self.ready_in(lane, alone=False)[:quota] for lane, quota in asked.items()}
        lonely = any(self.ready_in(lane, alone=True) for lane in asked)
        taken = sorted((job for head in heads.values() for job in head), key=lambda job: job.place)
        overdue = [job for job in taken if self._overdue(job)]
        for job in taken:
            job.state = State.RUNNING  # out of the way of all that follows
            self.tags.claimed(job.lane, job.tag)
        for job in overdue:
            self._end(job, State.CANCELLED, EXPIRED)
        runs: list[Expected] = []
        self._run_or_hold_back([job for job in taken if job not in overdue], runs)
        return runs, {lane: len(head) for lane, head in heads.items()}, lonely

    def _run_or_hold_back(self, jobs: list[Job], runs: list[Expected]) -> None:
        waiting = (job for job in self.jobs.values() if job.at is not None and job.lane not in self.last)
        lined = {job.at.key for job in waiting if job.at is not None and job.at.barrier is Barrier.RATE}
        judged = list(zip(jobs, self.flow.judge([job.new for job in jobs], self.now, lined=lined), strict=True))
        for job, admission in judged:
            if isinstance(admission, Passed):
                job.state, job.reason, job.park_key = State.RUNNING, None, None
                job.attempt += 1
                runs.append(Expected(job.new.id, job.attempt, job.losses >= 2))
        for job, admission in judged:
            self.hold_back(job, admission)

    def hold_back(self, job: Job, admission: Admission) -> None:
        """Where it goes who may not run now."""
        match admission:
            case Waits(at=at, replaces=replaces):
                self.flow.free(job.new.id)
                job.state, job.reason, job.park_key = State.PARKED, at.barrier, at.key
                if replaces:
                    self._replace(job, at)
            case Skipped(at=at):
                self._end(job, State.CANCELLED, f"skipped: limit {at.key} is full")

    def _replace(self, comer: Job, at: Place) -> None:
        holders = [self.jobs[job_id] for job_id in self.flow.slots.get(at, set())]
        waiters = [job for job in self.jobs.values() if job.state is State.PARKED and job.at == at]
        others = [job for job in (*holders, *waiters) if job is not comer]
        born = {job_id: number for number, job_id in enumerate(self.jobs)}
        newest = max((comer, *(job for job in others if job.cancel_reason is None)), key=lambda job: born[job.new.id])
        for job in others if newest is comer else [comer]:
            self.cancel(job.new.id, f"replaced by {newest.new.id}")

    def lease(self, worker: WorkerId, tokens: Mapping[JobId, int]) -> None:
        for job_id, token in tokens.items():
            job = self.jobs[job_id]
            job.worker, job.token, job.started_at = worker, token, self.now

    def ready_in(self, lane: Lane, *, alone: bool) -> list[Job]:
        ready = (job for job in self.jobs.values() if job.state is State.READY and job.lane == lane)
        return sorted((job for job in ready if (job.losses >= 2) == alone), key=lambda job: job.place)

    def held(self, worker: WorkerId, held_for_s: float = 0.0) -> set[tuple[JobId, int]]:
        return {
            (job.new.id, job.token)
            for job in self._running_on(worker)
            if job.token is not None and job.started_at <= self.now - held_for_s
        }

    def holds(self, worker: WorkerId, job_id: JobId, token: int) -> bool:
        job = self.jobs.get(job_id)
        return job is not None and job.state is State.RUNNING and (job.worker, job.token) == (worker, token)

    def expired(self, as_of: float | None = None) -> set[WorkerId]:
        by = self.now if as_of is None else min(self.now, as_of)
        return {worker for worker, lease_until in self.workers.items() if lease_until <= by}

    def reap(self, as_of: float | None = None) -> tuple[set[WorkerId], int, int]:
        dead = self.expired(as_of)
        back = ended = 0
        for worker in dead:
            del self.workers[worker]
            for job in self._running_on(worker):
                self._lose(job, Cause.LEASE_EXPIRED)
                back += job.state is State.READY
                ended += job.state.ended
        return dead, back, ended

    def hand_back(self, worker: WorkerId, cause: Cause, suspects: set[int] | None) -> int:
        self.workers.pop(worker, None)
        jobs = self._running_on(worker)
        for job in jobs:
            if cause is Cause.HANDED_BACK or (suspects is not None and job.token not in suspects):
                self._record(job, cause)
                self._give_back(job)
            else:
                self._lose(job, cause)
        return len(jobs)

    def _running_on(self, worker: WorkerId) -> list[Job]:
        return [job for job in self.jobs.values() if job.state is State.RUNNING and job.worker == worker]

    def _lose(self, job: Job, cause: Cause) -> None:
        self._record(job, cause)
        job.crashes += job.losses >= 2
        job.losses += 1
        self._return_or_bury(job)

    def _return_or_bury(self, job: Job) -> None:
        if job.crashes >= 3 and job.cancel_reason is None:
            self._end(job, State.DEAD, POISON)
        else:
            self._give_back(job)

    # ------------------------------------------------------------ settle

    def settle(self, worker: WorkerId, settlement: Settlement) -> set[Verdict]:
        """Apply it where it counts; what the store may answer."""
        job = self.jobs.get(settlement.job_id)
        if job is None:
            return {Verdict.LOST}
        if self.holds(worker, settlement.job_id, settlement.token):
            self._apply(job, settlement)
            job.settled[settlement.token] = (worker, settlement)
            return {Verdict.APPLIED}
        if job.settled.get(settlement.token) == (worker, settlement):
            return {Verdict.ALREADY}
        match job.causes.get(settlement.token), settlement:
            case (
                (Cause.HANDED_BACK, HandBack() | Park())
                | (Cause.WORKER_LOST, Crashed())
                | (Cause.REPLAY, Bury() | Crashed())
            ):
                as_asked = True
            case _:
                as_asked = False
        if as_asked or settlement.token in job.settled:
            return {Verdict.ALREADY, Verdict.LOST}  # another word on a run that has ended, which changes nothing
        return {Verdict.LOST}

    def mark(self, marks: Iterable[BreakerMark], settled: Iterable[tuple[Settlement, Verdict]]) -> None:
        """What runs say about breakers, where they were settled now; or had succeeded, perhaps in a transaction of
        their own, before they could say anything."""
        heard = {
            each.token
            for each, verdict in settled
            if verdict is Verdict.APPLIED or (verdict is Verdict.ALREADY and isinstance(each, Succeed))
        }
        for mark in marks:
            if mark.token in heard:
                self.flow.mark(mark, self.now)

    def _apply(self, job: Job, settlement: Settlement) -> None:
        match settlement:
            case Succeed():
                self._end(job, State.SUCCEEDED, None)
            case Bury(reason=reason):
                self._record(job, Cause.DEAD)
                self._end(job, State.DEAD, reason)
            case Cancel(reason=reason):
                self._record(job, Cause.CANCELLED)
                self._end(job, State.CANCELLED, reason)
            case Retry(delay_s=delay_s):
                self._record(job, Cause.RETRY)
                self._leave_worker(job, State.SCHEDULED, charged=True)
                job.due_at = self.now + delay_s
            case Snooze(delay_s=delay_s):
                self._record(job, Cause.SNOOZE)
                self._leave_worker(job, State.SCHEDULED)
                job.due_at = self.now + delay_s
            case HandBack(cause=cause):
                self._record(job, cause)
                self._give_back(job)
            case Crashed():
                self._record(job, Cause.WORKER_LOST)
                job.crashes += 1  # nobody else was hit: no reason to run it without neighbours
                self._return_or_bury(job)
            case Park(reason=reason, key=key):
                self._record(job, Cause.HANDED_BACK)
                self._leave_worker(job, State.PARKED)
                if job.state is State.PARKED:
                    job.reason, job.park_key = reason, key

    def _record(self, job: Job, cause: Cause) -> None:
        assert job.token is not None
        job.causes[job.token] = cause

    def _give_back(self, job: Job) -> None:
        self._leave_worker(job, State.READY)  # its seq is the old one

    def _leave_worker(self, job: Job, state: State, *, charged: bool = False) -> None:
        if job.cancel_reason is not None:
            self._end(job, State.CANCELLED, job.cancel_reason)
            return
        job.state = state
        job.attempt -= not charged
        self.flow.free(job.new.id)

    # ------------------------------------------------------------ waiting

    def promote(self, limit: int) -> int:
        scheduled = [job for job in self.jobs.values() if job.state is State.SCHEDULED and job.due_at <= self.now]
        due = sorted(scheduled, key=lambda job: (job.due_at, job.new.id))[:limit]
        for job in due:
            self._to_tail(job)
        return len(due)

    def next_due(self) -> float | None:
        return min((job.due_at for job in self.jobs.values() if job.state is State.SCHEDULED), default=None)

    def expire(self) -> int:
        return self._end_all([job for job in self.jobs.values() if self._overdue(job)], EXPIRED)

    def purge_queue(self, queue: str, reason: str) -> int:
        jobs = [job for job in self.jobs.values() if job.state in WAITING and job.new.queue == queue]
        return self._end_all(jobs, reason)

    def cancel(self, job_id: JobId, reason: str) -> CancelAnswer:
        job = self.jobs.get(job_id)
        if job is None:
            return CancelAnswer.MISSING
        if job.state.ended:
            return CancelAnswer.ENDED
        if job.state is State.RUNNING:
            job.cancel_reason = job.cancel_reason or reason
            return CancelAnswer.REQUESTED
        self._end(job, State.CANCELLED, reason)
        return CancelAnswer.CANCELLED

    def unpark(self, reason: str, keys: Iterable[str]) -> int:
        lifted = self.parked(reason, keys)
        for job in lifted:
            if job.tag:
                self._to_tail(job)
            else:
                job.state = State.READY  # at its old place
        return len(lifted)

    def parked(self, reason: str, keys: Iterable[str]) -> list[Job]:
        """The oldest first."""
        parked = (job for job in self.jobs.values() if job.state is State.PARKED and job.reason == reason)
        return sorted((job for job in parked if job.park_key in set(keys)), key=lambda job: job.seq)

    def _overdue(self, job: Job) -> bool:
        return job.state in WAITING and job.deadline is not None and job.deadline <= self.now

    def _end_all(self, jobs: list[Job], reason: str) -> int:
        for job in jobs:
            self._end(job, State.CANCELLED, reason)
        return len(jobs)

    def _to_tail(self, job: Job) -> None:
        self._seq += 1
        ready = self.ready_in(job.lane, alone=False) + self.ready_in(job.lane, alone=True)
        waiting = {(other.tag, other.new.id, other.new.tenant) for other in ready if other is not job}  # not yet
        job.tag = self.tags.give(job.lane, job.new.tenant, job.new.id, waiting)
        job.state, job.seq = State.READY, self._seq

    # ------------------------------------------------------------ endings

    def _end(self, job: Job, state: State, reason: str | None) -> None:
        job.state, job.reason, job.ended_at = state, reason, self.now
        job.deadline = job.cancel_reason = None
        job.missing = set()
        self.flow.free(job.new.id)
        for other in self.jobs.values():
            if other.state is State.BLOCKED and job.new.id in other.missing:
                other.missing.discard(job.new.id)
                if not other.missing:
                    self._to_tail(other)

    def pause(self, queue: str, *, paused: bool) -> None:
        """Nobody waits for what a paused queue has: slots that were kept for its jobs go on to others."""
        (self.paused.add if paused else self.paused.discard)(queue)
        if paused:
            for job in [job for job in self.jobs.values() if job.state is State.READY and job.new.queue == queue]:
                self.flow.free(job.new.id)

    def weigh(self, queue: str, last: Collection[int]) -> None:
        """These priorities of a queue come last: slots that were kept for jobs there go on to others."""
        self.last = frozenset(lane for lane in self.last if lane.queue != queue) | {Lane(queue, each) for each in last}
        for job in self.jobs.values():
            if job.state is State.READY and job.lane in self.last:
                self.flow.put_last(job.new)

    def keeps(self, job: Job) -> bool:
        """Whether slots go with it when it is let go: somebody will claim it."""
        return job.new.queue not in self.paused

    def busy_lanes(self, place: Place) -> set[Lane]:
        """They have a turn at a rate already and do not use it."""
        ready = (job for job in self.jobs.values() if job.state is State.READY and not alone(job.losses))
        turns = self.flow.slots.get(place, set())
        overdue = (job for job in ready if job.new.id in turns and self.flow.is_overdue(place, job.new.id, self.now))
        return {job.lane for job in overdue}

    def turn(self, job: Job) -> tuple[bool, int]:
        """Where it may stand among those who wait at its gate: what is left is for those who come last. In which order
        lanes and tenants take turns is for the contract to say; within one of them it is that of places."""
        return job.lane in self.last and job.new.queue not in self.paused, job.seq

    def comes_anew(self, job: Job, at: Place) -> bool:
        """Of one that is let go from there: whether it goes to the tail."""
        if not job.tag or at.barrier not in (Barrier.PAUSED, Barrier.BREAKER):
            return False
        gates = self.flow.gates_of(job.new)
        return all(isinstance(gate, BreakerGate) and self.flow.is_closed(gate, self.now) for gate in gates)

    def let_go(self, jobs: Sequence[tuple[Job, Place]]) -> None:
        """Those who come anew go to the tail, in this order; the others have their old places."""
        anew = [job for job, at in jobs if self.comes_anew(job, at)]
        for job, _ in jobs:
            job.state = State.READY if job not in anew else State.PARKED
        for job in anew:
            self._to_tail(job)

    def replay_jobs(self, job_ids: Sequence[JobId]) -> Replayed:
        count = 0
        in_the_way: dict[JobId, JobId] = {}
        for job_id in job_ids:
            job = self.jobs.get(job_id)
            if job is None or job.state is not State.DEAD:
                continue
            other = self.unique.in_the_way(job.new, self.state_of, self.now)
            if other is not None:
                in_the_way[job_id] = other
                continue
            self.unique.take_again(job.new, job.created_at, self.state_of, self.now)
            self._replay(job)
            count += 1
        return Replayed(count, in_the_way)

    def _replay(self, job: Job) -> None:
        if job.token is not None:
            job.causes[job.token] = Cause.REPLAY  # whatever ended the chapter before
        job.attempt = job.losses = job.crashes = 0
        self._to_tail(job)

    def purge_dead(self, job_id: JobId) -> bool:
        return job_id in self.jobs and self.jobs[job_id].state is State.DEAD and bool(self.jobs.pop(job_id))

    def prune(self, keep_succeeded_s: float, keep_cancelled_s: float) -> int:
        keep = {State.SUCCEEDED: keep_succeeded_s, State.CANCELLED: keep_cancelled_s}
        past = [
            job.new.id
            for job in self.jobs.values()
            if job.state in keep and job.ended_at <= self.now - max(keep[job.state], KEPT_AT_LEAST_S)
        ]
        for job_id in past:
            self.unique.prune(job_id, self.jobs[job_id].state, self.now)
            del self.jobs[job_id]
        return len(past)

    def drop_keys(self) -> range:
        """As many as a store may drop now."""
        old = [scope for scope, key in self.keys.items() if key.expires_at <= self.now]
        for scope in old:
            del self.keys[scope]
        over, orphaned = self.unique.drop(self.state_of, self.now)
        return range(len(old) + over, len(old) + over + orphaned + 1)

    def move(self, job_id: JobId, lane: Lane) -> bool:
        job = self.jobs.get(job_id)
        if job is None or job.state not in WAITING or job.lane == lane:
            return False  # a repeated call changes nothing
        job.new = job.new._replace(queue=lane.queue, priority=lane.priority)
        if job.state is State.READY:
            self.flow.free(job_id)  # kept for its turn, which it gives up
            self._to_tail(job)
        return True
