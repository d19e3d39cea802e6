"""Which jobs of a batch are refused, and why: idempotency keys first, then unique keys, then full queues; the same rule
in every store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from holdfast.core.job import JobId, NewJob
from holdfast.core.state import LIVE, State
from holdfast.core.unique import UniqueClaim, WhenTaken
from holdfast.stores.base import Conflict, Existing, Full, InsertResult, Taken


class Holder(NamedTuple):
    """Who has an idempotency key."""

    job_id: JobId
    fingerprint: bytes


class UniqueHolder(NamedTuple):
    """Who has a unique key. Whether it counts is for the next claim to say."""

    job_id: JobId
    state: State
    created_at: float
    first_at: float
    """When the first was enqueued of those that it has replaced; else as `created_at`."""
    has_run: bool = False
    """It waits for its retry: what was put off until now has had its run."""
    until: float | None = None
    """Of one that has been pruned: when the window is over that outlasts it."""


def pruned(job_id: JobId, first_at: float, until: float) -> UniqueHolder:
    """Who has a key whose window is open although its job was pruned. There is no column for how that had ended: of one
    that was cancelled the time has its sign changed."""
    state = State.CANCELLED if first_at < 0 else State.SUCCEEDED
    return UniqueHolder(job_id, state, abs(first_at), abs(first_at), until=until)


class Taking(NamedTuple):
    """A unique key that one of the batch takes."""

    first_at: float
    replaces: JobId | None = None
    """To be cancelled, because of this one; it may be of the same batch."""
    due_by: float | None = None
    """It is due then at the latest."""


class Judged(NamedTuple):
    """Both by the index in the batch."""

    refused: dict[int, InsertResult]
    taking: dict[int, Taking]


def judge(
    jobs: Sequence[NewJob],
    *,
    now: float,
    shut: Mapping[str, Full],
    holder_of: Callable[[str, str], Holder | None],
    unique_holder_of: Callable[[str], UniqueHolder | None],
    exists: Callable[[JobId], bool],
) -> Judged:
    """Decides, and writes nothing. The first of a batch to name a key has it.

    `holder_of` is asked with tenant and key, `unique_holder_of` with a unique key, `exists` with a job's id: a repeated
    call must hear of its job, whoever has the key and however full the queue is by now.
    """
    refused: dict[int, InsertResult] = {}
    taking: dict[int, Taking] = {}
    if not shut and all(job.key is None and job.unique is None for job in jobs):
        return Judged(refused, taking)  # the ordinary batch
    taken: dict[tuple[str, str], Holder] = {}
    unique: dict[str, UniqueHolder] = {}
    for index, job in enumerate(jobs):
        if job.key is not None:
            scope = (job.tenant, job.key.key)
            holder = taken.get(scope) or holder_of(*scope)
            if holder is not None:
                if holder.job_id != job.id and not exists(job.id):
                    same = holder.fingerprint == job.key.fingerprint
                    refused[index] = Existing(holder.job_id) if same else Conflict(holder.job_id)
                continue
        before = None
        if job.unique is not None:
            before = unique.get(job.unique.key) or unique_holder_of(job.unique.key)
            if (before is not None and before.job_id == job.id) or exists(job.id):
                continue
            if before is not None and not _counts(before, job.unique, now):
                before = None
            if before is not None and job.unique.when_taken is not WhenTaken.REPLACE:
                existing = job.unique.when_taken is WhenTaken.EXISTING
                refused[index] = Existing(before.job_id) if existing else Taken(before.job_id)
                continue
        if job.queue in shut and not exists(job.id):
            refused[index] = shut[job.queue]
            continue
        if job.key is not None:
            taken[scope] = Holder(job.id, job.key.fingerprint)
        if job.unique is not None:
            taking[index] = _take(job.unique, before, now)
            unique[job.unique.key] = UniqueHolder(job.id, _placed(job, taking[index], now), now, taking[index].first_at)
    return Judged(refused, taking)


class Dead(NamedTuple):
    """A dead job with a unique key, that is to run again."""

    job_id: JobId
    claim: UniqueClaim
    created_at: float

    @property
    def expires_at(self) -> float | None:
        """When its window is over, which is counted from its enqueueing on."""
        return None if self.claim.for_s is None else self.created_at + self.claim.for_s

    def may_hold(self, now: float) -> bool:
        """Whether its window is still open."""
        return self.expires_at is None or now < self.expires_at


class Replaying(NamedTuple):
    """What becomes of dead jobs with unique keys."""

    in_the_way: dict[JobId, JobId]
    """Who stays dead, because of whom."""
    taking: dict[str, Dead]
    """Whose the keys are now that were somebody else's, or nobody's."""


def judge_replay(
    jobs: Sequence[Dead], *, now: float, unique_holder_of: Callable[[str], UniqueHolder | None]
) -> Replaying:
    """Decides, and writes nothing. Who is in the way of a new call is in the way of a replay; that one replaces nobody,
    as it is the older one. Of those in a batch that have one key the first has it."""
    in_the_way: dict[JobId, JobId] = {}
    taking: dict[str, Dead] = {}
    holders: dict[str, UniqueHolder | None] = {}
    for job in jobs:
        key = job.claim.key
        holder = holders.setdefault(key, unique_holder_of(key))
        own = holder is not None and holder.job_id == job.job_id
        if holder is not None and not own:
            if _counts(holder, job.claim, now):
                in_the_way[job.job_id] = holder.job_id
                continue
            if holder.state in LIVE:  # it does not count for this one's rule, and may for that of the next call
                continue
        if job.may_hold(now):
            holders[key] = UniqueHolder(job.job_id, State.READY, job.created_at, now)
            if not own:
                taking[key] = job
    return Replaying(in_the_way, taking)


def _counts(holder: UniqueHolder, claim: UniqueClaim, now: float) -> bool:
    if holder.state not in claim.states or (holder.has_run and claim.counts_first_waits_only):
        return False
    if holder.until is not None:
        return claim.for_s is not None and now < holder.until
    return claim.for_s is None or now < holder.created_at + claim.for_s


def _take(claim: UniqueClaim, before: UniqueHolder | None, now: float) -> Taking:
    if before is None or before.until is not None:  # nobody, or nobody who could be replaced
        return Taking(now)
    waits = before.state in LIVE and before.state is not State.RUNNING and not before.has_run
    first_at = before.first_at if waits else now
    return Taking(first_at, before.job_id, None if claim.longest_s is None else first_at + claim.longest_s)


def _placed(job: NewJob, taking: Taking, now: float) -> State:
    """Where a job of this batch will be, before anything is written."""
    if job.waits_for:
        return State.BLOCKED
    due_at = job.run_at if job.delay_s is None else now + job.delay_s
    if due_at is not None and taking.due_by is not None:
        due_at = min(due_at, taking.due_by)
    return State.READY if due_at is None or due_at <= now else State.SCHEDULED
