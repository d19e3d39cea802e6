"""Unique keys of new jobs: who has them, and how they change hands; `stores.judging` has the rule."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from holdfast.core.job import JobId, NewJob
from holdfast.core.state import State
from holdfast.stores.judging import Judged, UniqueHolder, pruned
from holdfast.stores.postgres.holding import moment
from holdfast.stores.postgres.transaction import Tx


class Keys(NamedTuple):
    """The unique keys that some jobs name, as they are in the store."""

    owners: dict[str, JobId]
    """Whose they are said to be."""
    holders: dict[str, UniqueHolder | None]
    """Those of them that are there; None where it is one of the jobs to be inserted, and nobody had it before."""


async def read_keys(tx: Tx, jobs: Sequence[NewJob], ours: dict[str, UniqueHolder | None]) -> Keys:
    """`ours`: keys that this transaction has taken already, and who had them before."""
    names = sorted({job.unique.key for job in jobs if job.unique is not None})
    rows = await tx.fetch("insert_jobs.unique_holders", names, tx.now) if names else []
    owners = {row[0]: _id(row[1]) for row in rows}
    found: dict[str, UniqueHolder | None] = {
        key: UniqueHolder(_id(job_id), State(state), created_at, first_at, begun)
        for key, job_id, state, created_at, first_at, begun, _ in rows
        if state is not None
    }
    found |= {
        key: pruned(_id(job_id), first_at, until) for key, job_id, _, _, first_at, _, until in rows if until is not None
    }
    return Keys(owners, found | ours)


async def take(
    tx: Tx, jobs: Sequence[NewJob], judged: Judged, keys: Keys, ours: dict[str, UniqueHolder | None]
) -> bool:
    """Write whose the keys are now; False where somebody else was quicker with one. `ours` is kept up to date."""
    rows: dict[str, tuple[str, JobId, datetime, datetime | None, JobId | None]] = {}
    for index, taking in judged.taking.items():  # of several in a batch the last one has it
        job = jobs[index]
        assert job.unique is not None
        for_s, key = job.unique.for_s, job.unique.key
        until = None if for_s is None else tx.now + timedelta(seconds=for_s)
        rows[key] = (key, job.id, moment(taking.first_at), until, keys.owners.get(key))
    wanted = [row for key, row in sorted(rows.items()) if row[1] != keys.owners.get(key)]
    taken = {row[0] for row in await tx.many("insert_jobs.take_unique", wanted)}
    for key in taken:
        ours.setdefault(key, keys.holders.get(key))
    return len(taken) == len(wanted)


def _id(found: object) -> JobId:
    """A user's connection may have been taught to answer with the text of an id."""
    return found if isinstance(found, UUID) else UUID(str(found))
