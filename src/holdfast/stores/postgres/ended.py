"""What happens to jobs that have ended: replay, edit, purge, prune; and the sweep, the net under everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

from holdfast.core.job import JobId
from holdfast.stores.base import Swept
from holdfast.stores.postgres.end import count_arrivals, lock_limit, release, unpark_waiters
from holdfast.stores.postgres.tenants import forget
from holdfast.stores.postgres.transaction import Place, Tx

#: A repeated enqueue must find its ids, so no body goes sooner after its end, whatever the retention says.
KEPT_AT_LEAST_S = 3600.0
#: Ready jobs of a queue that the sweep counts to compare.
_COMPARED = 10_000


async def replay_jobs(tx: Tx, job_ids: Sequence[JobId]) -> int:
    """`dead` → `ready` at the tail: a new chapter with a fresh budget; the old one stays on record."""
    revived = {row[0]: row[1] for row in await tx.fetch("ended.revive", job_ids)}
    await tx.many("ended.close_chapters", list(revived.items()))
    bodies = {row[0]: row for row in await tx.fetch("ended.reopen", list(revived))}
    again = [bodies[job_id] for job_id in dict.fromkeys(job_ids) if job_id in bodies]
    await tx.enter_ready([Place(row["id"], row["queue"], row["priority"], attached=row["attached"]) for row in again])
    return len(again)


async def edit_dead(tx: Tx, job_id: JobId, *, payload: bytes) -> bool:
    """The arguments of a dead job may be mended before its replay; of no other."""
    return bool(await tx.value("ended.edit", job_id, payload))


async def purge_dead(tx: Tx, job_ids: Sequence[JobId]) -> int:
    """Drop dead letters for good, bodies and history included."""
    purged = [row[0] for row in await tx.fetch("ended.purge", job_ids)]
    await _forget(tx, purged)
    return len(purged)


async def prune_jobs(tx: Tx, *, keep_succeeded_s: float, keep_cancelled_s: float, limit: int) -> int:
    """Forget what ended longer ago than its retention."""
    count = 0
    for cancelled, keep_s in ((False, keep_succeeded_s), (True, keep_cancelled_s)):
        until = tx.now - timedelta(seconds=max(keep_s, KEPT_AT_LEAST_S))
        past = [row[0] for row in await tx.fetch("ended.prune", cancelled, until, limit - count)]
        await _forget(tx, past)
        count += len(past)
    return count


async def _forget(tx: Tx, job_ids: Sequence[JobId]) -> None:
    if job_ids:
        for statement in ("drop_attempts", "drop_progress", "drop_bodies"):
            await tx.fetch(f"ended.{statement}", job_ids)


async def sweep(tx: Tx, *, limit: int) -> Swept:
    """Put right what nothing else did; every count but that of old keys is zero on a healthy store."""
    keys = await tx.fetch("sweep.drop_keys", tx.now, limit)
    await forget(tx, limit=limit)
    arrived = Counter(row[0] for row in await tx.fetch("sweep.uncounted", limit))
    await count_arrivals(tx, arrived)
    released = await release(tx, [row[0] for row in await tx.fetch("sweep.releasable", limit)])
    wrong = await fix_depths(tx)
    slots, unparked = await _sweep_limits(tx, limit)  # last: claims and settlements wait for the limits held here
    return Swept(released, unparked, slots, len(keys), wrong)


async def _sweep_limits(tx: Tx, limit: int) -> tuple[int, int]:
    stale = {row[0] for row in await tx.fetch("sweep.stale_slots", limit)}
    waited_for = {row[0] for row in await tx.fetch("sweep.waiting_keys", limit)}
    slots = unparked = 0
    for key in sorted(stale | waited_for):
        await lock_limit(tx, key)
        slots += len(await tx.fetch("sweep.drop_stale_slots", key)) if key in stale else 0
        unparked += await unpark_waiters(tx, key)
    return slots, unparked


async def fix_depths(tx: Tx) -> int:
    """Compare with what is there, in a single look; what this verb itself has moved is written first.

    A deep queue is compared up to a bound, so that this costs the same however deep it is; when it has drained below,
    it is compared exactly. One sweep at a time: two would correct the same mistake twice.
    """
    await tx.close_verb()
    if not await tx.value("sweep.alone"):
        return 0
    wrong: list[tuple[str, int]] = []
    for queue, change in await tx.fetch("sweep.wrong_depths", _COMPARED):
        [fixed] = [(queue, change)] if change is not None else await tx.fetch("sweep.recount", queue)
        wrong.append(tuple(fixed))
    await tx.many("transaction.change_depth", wrong)
    return len(wrong)
