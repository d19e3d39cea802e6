"""settle: what a run's outcome does to its job, fenced by job, token and worker (P5), answered per id (P2)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple, assert_never

from holdfast.core.cause import Cause
from holdfast.core.job import ErrorInfo, JobId, WorkerId
from holdfast.core.loss import Losses, after_crash
from holdfast.core.settlement import (
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
from holdfast.stores.base import Hint
from holdfast.stores.postgres.end import Ending, end_jobs, free_slots
from holdfast.stores.postgres.transaction import Place, Tx
from holdfast.stores.settling import causes

ATTEMPTS_KEPT = 200


class Lease(NamedTuple):
    """A row of `active`, taken out of it."""

    job_id: JobId
    token: int
    worker: WorkerId
    attempt: int
    queue: str
    priority: int
    tag: int
    seq: int
    losses: int
    crashes: int
    started_at: datetime
    cancel_reason: str | None
    attached: bool

    def ending(self, state: State, **details: Any) -> Ending:
        return Ending(self.job_id, state, self.attempt, self.token, self.worker, self.started_at, **details)

    def after(self, counts: Losses) -> Lease:
        """The same with other counts of what its runs did to their processes."""
        return self._replace(losses=counts.losses, crashes=counts.crashes)

    def poisoned(self, why: str) -> Ending:
        """Its end after one crash too many; `why` is the last one."""
        text = f"its process died {self.crashes} times while it ran alone; last: {why}"
        return self.ending(State.DEAD, reason="poison", error=ErrorInfo("holdfast.Poison", text))

    def old_place(self) -> Place:
        """Where it stood before this run, which is not charged."""
        return Place(
            self.job_id, self.queue, self.priority, self.attempt - 1, self.losses, self.crashes, self.attached,
            self.tag, self.seq,
        )  # fmt: skip


async def settle_jobs(tx: Tx, worker: WorkerId, settlements: Sequence[Settlement]) -> list[Verdict]:
    """One verdict per settlement, in order."""
    runs = [(each.job_id, each.token) for each in settlements]
    rows = await tx.fetch("settle_jobs.leases", worker, *map(list, zip(*runs, strict=True)))
    leases = {(row["job_id"], row["token"]): Lease._make(row) for row in rows}
    ours: list[tuple[Lease, Settlement]] = []
    verdicts: list[Verdict | None] = []
    for run, settlement in zip(runs, settlements, strict=True):
        lease = leases.pop(run, None)
        verdicts.append(None if lease is None else Verdict.APPLIED)
        if lease is not None:
            ours.append((lease, settlement))
    await _apply(tx, ours)
    if None not in verdicts:
        return [Verdict.APPLIED] * len(verdicts)
    recorded = {(row[0], row[1]): row[2] for row in await tx.many("settle_jobs.on_record", runs)}
    return [
        verdict or (Verdict.ALREADY if recorded[run] in causes(settlement) else Verdict.LOST)
        for run, settlement, verdict in zip(runs, settlements, verdicts, strict=True)
    ]


async def _apply(tx: Tx, settled: Sequence[tuple[Lease, Settlement]]) -> None:
    """Write what each settlement means, all of one kind at once; a job asked to be cancelled does not run again."""
    await free_all_slots(tx, [lease for lease, _ in settled])
    attempts: list[Attempt] = []
    endings: list[Ending] = []
    ready: list[Lease] = []
    timers: list[tuple[Lease, float, int]] = []
    parked: list[tuple[Lease, str, str]] = []
    for lease, settlement in settled:
        goes_on = lease.cancel_reason is None
        match settlement:
            case Succeed(result=result):
                endings.append(lease.ending(State.SUCCEEDED, result=result))
                continue
            case Bury(reason=reason, error=error):
                attempts.append(Attempt(lease, Cause.DEAD, error))
                endings.append(lease.ending(State.DEAD, reason=reason, error=error))
                continue
            case Cancel(reason=reason):
                attempts.append(Attempt(lease, Cause.CANCELLED))
                endings.append(lease.ending(State.CANCELLED, reason=reason))
                continue
            case Retry(delay_s=delay_s, error=error):
                attempts.append(Attempt(lease, Cause.RETRY, error))
                timers += [(lease, delay_s, lease.attempt)] if goes_on else []
            case Snooze(delay_s=delay_s, error=error):
                attempts.append(Attempt(lease, Cause.SNOOZE, error))
                timers += [(lease, delay_s, lease.attempt - 1)] if goes_on else []
            case HandBack(why=why, cause=cause):
                attempts.append(Attempt(lease, cause, ErrorInfo("", why)))
                ready += [lease] if goes_on else []
            case Crashed(why=why):
                attempts.append(Attempt(lease, Cause.WORKER_LOST, ErrorInfo("", why)))
                after, poison = after_crash(Losses(lease.losses, lease.crashes))
                lease = lease.after(after)  # what goes back has the new counts
                endings += [lease.poisoned(why)] if poison and goes_on else []
                ready += [lease] if goes_on and not poison else []
            case Park(reason=reason, key=key):
                attempts.append(Attempt(lease, Cause.HANDED_BACK, ErrorInfo("", f"parked: {reason}")))
                parked += [(lease, reason, key)] if goes_on else []
            case _:
                assert_never(settlement)
        if not goes_on:
            endings.append(lease.ending(State.CANCELLED, reason=lease.cancel_reason))
    await record_attempts(tx, attempts)
    await end_jobs(tx, endings)
    await _schedule(tx, timers)
    await _park(tx, parked)
    await _give_back(tx, ready)


class Attempt(NamedTuple):
    """Why a run did not end in success."""

    lease: Lease
    cause: Cause
    error: ErrorInfo | None = None


async def record_attempts(tx: Tx, attempts: Sequence[Attempt]) -> None:
    rows = [
        (lease.job_id, lease.token, lease.attempt, cause, *_texts(error), lease.worker, lease.started_at)
        for lease, cause, error in attempts
    ]
    await tx.many("settle_jobs.attempts", rows, tx.now)
    if rows:
        await tx.fetch("settle_jobs.bound_attempts", [row[0] for row in rows], ATTEMPTS_KEPT)


def _texts(error: ErrorInfo | None) -> tuple[str | None, str | None, str | None]:
    return (None, None, None) if error is None else (error.type or None, error.message, error.traceback or None)


async def give_back(tx: Tx, leases: Sequence[Lease]) -> None:
    """`running` → `ready` at the old place, uncharged; a job asked to be cancelled is cancelled instead. Their slots
    are free by now."""
    await end_jobs(tx, [_cancelled(lease) for lease in leases if lease.cancel_reason is not None])
    await _give_back(tx, [lease for lease in leases if lease.cancel_reason is None])


def _cancelled(lease: Lease) -> Ending:
    return lease.ending(State.CANCELLED, reason=lease.cancel_reason)


async def _give_back(tx: Tx, leases: Sequence[Lease]) -> None:
    await tx.enter_ready([lease.old_place() for lease in leases])


async def _schedule(tx: Tx, timers: Sequence[tuple[Lease, float, int]]) -> None:
    rows = [
        (lease.job_id, delay_s, attempt, lease.losses, lease.crashes, lease.attached)
        for lease, delay_s, attempt in timers
    ]
    await tx.many("settle_jobs.timers", rows, tx.now)
    if rows:
        tx.hints |= Hint.TIMER


async def _park(tx: Tx, parked: Sequence[tuple[Lease, str, str]]) -> None:
    await park(tx, [(lease.old_place(), reason, key) for lease, reason, key in parked])


async def park(tx: Tx, parked: Sequence[tuple[Place, str, str]]) -> None:
    """Jobs that left their places wait under a key, for a reason other than time."""
    rows = [
        (p.job_id, reason, key, p.tag, p.seq, p.attempt, p.losses, p.crashes, p.attached, p.queue)
        for p, reason, key in parked
    ]
    await tx.many("settle_jobs.wait", rows, tx.now)
    for place, _, _ in parked:
        tx.parked(place.queue)


async def free_all_slots(tx: Tx, leases: Sequence[Lease]) -> None:
    """All at once, and before any join is locked: so does everybody, and nobody waits in a circle."""
    attached = [lease.job_id for lease in leases if lease.attached]
    if attached:
        await free_slots(tx, attached)
