"""The one routine of every ending, used by settle, reap, cancel, expire and claim alike (P2; joins; limits)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from holdfast.core.error_words import words_of
from holdfast.core.job import ErrorInfo, JobId, WorkerId
from holdfast.core.state import State
from holdfast.stores.base import Hint
from holdfast.stores.gate_rows import places_of_rows
from holdfast.stores.postgres.transaction import Place, Tx


class Ending(NamedTuple):
    """One job's end. Whoever makes it has removed the job's live row in the same transaction."""

    job_id: JobId
    state: State
    attempt: int
    token: int | None = None
    worker: WorkerId | None = None
    started_at: datetime | None = None
    result: bytes | None = None
    reason: str | None = None
    error: ErrorInfo | None = None


async def end_jobs(tx: Tx, endings: Sequence[Ending]) -> None:
    """Write the endings and let go of all that hangs on them."""
    if not endings:
        return
    done = [
        (e.job_id, e.state is State.CANCELLED, e.token, e.attempt, e.worker, e.started_at, e.result, e.reason)
        for e in endings
        if e.state is not State.DEAD
    ]
    dead = [
        (e.job_id, e.token, e.attempt, e.worker, e.started_at, e.reason, *_error(e))
        for e in endings
        if e.state is State.DEAD
    ]
    await tx.many("end_jobs.done", done, tx.now)
    await tx.many("end_jobs.dead", dead, tx.now)
    await let_go(tx, [ending.job_id for ending in endings])


def _error(ending: Ending) -> tuple[str, str, str, str]:
    error = ending.error or ErrorInfo("", "")
    return error.type, error.message, error.fingerprint, " ".join(words_of(error.message))


async def let_go(tx: Tx, job_ids: Sequence[JobId]) -> None:
    """Deadlines, slots and joins of jobs that have ended."""
    tx.hints |= Hint.ENDED
    [(expiries, slots, members)] = await tx.fetch("end_jobs.attached")
    if expiries:
        await tx.fetch("end_jobs.drop_expiry", job_ids)
    if slots:
        await free_slots(tx, job_ids)
    if members:
        await _arrive(tx, job_ids)


async def free_slots(tx: Tx, job_ids: Sequence[JobId]) -> None:
    """Jobs that no longer run free their slots. Who waits for these is looked after when that is committed."""
    tx.freed |= set(places_of_rows(await tx.fetch("end_jobs.drop_slots", job_ids)))


# ---------------------------------------------------------------- joins


async def _arrive(tx: Tx, job_ids: Sequence[JobId]) -> None:
    """Arrivals at joins, counted per join; what reached zero is released."""
    arrivals = Counter(row[0] for row in await tx.fetch("end_jobs.arrive", job_ids))
    await count_arrivals(tx, arrivals)
    await _forget_joins(tx, job_ids)  # one that ended while it was itself blocked waits for nobody any more


async def count_arrivals(tx: Tx, arrivals: Counter[JobId]) -> int:
    """Subtract from the joins what has arrived at them; returns how many were released."""
    if not arrivals:
        return 0
    held = {row[0] for row in await tx.fetch("end_jobs.lock_joins", list(arrivals))}
    if gone := arrivals.keys() - held:  # a join that has ended meanwhile, and could not see these arrivals
        await tx.fetch("end_jobs.forget_arrivals", list(gone))
    counted = await tx.many("end_jobs.subtract", sorted(arrivals.items()))
    return await release(tx, [join_id for join_id, remaining in counted if remaining <= 0])


async def release(tx: Tx, join_ids: Sequence[JobId]) -> int:
    """`blocked` → `ready`: all that these waited for has ended; → `scheduled` when there is a time, too."""
    if not join_ids:
        return 0
    rows = await tx.fetch("end_jobs.unblock", join_ids)
    await _forget_joins(tx, join_ids)
    later = [row for row in rows if row["due_at"] is not None and row["due_at"] > tx.now]
    await tx.many("end_jobs.timers", [(row["job_id"], row["due_at"], row["attached"]) for row in later])
    if later:
        tx.hints |= Hint.TIMER
    now = sorted((row for row in rows if row not in later), key=lambda row: join_ids.index(row["job_id"]))
    await tx.enter_ready([Place(row["job_id"], row["queue"], row["priority"], attached=row["attached"]) for row in now])
    return len(rows)


async def _forget_joins(tx: Tx, join_ids: Sequence[JobId]) -> None:
    await tx.fetch("end_jobs.forget_members", join_ids)
    await tx.fetch("end_jobs.forget_arrivals", join_ids)
