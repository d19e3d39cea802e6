"""Unique keys of new jobs: who has them, and how they change hands; `stores.judging` has the rule."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg

from holdfast.core.errors import KeyHeld
from holdfast.core.job import JobId, NewJob
from holdfast.core.state import State
from holdfast.core.unique_text import read_unique
from holdfast.stores.judging import Dead, Judged, UniqueHolder, judge_replay, pruned
from holdfast.stores.postgres.holding import moment
from holdfast.stores.postgres.transaction import Tx


class Keys(NamedTuple):
    """The unique keys that some jobs name, as they are in the store."""

    owners: dict[str, JobId]
    """Whose they are said to be."""
    versions: dict[str, str]
    """Which version of its row says so: it changes with every change of hands, and with a replay of whoever has it."""
    holders: dict[str, UniqueHolder | None]
    """Those of them that are there; None where it is one of the jobs to be inserted, and nobody had it before."""


async def read_keys(tx: Tx, jobs: Sequence[NewJob], ours: dict[str, UniqueHolder | None]) -> Keys:
    """`ours`: keys that this transaction has taken already, and who had them before."""
    names = sorted({job.unique.key for job in jobs if job.unique is not None})
    rows = await tx.fetch("insert_jobs.unique_holders", names, tx.now) if names else []
    owners = {row[0]: _id(row[1]) for row in rows}
    found: dict[str, UniqueHolder | None] = {**_holders(rows)}
    return Keys(owners, {row[0]: row[2] for row in rows}, found | ours)


def _holders(rows: Sequence[Any]) -> dict[str, UniqueHolder]:
    found: dict[str, UniqueHolder] = {}
    for key, job_id, _, state, created_at, first_at, has_run, until in rows:
        if state is not None:
            found[key] = UniqueHolder(_id(job_id), State(state), created_at, first_at, has_run)
        elif until is not None:
            found[key] = pruned(_id(job_id), first_at, until)
    return found


async def take(
    tx: Tx, jobs: Sequence[NewJob], judged: Judged, keys: Keys, ours: dict[str, UniqueHolder | None]
) -> bool:
    """Write whose the keys are now; False where somebody else was quicker with one. `ours` is kept up to date."""
    rows: dict[str, tuple[str, JobId, datetime, datetime | None, str | None]] = {}
    for index, taking in judged.taking.items():  # of several in a batch the last one has it
        job = jobs[index]
        assert job.unique is not None
        for_s, key = job.unique.for_s, job.unique.key
        until = None if for_s is None else tx.now + timedelta(seconds=for_s)
        rows[key] = (key, job.id, moment(taking.first_at), until, keys.versions.get(key))
    wanted = [row for key, row in sorted(rows.items()) if row[1] != keys.owners.get(key)]
    taken = {row[0] for row in await tx.many("insert_jobs.take_unique", wanted)}
    for key in taken:
        ours.setdefault(key, keys.holders.get(key))
    return len(taken) == len(wanted)


async def take_again(tx: Tx, job_ids: Sequence[JobId]) -> dict[JobId, JobId]:
    """The keys of dead jobs that are to run again, for those that may; who else stays dead, because of whom.

    They are dead until we commit, and nobody else gets one of the keys: who has it then is looked at with fresh eyes.
    """
    rows = {row[0]: row for row in await tx.fetch("ended.dead_unique", job_ids)}
    found = [
        Dead(job_id, claim, rows[job_id][2])
        for job_id in dict.fromkeys(job_ids)
        if job_id in rows and (claim := read_unique(rows[job_id][1])) is not None
    ]
    if not found:
        return {}
    await tx.value("insert_jobs.set_lock_timeout")
    now = tx.now.timestamp()
    firsts = {job.claim.key: job for job in reversed(found) if job.may_hold(now)}  # of others no call takes notice
    try:
        await tx.many("ended.hold_unique", [_row(tx, key, job) for key, job in firsts.items()])
    except asyncpg.LockNotAvailableError as error:
        raise KeyHeld(
            "a transaction that is still open holds the unique key of one of these jobs; none of them was replayed: "
            "try again when it has ended"
        ) from error
    keys = list({job.claim.key for job in found})
    holders = _holders(await tx.fetch("insert_jobs.unique_holders", keys, tx.now))
    judged = judge_replay(found, now=now, unique_holder_of=holders.get)
    await tx.many("ended.retake_unique", [_row(tx, key, job) for key, job in judged.taking.items()])
    return judged.in_the_way


def _row(tx: Tx, key: str, job: Dead) -> tuple[str, JobId, datetime, datetime | None]:
    return key, job.job_id, tx.now, None if job.expires_at is None else moment(job.expires_at)


def _id(found: object) -> JobId:
    """A user's connection may have been taught to answer with the text of an id."""
    return found if isinstance(found, UUID) else UUID(str(found))
