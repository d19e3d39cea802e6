"""What happens to jobs that wait: promote, expire, cancel, purge. Cancelling a running job is only a request."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.core.errors import StoreUnavailable
from holdfast.core.job import JobId
from holdfast.core.state import State
from holdfast.stores.base import CancelAnswer, Hint, Promotion
from holdfast.stores.postgres.end import Ending, end_jobs
from holdfast.stores.postgres.lines import hand_down
from holdfast.stores.postgres.transaction import Place, Tx

#: How often a cancellation looks in vain for a job that is on the move, or in somebody's hands.
_LOOKS = 20


async def promote_jobs(tx: Tx, *, limit: int) -> Promotion:
    """`scheduled` and due → `ready`, the earliest due first, at the tail of their lanes."""
    due = [Place._make((*row, 0, None)) for row in await tx.fetch("waiting.promote", tx.now, limit)]
    await tx.enter_ready(due)
    next_due_in_s = await tx.value("waiting.next_due", tx.now)
    return Promotion(len(due), None if next_due_in_s is None else max(0.0, next_due_in_s))


async def expire_jobs(tx: Tx, *, limit: int) -> int:
    """Cancel what was not started by its deadline; a run that has started may end."""
    overdue = [row[0] for row in await tx.fetch("waiting.overdue", tx.now, limit)]
    expired = await _end_waiting(tx, overdue, reason="expired")
    if left := set(overdue) - set(expired):  # one that ended in a user's transaction, and was not tidied up after
        await tx.fetch("waiting.drop_stale_expiry", list(left))
    return len(expired)


async def purge_queue(tx: Tx, queue: str, *, reason: str, limit: int) -> int:
    """Cancel what waits in a queue, a bounded number at a time."""
    waiting = [row[0] for row in await tx.fetch("waiting.waiting_in_queue", queue, limit)]
    return len(await _end_waiting(tx, waiting, reason=reason, queue=queue))


async def cancel_jobs(tx: Tx, job_ids: Sequence[JobId], *, reason: str) -> list[CancelAnswer]:
    """End what waits, flag what runs.

    A job that moves from one table to the next can be missed by every statement that looks into one of them, so this
    looks again and again, each time with fresh eyes, until it knows of each job what became of it.
    """
    answers: dict[JobId, CancelAnswer] = {}
    open_ = list(dict.fromkeys(job_ids))
    for _ in range(_LOOKS):
        answers |= dict.fromkeys(await _end_waiting(tx, open_, reason=reason), CancelAnswer.CANCELLED)
        flagged = [row[0] for row in await tx.fetch("waiting.flag_active", open_, reason)]
        if flagged:
            tx.hints |= Hint.CANCEL
        answers |= dict.fromkeys(flagged, CancelAnswer.REQUESTED)
        open_ = [job_id for job_id in open_ if job_id not in answers]
        for job_id, known in await tx.fetch("waiting.ended", open_) if open_ else ():
            answers[job_id] = CancelAnswer.ENDED if known else CancelAnswer.MISSING
        open_ = [job_id for job_id in open_ if job_id not in answers]
        if not open_:
            return _in_order(job_ids, answers)
        await tx.value("transaction.breathe")
    raise StoreUnavailable(f"job {open_[0]} is in somebody else's transaction and cannot be cancelled now: try again")


def _in_order(job_ids: Sequence[JobId], answers: dict[JobId, CancelAnswer]) -> list[CancelAnswer]:
    """What a job's second mention hears is what it would hear from a second call."""
    told: set[JobId] = set()
    found = []
    for job_id in job_ids:
        again = job_id in told and answers[job_id] is CancelAnswer.CANCELLED
        found.append(CancelAnswer.ENDED if again else answers[job_id])
        told.add(job_id)
    return found


async def _end_waiting(tx: Tx, job_ids: Sequence[JobId], *, reason: str, queue: str | None = None) -> list[JobId]:
    """Take the jobs out of whatever they wait in and end them as cancelled; those that did wait. With a queue, those
    that wait there: others may have been moved away."""
    if not job_ids:
        return []
    left = await tx.fetch("waiting.leave_all", job_ids, queue)
    for row in left:
        if row["state"] == State.READY:
            tx.left_ready(row["queue"])
        elif row["state"] == State.PARKED:
            tx.parked(row["queue"], -1)
    await hand_down(tx, left)
    await end_jobs(tx, [Ending(job_id, State.CANCELLED, attempt, reason=reason) for job_id, attempt, *_ in left])
    return [row["job_id"] for row in left]
