"""What happens to jobs that have ended: replay, edit, purge, prune; and the sweep, the net under everything."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.core.job import JobId
from holdfast.core.state import State
from holdfast.core.unique import Rekeyed
from holdfast.stores.base import Swept
from holdfast.stores.dead import Replayed
from holdfast.stores.sqlite.end import bury_headless, release
from holdfast.stores.sqlite.serve import serve_freed, sweep_gates, sweep_slots
from holdfast.stores.sqlite.statements import load
from holdfast.stores.sqlite.tails import queue_up
from holdfast.stores.sqlite.tenants import Forgetting
from holdfast.stores.sqlite.transaction import Tx
from holdfast.stores.sqlite.unique import Dropping, drop_of, give_up, note_cancelled, take_again

DEAD = load("dead")
PRUNE = load("prune_jobs")
SWEEP = load("sweep")

#: A repeated enqueue must find its ids, so no body goes sooner after its end, whatever the retention says.
KEPT_AT_LEAST_S = 3600.0


def replay_jobs(tx: Tx, job_ids: Sequence[JobId]) -> Replayed:
    """`dead` → `ready` at the tail: a new chapter with a fresh budget; the old one stays on record."""
    in_the_way = take_again(tx, job_ids)
    count = 0
    for job_id in job_ids:
        if job_id in in_the_way:
            continue
        row = tx.db.execute(DEAD["revive"], (job_id.bytes,)).fetchone()
        if row is None:
            continue
        lane = tx.db.execute(DEAD["body"], (job_id.bytes,)).fetchone()
        if lane is None:
            bury_headless(tx, job_id.bytes, row[1])
            continue
        tx.db.execute(DEAD["close_chapter"], (job_id.bytes, row[0]))
        queue_up(tx, [(*lane, job_id.bytes, 0, 0, 0)])
        count += 1
    return Replayed(count, in_the_way)


def edit_dead(tx: Tx, job_id: JobId, *, payload: bytes, rekeyed: Rekeyed | None = None) -> bool:
    """The arguments of a dead job may be mended before its replay; of no other."""
    if tx.db.execute(DEAD["edit"], {"id": job_id.bytes, "payload": payload}).rowcount != 1:
        return False
    if rekeyed is not None:
        give_up(tx, job_id, rekeyed)
    return True


def purge_dead(tx: Tx, job_ids: Sequence[JobId]) -> int:
    """Drop dead letters for good, bodies and history included."""
    purged = [job_id.bytes for job_id in job_ids if tx.db.execute(DEAD["purge"], (job_id.bytes,)).rowcount]
    drop_of(tx, purged)
    _forget(tx, purged)
    return len(purged)


def prune_jobs(tx: Tx, *, keep_succeeded_s: float, keep_cancelled_s: float, limit: int) -> int:
    """Forget what ended longer ago than its retention; but of unique keys, those whose windows are open stay."""
    count = 0
    for state, keep_s in ((State.SUCCEEDED, keep_succeeded_s), (State.CANCELLED, keep_cancelled_s)):
        oldest = (state, tx.now - max(keep_s, KEPT_AT_LEAST_S), limit - count)
        past = [row[0] for row in tx.db.execute(PRUNE["past_retention"], oldest).fetchall()]
        tx.db.executemany(PRUNE["drop_done"], [(job_id,) for job_id in past])
        if state is State.CANCELLED:
            note_cancelled(tx, past)
        _forget(tx, past)
        count += len(past)
    return count


def _forget(tx: Tx, job_ids: Sequence[bytes]) -> None:
    rows = [(job_id,) for job_id in job_ids]
    for statement in ("drop_attempts", "drop_progress", "drop_body"):
        tx.db.executemany(PRUNE[statement], rows)


def sweep(tx: Tx, *, limit: int, tags: Forgetting, uniques: Dropping) -> tuple[Swept, bool]:
    """Put right what nothing else did; every count but that of old keys is zero on a healthy store. Also whether there
    may be more who wait at gates."""
    keys = tx.db.execute(SWEEP["drop_keys"], (tx.now, limit)).rowcount + uniques.drop(tx, limit=limit)
    tags.forget(tx, limit=limit)
    slots = sweep_slots(tx, limit=limit)
    unparked, more = sweep_gates(tx, limit=limit)
    releasable = tx.db.execute(SWEEP["releasable"], (limit,)).fetchall()
    for (join_id,) in releasable:
        release(tx, join_id)
    serve_freed(tx)
    tx.close_verb()
    fixed = tx.db.execute(SWEEP["fix_depths"]).rowcount
    return Swept(len(releasable), unparked, slots, keys, fixed), more
