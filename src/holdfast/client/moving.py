"""Moves waiting jobs to another queue or priority, by id or by filter, in the order in which they wait."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final, TypeAlias
from uuid import UUID

from holdfast.client.acts import MOST_COUNTED, Acts, count_words, filter_words, id_words
from holdfast.client.filters import job_filter, parse_ids
from holdfast.core.errors import InvalidOptions
from holdfast.core.job import JobId
from holdfast.core.names import check_name
from holdfast.core.priority import parse_priority
from holdfast.core.state import State
from holdfast.stores.base import JobFilter, JobPage, Store

_BATCH: Final = 500
WAITING: Final = (State.READY, State.PARKED, State.SCHEDULED, State.BLOCKED)
_FILTERS: Final = {field.name for field in fields(JobFilter)}
_ID_BYTES: Final = 16


Which: TypeAlias = "JobId | str | Sequence[JobId | str] | Mapping[str, Any]"


async def move(
    store: Store,
    which: Which,
    acts: Acts,
    *,
    queue: str | None,
    priority: int | str | None,
    by: str,
) -> int:
    """How many were moved; those that run, have ended or are there already are passed over."""
    place = check_place(queue=queue, priority=priority)
    if acts.wanted:
        count = count_words(await count_movable(store, which))
        words = {"filter": filter_words(which)} if isinstance(which, Mapping) else {"ids": id_words(parse_ids(which))}
        await acts.record("move", "jobs", by=by, **words, **place, count=count)
    moved = 0
    async for ids in _chosen(store, which):
        moved += await store.move_jobs(ids, **place)
    return moved


def check_place(*, queue: str | None, priority: int | str | None) -> dict[str, Any]:
    """Where jobs can be moved to, as the store takes it."""
    if queue is None and priority is None:
        raise InvalidOptions("move: say where to: queue=, priority=, or both")
    return {
        "queue": None if queue is None else check_name("queue", queue),
        "priority": None if priority is None else parse_priority(priority),
    }


async def count_movable(store: Store, which: Which) -> int:
    """How many there are to move, counted so far as the record tells; those of given ids as they are."""
    if not isinstance(which, Mapping):
        return len(parse_ids(which))
    where = _where(which)
    states = WAITING if where.state is None else (where.state,)
    return sum([await store.count_jobs(replace(where, state=state), most=MOST_COUNTED) for state in states])


def _where(which: Mapping[str, Any]) -> JobFilter:
    if not any(value is not None for value in which.values()):
        raise InvalidOptions("move: say which jobs: ids, or filters as in {'queue': 'mail'}")
    if unknown := set(which) - _FILTERS:
        first, known = sorted(map(str, unknown))[0], ", ".join(sorted(_FILTERS))
        raise InvalidOptions(f"move: unknown filter {first!r}; there are {known}")
    return job_filter(**which)


async def _chosen(store: Store, which: Which) -> AsyncIterator[list[JobId]]:
    if not isinstance(which, Mapping):
        ids = parse_ids(which)
        for start in range(0, len(ids), _BATCH):
            yield ids[start : start + _BATCH]
        return
    where = _where(which)
    for state in WAITING if where.state is None else (where.state,):
        # Pages come newest first, and the oldest has to go first. As bytes a million ids are 16 MB.
        found = bytearray()
        page = JobPage()
        while True:
            page = await store.list_jobs(replace(where, state=state), limit=_BATCH, before=page.next)
            for info in page:
                found += info.id.bytes
            if page.next is None:
                break
        while found:
            last = bytes(found[-_BATCH * _ID_BYTES :])
            del found[-_BATCH * _ID_BYTES :]
            yield [UUID(bytes=last[at : at + _ID_BYTES]) for at in range(len(last) - _ID_BYTES, -1, -_ID_BYTES)]
