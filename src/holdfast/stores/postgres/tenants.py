"""Tenants: the tags of jobs that go to the tails of their lanes, and what is set for tenants. Rules: `core.tenancy`.

Tags are given by functions of the schema, in the transaction that makes the jobs ready; a job's tenant is read only in
queues in which somebody has named one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from holdfast.core.job import JobId, NewJob, WorkerId
from holdfast.core.tenancy import NO_TENANT
from holdfast.stores.base import Hint
from holdfast.stores.gate_rows import tenant_weight_of

if TYPE_CHECKING:
    from asyncpg import Record

    from holdfast.stores.postgres.transaction import Place, Tx

#: Times the limit of a sweep: it only looks at most of them.
_FORGOTTEN_AT_ONCE = 20

#: A tenant in a lane: (queue, priority, tenant).
Key = tuple[str, int, str]


class Chains(NamedTuple):
    """Jobs in order, each behind the one before it that has the same tenant in the same lane."""

    keys: list[Key]
    counts: list[int]
    last: list[JobId]
    ranks: list[int]
    """For each job, how many of its chain come before it."""

    def columns(self) -> tuple[list[str], list[int], list[str], list[int], list[JobId]]:
        """The arguments of the functions `give_tags` and `guess_tags`."""
        queues, priorities, tenants = map(list, zip(*self.keys, strict=True)) if self.keys else ([], [], [])
        return queues, priorities, tenants, self.counts, self.last


def chains(jobs: Sequence[tuple[Key, JobId]]) -> Chains:
    counts: Counter[Key] = Counter()
    ranks: list[int] = []
    for key, _ in jobs:
        ranks.append(counts[key])
        counts[key] += 1
    last = dict(jobs)
    return Chains(list(counts), list(counts.values()), [last[key] for key in counts], ranks)


async def tagged(tx: Tx, places: Sequence[Place]) -> list[Place]:
    """The same jobs, with tags in queues with tenants. Until we commit, others who enqueue for these tenants wait."""
    fair = [place for place in places if place.queue in tx.tenanted]
    rows = await tx.fetch("tenants.of_jobs", [place.job_id for place in fair])
    tenants = {str(row[0]): row[1] for row in rows}  # a user's connection may answer with the text of an id
    # One whose body is gone comes along: its claim will tell.
    keys = [(place.queue, place.priority, tenants.get(str(place.job_id), NO_TENANT)) for place in fair]
    links = chains([(key, place.job_id) for key, place in zip(keys, fair, strict=True)])
    rows = await tx.fetch("tenants.guess_tags" if tx.is_guest else "tenants.give_tags", *links.columns())
    given = dict(zip(links.keys, rows, strict=True))
    tags = {
        place.job_id: given[key][0] + rank * given[key][1]
        for place, key, rank in zip(fair, keys, links.ranks, strict=True)
    }
    return [place._replace(tag=tags.get(place.job_id, 0)) for place in places]


def fair_columns(jobs: Sequence[NewJob], kinds: Sequence[tuple[str, int, str]], tenanted: set[str]) -> list[object]:
    """The arguments of the function `insert_fair_jobs` after those that it shares with `insert_new_jobs`.

    `kinds`: (queue, priority, tenant) of each kind of job, in order.
    """
    keys = [(job.queue, job.priority, job.tenant) for job in jobs]
    links = chains([(key, job.id) for key, job in zip(keys, jobs, strict=True) if job.queue in tenanted])
    number = {key: n for n, key in enumerate(links.keys, 1)}
    ranks = iter(links.ranks)
    return [
        [number.get(kind, 0) for kind in kinds],
        [next(ranks) if key[0] in tenanted else 0 for key in keys],
        *links.columns(),
    ]


#: The same where no queue has tenants.
NO_CHAINS: tuple[list[object], ...] = ([], [], [], [], [], [], [])


async def reach(tx: Tx, worker: WorkerId, places: Sequence[Place]) -> None:
    """These were claimed."""
    rows = [(place.queue, place.priority, place.tag) for place in places if place.tag]
    await tx.many("tenants.reach", rows, worker)


async def forget(tx: Tx, *, limit: int) -> None:
    """Tags that no longer say anything, and notes that are in the tags by now."""
    await tx.fetch("tenants.fold_notes", limit)
    await tx.fetch("tenants.forget", await tx.value("tenants.somewhere"), limit * _FORGOTTEN_AT_ONCE)


def weights_of(rows: Sequence[Record]) -> dict[str, float]:
    """Of all tenants for whom one was set."""
    found = {tenant: tenant_weight_of(weight) for tenant, weight in map(tuple, rows)}
    return {tenant: weight for tenant, weight in found.items() if weight is not None}


async def set_weight(tx: Tx, tenant: str, weight: float | None) -> float | None:
    """For jobs that get their tags from now on; the weight before."""
    before = tenant_weight_of(await tx.value("tenants.weight", tenant))
    if weight is None:
        await tx.fetch("tenants.drop_weight", tenant)
    else:
        await tx.fetch("tenants.set_weight", tenant, weight)
    tx.hints |= Hint.SETTINGS
    return before
