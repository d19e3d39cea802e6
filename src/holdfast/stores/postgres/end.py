"""The one routine of every ending, used by settle, reap, cancel, expire and claim alike (P2; joins; limits)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from holdfast.core.error_words import words_of
from holdfast.core.job import ErrorInfo, JobId, WorkerId
from holdfast.core.state import State
from holdfast.stores.base import Hint
from holdfast.stores.postgres.transaction import Place, Tx

if TYPE_CHECKING:
    from asyncpg import Record


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


# ---------------------------------------------------------------- limits


async def free_slots(tx: Tx, job_ids: Sequence[JobId]) -> None:
    """Jobs that no longer run free their slots, and the oldest waiters for these become ready."""
    freed = {row[0] for row in await tx.fetch("end_jobs.free_slots", job_ids)}
    for key in sorted(freed):  # in one order for all, so that no two wait for each other
        if tx.left is None:
            await lock_limit(tx, key)
        elif not await try_lock_limit(tx, key):
            tx.left.append(key)
            continue
        await unpark_waiters(tx, key)


async def try_lock_limit(tx: Tx, key: str) -> bool:
    """The same as below, unless somebody else has it in hand."""
    return bool(await tx.value("end_jobs.try_lock_limit", key))


async def lock_limit(tx: Tx, key: str) -> None:
    """From here on nobody else takes or frees a slot of this limit, until the transaction ends."""
    await tx.value("end_jobs.lock_limit", key)


async def unpark_waiters(tx: Tx, key: str) -> int:
    """Make the oldest jobs parked under a locked limit's key ready, as far as it has room; at their old places.

    They take the slots with them, so that nobody who comes later overtakes them between here and their claim. Those in
    queues that nobody claims from do not, so that nobody waits for them: they take one when they are claimed, or wait
    again, at their old places. So does one whose body is gone: its claim will tell.
    """
    count = 0
    for _ in range(_ROUNDS):
        waiters = await tx.fetch("end_jobs.oldest_waiters", key, _AT_ONCE)
        released = _with_room(waiters)
        heirs = [(row["job_id"], row["limit_size"]) for row in released if row["served"] and row["limit_size"]]
        await take_slots(tx, key, heirs)
        if released:
            await tx.fetch("end_jobs.unpark", [row["job_id"] for row in released])
            await tx.enter_ready([Place._make(list(row.values())[: len(Place._fields)]) for row in released])
        count += len(released)
        if len(released) < _AT_ONCE:
            break
    return count


def _with_room(waiters: Sequence[Record]) -> list[Record]:
    """The oldest, up to the first that would be one too many."""
    released: list[Record] = []
    given = 0
    for row in waiters:
        size = row["limit_size"]
        if size is not None and row["held"] + given >= size:
            break
        released.append(row)
        given += row["served"] and size is not None
    return released


#: Waiters looked at together, and how often: what is left after that is for the next to come by, or for the sweep.
_AT_ONCE, _ROUNDS = 100, 10
UNPARKED_AT_ONCE = _AT_ONCE * _ROUNDS


async def take_slots(tx: Tx, key: str, jobs: Sequence[tuple[JobId, int]]) -> set[JobId]:
    """Slots of a locked limit for these (job, size), as far as there is room; taking one twice is the same as once."""
    rows = await tx.fetch("end_jobs.take_slots", key, *map(list, zip(*jobs, strict=True))) if jobs else []
    return {row[0] for row in rows}


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
