"""What happens to jobs that wait: promote, expire, cancel, purge. Cancelling a running job is only a request."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.core.job import JobId
from holdfast.core.state import State
from holdfast.stores.base import CancelAnswer, Hint, Promotion
from holdfast.stores.sqlite.end import Ending, bury_headless, end_jobs
from holdfast.stores.sqlite.lines import hand_down
from holdfast.stores.sqlite.statements import load
from holdfast.stores.sqlite.tails import queue_up
from holdfast.stores.sqlite.transaction import Tx

SQL = load("waiting")


def promote_jobs(tx: Tx, *, limit: int) -> Promotion:
    """`scheduled` and due → `ready`, the earliest due first, at the tail of their lanes."""
    found = sorted(tx.db.execute(SQL["due"], (tx.now, limit)).fetchall())
    lanes = [tx.db.execute(SQL["lane"], (row[1],)).fetchone() for row in found]
    due = [(*lane, *row[1:]) for lane, row in zip(lanes, found, strict=True) if lane is not None]
    queue_up(tx, due)
    for lane, (_, job_id, attempt, *_) in zip(lanes, found, strict=True):
        if lane is None:
            bury_headless(tx, job_id, attempt)
    (next_due,) = tx.db.execute(SQL["next_due"]).fetchone()
    return Promotion(len(due), None if next_due is None else max(0.0, next_due - tx.now))


def expire_jobs(tx: Tx, *, limit: int) -> int:
    """Cancel what was not started by its deadline; a run that has started may end."""
    overdue = tx.db.execute(SQL["overdue"], (tx.now, limit)).fetchall()
    return sum(_end_waiting(tx, job_id, reason="expired") for (job_id,) in overdue)


def cancel_jobs(tx: Tx, job_ids: Sequence[JobId], *, reason: str) -> list[CancelAnswer]:
    """In one writer's transaction a job cannot move meanwhile, so looking once is enough here."""
    return [cancel_job(tx, job_id.bytes, reason=reason) for job_id in job_ids]


def cancel_job(tx: Tx, job_id: bytes, *, reason: str) -> CancelAnswer:
    """End it if it waits, ask it to stop if it runs."""
    if _end_waiting(tx, job_id, reason=reason):
        return CancelAnswer.CANCELLED
    if tx.db.execute(SQL["flag_active"], (reason, job_id)).rowcount:
        tx.hints |= Hint.CANCEL
        return CancelAnswer.REQUESTED
    known = tx.db.execute(SQL["exists"], (job_id,)).fetchone()
    return CancelAnswer.ENDED if known else CancelAnswer.MISSING


def purge_queue(tx: Tx, queue: str, *, reason: str, limit: int) -> int:
    """Cancel what waits in a queue, a bounded number at a time."""
    waiting = tx.db.execute(SQL["waiting_in_queue"], {"queue": queue, "limit": limit}).fetchall()
    return sum(_end_waiting(tx, job_id, reason=reason) for (job_id,) in waiting)


def _end_waiting(tx: Tx, job_id: bytes, *, reason: str) -> bool:
    """Take the job out of whatever it waits in and end it as cancelled; False when it does not wait."""
    if left := tx.db.execute(SQL["leave_ready"], (job_id,)).fetchone():
        tx.left_ready(left[1], 1)
    elif left := tx.db.execute(SQL["leave_parked"], (job_id,)).fetchone():
        _, queue, barrier, key, priority, tenant, tag = left
        tx.left_parked(queue, 1)
        hand_down(tx, (barrier, key, queue, priority), tenant, tag)
    else:
        left = (
            tx.db.execute(SQL["leave_timer"], (job_id,)).fetchone()
            or tx.db.execute(SQL["leave_blocked"], (job_id,)).fetchone()
        )
    if left is None:
        return False
    end_jobs(tx, [Ending(job_id, State.CANCELLED, left[0], reason=reason)])
    return True
