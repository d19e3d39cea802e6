"""What happens to jobs that have ended: replay, edit, purge, prune."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from holdfast.core.error_words import words_of
from holdfast.core.job import JobId
from holdfast.core.options import DEFAULT_PRIORITY
from holdfast.core.unique import Rekeyed
from holdfast.core.unique_text import rekeyed_text
from holdfast.stores.dead import Replayed
from holdfast.stores.postgres import unique
from holdfast.stores.postgres.passing import BODY_MISSING, MISSING
from holdfast.stores.postgres.transaction import Place, Tx

#: A repeated enqueue must find its ids, so no body goes sooner after its end, whatever the retention says.
KEPT_AT_LEAST_S = 3600.0


async def replay_jobs(tx: Tx, job_ids: Sequence[JobId]) -> Replayed:
    """`dead` → `ready` at the tail: a new chapter with a fresh budget; the old one stays on record."""
    in_the_way = await unique.take_again(tx, job_ids)
    job_ids = [job_id for job_id in job_ids if job_id not in in_the_way]
    revived = {row[0]: row[1] for row in await tx.fetch("ended.revive", job_ids)}
    await tx.many("ended.close_chapters", list(revived.items()))
    bodies = {row[0]: row for row in await tx.fetch("ended.reopen", list(revived))}
    if len(revived) < len(job_ids):
        words = " ".join(words_of(MISSING.message))
        told = (BODY_MISSING, MISSING.type, MISSING.message, MISSING.fingerprint, words, DEFAULT_PRIORITY, tx.now)
        await tx.fetch("ended.tell_headless", job_ids, *told)
    again = [bodies[job_id] for job_id in dict.fromkeys(job_ids) if job_id in bodies]
    await tx.enter_ready([Place(row["id"], row["queue"], row["priority"], attached=row["attached"]) for row in again])
    return Replayed(len(again), in_the_way)


async def edit_dead(tx: Tx, job_id: JobId, *, payload: bytes, rekeyed: Rekeyed | None = None) -> bool:
    """The arguments of a dead job may be mended before its replay; of no other."""
    edited = await tx.fetch("ended.edit", job_id, payload)
    text = rekeyed_text(edited[0][0], rekeyed) if edited else None
    if text is not None and rekeyed is not None:
        await tx.fetch("ended.claim_anew", job_id, text)
        await tx.fetch("ended.give_up", rekeyed.before, job_id)
    return bool(edited)


async def purge_dead(tx: Tx, job_ids: Sequence[JobId]) -> int:
    """Drop dead letters for good, bodies and history included."""
    purged = [row[0] for row in await tx.fetch("ended.purge", job_ids)]
    if purged:
        await tx.fetch("ended.drop_unique", purged)
        await _forget(tx, purged)
    return len(purged)


async def prune_jobs(tx: Tx, *, keep_succeeded_s: float, keep_cancelled_s: float, limit: int) -> int:
    """Forget what ended longer ago than its retention; but of unique keys, those whose windows are open stay."""
    count = 0
    for cancelled, keep_s in ((False, keep_succeeded_s), (True, keep_cancelled_s)):
        until = tx.now - timedelta(seconds=max(keep_s, KEPT_AT_LEAST_S))
        past = [row[0] for row in await tx.fetch("ended.prune", cancelled, until, limit - count)]
        if past:
            if cancelled:
                await tx.fetch("ended.note_cancelled", past, tx.now)
            await tx.fetch("ended.drop_closed_unique", past, tx.now)
            await _forget(tx, past)
        count += len(past)
    return count


async def _forget(tx: Tx, job_ids: Sequence[JobId]) -> None:
    for statement in ("drop_attempts", "drop_progress", "drop_bodies"):
        await tx.fetch(f"ended.{statement}", job_ids)
