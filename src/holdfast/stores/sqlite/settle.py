"""settle: what a run's outcome does to its job, fenced by job, token and worker (P5), answered per id (P2)."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, assert_never

from holdfast.core.breaker import BreakerMark
from holdfast.core.cause import Cause
from holdfast.core.gates import Barrier, Place
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
from holdfast.core.tenancy import NO_TENANT
from holdfast.stores.base import Hint
from holdfast.stores.settling import causes, counting
from holdfast.stores.sqlite import breakers
from holdfast.stores.sqlite.end import Ending, end_jobs, let_go
from holdfast.stores.sqlite.gates import free_slots, make_due, park
from holdfast.stores.sqlite.statements import load
from holdfast.stores.sqlite.transaction import Tx

SQL = load("settle_jobs")

ATTEMPTS_KEPT = 200


class Lease(NamedTuple):
    """A row of `active`, taken out of it."""

    job_id: bytes
    token: int
    worker: bytes
    attempt: int
    queue: str
    priority: int
    tag: int
    seq: int
    losses: int
    crashes: int
    started_at: float
    cancel_reason: str | None

    def ending(self, state: State, **details: Any) -> Ending:
        return Ending(
            self.job_id,
            state,
            self.attempt,
            self.token,
            self.worker,
            self.started_at,
            **details,
        )


def settle_jobs(
    tx: Tx, worker: WorkerId, settlements: Sequence[Settlement], marks: Sequence[BreakerMark] = ()
) -> list[Verdict]:
    """One verdict per settlement, in order."""
    if all(type(settlement) is Succeed for settlement in settlements) and _succeed_all(tx, worker, settlements):
        verdicts = [Verdict.APPLIED] * len(settlements)
    else:
        verdicts = [_settle(tx, worker, settlement) for settlement in settlements]
    if marks:
        _mark(tx, marks, counting(settlements, verdicts))
    return verdicts


def _mark(tx: Tx, marks: Sequence[BreakerMark], applied: Collection[int]) -> None:
    """What the runs say about their breakers; only those that were settled here, and each once."""
    for name, state in breakers.mark(tx, [mark for mark in marks if mark.token in applied]).items():
        make_due(tx, Place(Barrier.BREAKER, name), tx.now if state.open_until is None else state.open_until)


def _succeed_all(tx: Tx, worker: WorkerId, settlements: Sequence[Settlement]) -> bool:
    """The ordinary batch in three statements; False (and nothing done) when any lease is not ours."""
    rows = [
        (tx.now, settlement.result, settlement.job_id.bytes, settlement.token, worker.bytes)
        for settlement in settlements
        if isinstance(settlement, Succeed)
    ]
    tx.db.execute("SAVEPOINT successes")
    try:
        applied = tx.db.executemany(SQL["succeed"], rows).rowcount
        removed = tx.db.executemany(SQL["leave_active"], [row[2:] for row in rows]).rowcount
    except sqlite3.IntegrityError:  # the same run twice in one batch
        applied = removed = -1
    if applied != len(rows) or removed != applied:
        tx.db.execute("ROLLBACK TO successes")
        tx.db.execute("RELEASE successes")
        return False
    tx.db.execute("RELEASE successes")
    let_go(tx, [row[2] for row in rows])
    return True


def _settle(tx: Tx, worker: WorkerId, settlement: Settlement) -> Verdict:
    fence = (settlement.job_id.bytes, settlement.token, worker.bytes)
    row = tx.db.execute(SQL["lease"], fence).fetchone()
    if row is None:
        return Verdict.ALREADY if _on_record(tx, settlement) else Verdict.LOST
    _apply(tx, Lease._make(row), settlement)
    return Verdict.APPLIED


def _on_record(tx: Tx, settlement: Settlement) -> bool:
    """Whether this very settlement was applied before, its answer lost; another end of the same run is not it."""
    run = (settlement.job_id.bytes, settlement.token)
    if isinstance(settlement, Succeed):
        return bool(tx.db.execute(SQL["succeeded_before"], run).fetchone()[0])
    row = tx.db.execute(SQL["cause_on_record"], run).fetchone()
    return row is not None and row[0] in causes(settlement)


def _apply(tx: Tx, lease: Lease, settlement: Settlement) -> None:
    match settlement:
        case Succeed(result=result):
            end_jobs(tx, [lease.ending(State.SUCCEEDED, result=result)])
        case Bury(reason=reason, error=error):
            record_attempt(tx, lease, Cause.DEAD, error)
            end_jobs(tx, [lease.ending(State.DEAD, reason=reason, error=error)])
        case Cancel(reason=reason):
            record_attempt(tx, lease, Cause.CANCELLED)
            end_jobs(tx, [lease.ending(State.CANCELLED, reason=reason)])
        case Retry(delay_s=delay_s, error=error):
            record_attempt(tx, lease, Cause.RETRY, error)
            _schedule(tx, lease, delay_s, attempt=lease.attempt)
        case Snooze(delay_s=delay_s, error=error):
            record_attempt(tx, lease, Cause.SNOOZE, error)
            _schedule(tx, lease, delay_s, attempt=lease.attempt - 1)
        case HandBack(why=why, cause=cause):
            record_attempt(tx, lease, cause, ErrorInfo("", why))
            give_back(tx, lease)
        case Crashed(why=why):
            after, poison = after_crash(Losses(lease.losses, lease.crashes))
            lose(tx, lease, Cause.WORKER_LOST, why, after=after, poison=poison)
        case Park(reason=reason, key=key):
            record_attempt(tx, lease, Cause.HANDED_BACK, ErrorInfo("", f"parked: {reason}"))
            _park(tx, lease, reason, key)
        case _:
            assert_never(settlement)


def record_attempt(tx: Tx, lease: Lease, cause: Cause, error: ErrorInfo | None = None) -> None:
    """Why this run did not end in success."""
    text = (None, None, None) if error is None else (error.type or None, error.message, error.traceback or None)
    row = (lease.job_id, lease.token, lease.attempt, cause, *text, lease.worker, lease.started_at, tx.now)
    tx.db.execute(SQL["attempt"], row)
    tx.db.execute(SQL["bound_attempts"], {"job": lease.job_id, "keep": ATTEMPTS_KEPT})


def give_back(tx: Tx, lease: Lease) -> None:
    """`running` → `ready` at the old place, uncharged; a job asked to be cancelled is cancelled instead."""
    if _cancelled_instead(tx, lease):
        return
    free_slots(tx, [lease.job_id])
    tx.enter_ready([(lease.queue, lease.priority, lease.tag, lease.seq, *_again(lease, lease.attempt - 1))])


def lose(tx: Tx, lease: Lease, cause: Cause, why: str, *, after: Losses, poison: bool) -> bool:
    """A job whose process died: back to its place uncharged, or dead as poison. True when it went back."""
    record_attempt(tx, lease, cause, ErrorInfo("", why))
    if poison and lease.cancel_reason is None:
        error = ErrorInfo("holdfast.Poison", f"its process died {after.crashes} times while it ran alone; last: {why}")
        end_jobs(tx, [lease.ending(State.DEAD, reason="poison", error=error)])
        return False
    give_back(tx, lease._replace(losses=after.losses, crashes=after.crashes))
    return lease.cancel_reason is None


def _schedule(tx: Tx, lease: Lease, delay_s: float, *, attempt: int) -> None:
    if _cancelled_instead(tx, lease):
        return
    free_slots(tx, [lease.job_id])
    tx.db.execute(SQL["timer"], (tx.now + delay_s, *_again(lease, attempt)))
    tx.hints |= Hint.TIMER


def _park(tx: Tx, lease: Lease, reason: str, key: str) -> None:
    if _cancelled_instead(tx, lease):
        return
    free_slots(tx, [lease.job_id])
    place = (reason, key, lease.tag, lease.seq)
    park(tx, (*place, *_again(lease, lease.attempt - 1), lease.priority, NO_TENANT, 0), lease.queue)


def _again(lease: Lease, attempt: int) -> tuple[bytes, int, int, int]:
    return lease.job_id, attempt, lease.losses, lease.crashes


def _cancelled_instead(tx: Tx, lease: Lease) -> bool:
    if lease.cancel_reason is None:
        return False
    end_jobs(tx, [lease.ending(State.CANCELLED, reason=lease.cancel_reason)])
    return True


def record_progress(
    tx: Tx, worker: WorkerId, job_id: JobId, token: int, done: float, total: float | None, stage: str | None
) -> bool:
    """Fenced like every write of a run."""
    fence = {"job": job_id.bytes, "token": token, "worker": worker.bytes}
    report = {"done": done, "total": total, "stage": stage, "now": tx.now}
    tx.hints |= Hint.RUNNING
    return tx.db.execute(SQL["progress"], fence | report).rowcount == 1
