"""enqueue: new jobs into `job` and one of `ready`, `timer`, `blocked`, with keys and watermarks (P1, P4, P8)."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import asyncpg

from holdfast.core.errors import KeyHeld, StoreDataError
from holdfast.core.gates import Gate, SlotGate, WhenFull
from holdfast.core.gates_text import gates_text
from holdfast.core.job import JobId, NewJob
from holdfast.core.state import State
from holdfast.core.unique_text import unique_text
from holdfast.stores.base import Conflict, Existing, Full, Hint, Inserted, InsertResult, Taken, Withheld
from holdfast.stores.judging import Holder, Judged, Taking, UniqueHolder, judge
from holdfast.stores.postgres import tenants, unique
from holdfast.stores.postgres.transaction import Place, Tx
from holdfast.stores.postgres.waiting import cancel_jobs

if TYPE_CHECKING:
    from asyncpg import Record


async def insert_ordinary(
    call: Callable[..., Awaitable[list[Record]]], jobs: Sequence[NewJob], tenanted: set[str]
) -> list[InsertResult] | None:
    """All of them by one statement; None unless all are ready at once, with nothing but gates attached to any."""
    if not are_ordinary(jobs):
        return None
    fair = not tenanted.isdisjoint(job.queue for job in jobs) if tenanted else False
    gated = any(job.gates for job in jobs)
    try:
        if gated:
            columns = fair_columns(jobs, tenanted) if fair else [*new_columns(jobs), *tenants.NO_CHAINS]
            await call("insert_jobs.gated", *columns, *_gate_columns(jobs))
        elif fair:
            await call("insert_jobs.fair", *fair_columns(jobs, tenanted))
        else:
            await call("insert_jobs.new", *new_columns(jobs))
    except StoreDataError as error:
        if not isinstance(error.__cause__, asyncpg.UniqueViolationError):
            raise
    else:
        return [Inserted(job.id, State.READY) for job in jobs]
    if fair or gated:
        return None
    # Some are there already: an earlier call, whose answer was lost, or an id that comes twice.
    fresh = {row[0] for row in await call("insert_jobs.ordinary", *ordinary_columns(jobs))}
    if None in fresh:  # all of them are, after all
        return [Inserted(job.id, State.READY) for job in jobs]
    return [Inserted(job.id, State.READY if _first(job.id, fresh) else None) for job in jobs]


def are_ordinary(jobs: Sequence[NewJob]) -> bool:
    """Ready at once, with nothing but gates that hangs on any of them."""
    column, many = _columns(jobs), len(jobs)
    attached = (column.key, column.unique, column.delay_s, column.run_at, column.expires_in_s, column.expires_at)
    return all(values.count(None) == many for values in attached) and column.waits_for.count(()) == many


def new_columns(jobs: Sequence[NewJob]) -> list[list[object]]:
    """The arguments of the function `insert_new_jobs`."""
    column = _columns(jobs)
    common = list(zip(column.task, column.queue, column.priority, column.tenant, column.max_attempts, strict=True))
    kinds = {kind: number for number, kind in enumerate(dict.fromkeys(common), 1)}
    return [
        list(column.id),
        list(column.payload),
        [kinds[kind] for kind in common],
        *map(list, zip(*kinds, strict=True)),
        _given(column.options),
        *_rare(jobs, column),
    ]


def fair_columns(jobs: Sequence[NewJob], tenanted: set[str]) -> list[Any]:
    """The arguments of the function `insert_fair_jobs`."""
    columns: list[Any] = new_columns(jobs)
    kinds = list(zip(*columns[4:7], strict=True))
    return columns + tenants.fair_columns(jobs, kinds, tenanted)


def _gate_columns(jobs: Sequence[NewJob]) -> list[list[object]]:
    """The arguments of the function `insert_gated_jobs` after those that it shares with `insert_fair_jobs`."""
    limits = [_limit(job.gates) for job in jobs]
    texts: list[object] = [gates_text(job.gates) for job in jobs]
    return [texts, [key for key, _ in limits], [size for _, size in limits]]


def _limit(gates: tuple[Gate, ...]) -> tuple[str | None, int | None]:
    """Key and size, where one limit that is waited for is all that there is."""
    match gates:
        case (SlotGate(key=key, size=size, when_full=WhenFull.WAIT),):
            return key, size
        case _:
            return None, None


def ordinary_columns(jobs: Sequence[NewJob]) -> list[list[object]]:
    """The arguments of the function `insert_jobs`."""
    column = _columns(jobs)
    always = (column.id, column.task, column.queue, column.priority, column.payload, column.tenant)
    return [*map(list, always), _given(column.options), _given(column.max_attempts), *_rare(jobs, column)]


def _columns(jobs: Sequence[NewJob]) -> Any:
    """A job of columns: each field holds those of all of them."""
    return NewJob._make(zip(*jobs, strict=True))


def _rare(jobs: Sequence[NewJob], column: Any) -> list[list[object]]:
    tags: list[object] = [] if column.tags.count(()) == len(jobs) else [*map(_tags, jobs)]
    return [tags, _given(column.metadata), _given(column.headers)]


def _given(values: tuple[object, ...]) -> list[object]:
    """Nothing where nobody has any: what is missing at the end of an array counts as NULL, and costs nothing."""
    return [] if values.count(None) == len(values) else list(values)


def _first(job_id: JobId, ids: set[JobId]) -> bool:
    """Whether it is among them; from its second mention on it is not."""
    if job_id in ids:
        ids.remove(job_id)
        return True
    return False


def _tags(job: NewJob) -> str | None:
    return json.dumps(job.tags) if job.tags else None


class Refused(Exception):
    """Leaves the transaction of a batch that is to be inserted whole or not at all; carries the answers."""

    def __init__(self, answers: list[InsertResult]) -> None:
        self.answers = answers


async def insert_jobs(tx: Tx, jobs: Sequence[NewJob], *, whole: bool, shut: Mapping[str, Full]) -> list[InsertResult]:
    """In a transaction of ours, which waits for nobody for long."""
    await tx.value("insert_jobs.set_lock_timeout")
    try:
        return await add_jobs(tx, jobs, whole=whole, shut=shut)
    except asyncpg.LockNotAvailableError as error:
        keys = ", ".join(repr(key) for job in jobs[:3] for key in _keys(job))
        raise KeyHeld(
            f"a transaction that is still open holds the idempotency key or unique key (among {keys}) or a job that is "
            "waited for; nothing was enqueued: try again when it has ended"
        ) from error


def _keys(job: NewJob) -> list[str]:
    return [claim.key for claim in (job.key, job.unique) if claim is not None]


async def add_jobs(tx: Tx, jobs: Sequence[NewJob], *, whole: bool, shut: Mapping[str, Full]) -> list[InsertResult]:
    """One answer per job, in order. `whole`: when one cannot be taken, none is, by way of `Refused`."""
    existing = {_id(row[0]) for row in await tx.fetch("insert_jobs.existing", [job.id for job in jobs])}
    refused, taking = await _settle_keys(tx, jobs, shut, existing)
    if whole and any(isinstance(answer, Conflict | Taken | Full) for answer in refused.values()):
        raise Refused([refused.get(index, Withheld()) for index in range(len(jobs))])
    fresh = {
        job.id: _no_later(job, taking.get(index), tx)
        for index, job in enumerate(jobs)
        if index not in refused and job.id not in existing
    }
    placed = await _insert(tx, list(fresh.values()))
    if any(take.replaces in placed for take in taking.values()):  # which wait for their tags, and are nowhere yet
        await tx.close_verb()
    for index, take in taking.items():
        if take.replaces is not None:
            await cancel_jobs(tx, [take.replaces], reason=f"replaced by {jobs[index].id}")
    if not placed and (existing or any(isinstance(answer, Existing) for answer in refused.values())):
        await _write_something(tx, jobs)
    answers: list[InsertResult] = []
    for index, job in enumerate(jobs):
        answers.append(refused.get(index) or Inserted(job.id, placed.pop(job.id, None)))
    return answers


async def _write_something(tx: Tx, jobs: Sequence[NewJob]) -> None:
    """So that the commit waits for a synchronous standby: what was found may not have arrived there yet (rule 8)."""
    await tx.many("transaction.change_depths", [(queue, 0, 0) for queue in sorted({job.queue for job in jobs})])


def _no_later(job: NewJob, take: Taking | None, tx: Tx) -> NewJob:
    """One that has replaced others for long enough is due by then."""
    due_at = _due_at(tx, job)
    if take is None or take.due_by is None or due_at is None or due_at.timestamp() <= take.due_by:
        return job
    return job._replace(delay_s=None, run_at=take.due_by)


async def _settle_keys(tx: Tx, jobs: Sequence[NewJob], shut: Mapping[str, Full], existing: set[JobId]) -> Judged:
    """Who is refused; whoever is not has its keys by now. Repeated when somebody else was quicker with one."""
    ours: set[tuple[str, str]] = set()
    unique_ours: dict[str, UniqueHolder | None] = {}
    """Keys that are ours by now, and who had them before."""
    while True:
        scopes = sorted({(job.tenant, job.key.key) for job in jobs if job.key is not None})
        holders = {
            (tenant, key): Holder(_id(job_id), fingerprint)
            for tenant, key, job_id, fingerprint in await tx.many("insert_jobs.holders", scopes, tx.now)
        }
        keys = await unique.read_keys(tx, jobs, unique_ours)
        judged = judge(
            jobs,
            now=tx.now.timestamp(),
            shut=shut,
            holder_of=lambda tenant, key, found=holders: found.get((tenant, key)),  # type: ignore[misc]  # binds this round's
            unique_holder_of=keys.holders.get,
            exists=existing.__contains__,
        )
        refused = judged.refused
        wanted: dict[tuple[str, str], NewJob] = {}
        for index, job in enumerate(jobs):
            if job.key is not None and index not in refused and job.id not in existing:
                wanted.setdefault((job.tenant, job.key.key), job)
        # Ours is also a key that this very job has got by an earlier call, or by one at the same time.
        ours |= {scope for scope, job in wanted.items() if scope in holders and holders[scope].job_id == job.id}
        rows = [
            (tenant, key, job.key.fingerprint, job.id, job.key.window_s)
            for (tenant, key), job in sorted(wanted.items())
            if (tenant, key) not in ours and job.key is not None
        ]
        ours |= {(tenant, key) for tenant, key in await tx.many("insert_jobs.take_keys", rows, tx.now)}
        if ours >= wanted.keys() and await unique.take(tx, jobs, judged, keys, unique_ours):
            return judged


async def _insert(tx: Tx, jobs: Sequence[NewJob]) -> dict[JobId, State]:
    """Bodies and places of those whose id is new; where each was put."""
    if not jobs:
        return {}
    bodies = {_id(row[0]): row[1] for row in await _bodies(tx, jobs)}
    fresh = [job for job in jobs if job.id in bodies]
    await tx.many("insert_jobs.expiries", [(job.id, bodies[job.id]) for job in fresh if bodies[job.id] is not None])
    awaited_ids = {awaited for job in fresh for awaited in job.waits_for if awaited != job.id}
    here = awaited_ids & bodies.keys()  # jobs of this very batch, which have no place yet
    live = here | await _awaited(tx, awaited_ids - here)
    states: dict[JobId, State] = {}
    ready: list[Place] = []
    timers: list[tuple[JobId, datetime, bool]] = []
    blocked: list[tuple[JobId, int, datetime | None, bool]] = []
    members: list[tuple[JobId, JobId]] = []
    for job in fresh:
        attached = bodies[job.id] is not None or bool(job.gates) or job.id in here
        due_at = _due_at(tx, job)
        awaited = [each for each in dict.fromkeys(job.waits_for) if each in live and each != job.id]
        if awaited:
            members += [(each, job.id) for each in awaited]
            blocked.append((job.id, len(awaited), due_at, attached))
            states[job.id] = State.BLOCKED
        elif due_at is not None and due_at > tx.now:
            timers.append((job.id, due_at, attached))
            states[job.id] = State.SCHEDULED
            tx.hints |= Hint.TIMER
        else:
            ready.append(Place(job.id, job.queue, job.priority, attached=attached))
            states[job.id] = State.READY
    await tx.many("insert_jobs.members", members)
    await tx.many("insert_jobs.blocked", blocked)
    await tx.many("insert_jobs.timers", timers)
    await tx.enter_ready(ready)
    return states


def _id(found: object) -> JobId:
    """A user's connection may have been taught to answer with the text of an id."""
    return found if isinstance(found, UUID) else UUID(str(found))


async def _bodies(tx: Tx, jobs: Sequence[NewJob]) -> list[tuple[JobId, datetime | None]]:
    columns = [
        (job.id, job.task, job.queue, job.priority, job.tenant, job.payload, job.options, job.max_attempts, _tags(job),
         job.metadata, job.headers, job.expires_in_s, None if job.expires_in_s is not None else job.expires_at,
         gates_text(job.gates))
        for job in jobs
    ]  # fmt: skip
    limits: list[list[Any]] = [*map(list, zip(*(_limit(job.gates) for job in jobs), strict=True))]
    statement = "insert_jobs.write_bodies"
    if any(job.unique is not None for job in jobs):
        statement, limits = "insert_jobs.write_unique_bodies", [*limits, [unique_text(job.unique) for job in jobs]]
    return [tuple(row) for row in await tx.many(statement, columns, tx.now, *limits)]


def _due_at(tx: Tx, job: NewJob) -> datetime | None:
    if job.delay_s is not None:
        return tx.now + timedelta(seconds=job.delay_s)
    return None if job.run_at is None else datetime.fromtimestamp(job.run_at, UTC)


async def _awaited(tx: Tx, job_ids: set[JobId]) -> set[JobId]:
    """Those that have not ended, held where they are until we commit: their ending will find that we wait."""
    found: set[JobId] = set()
    while open_ := job_ids - found:
        found |= {row[0] for row in await tx.fetch("insert_jobs.attach", sorted(open_))}
        not_ended = {row[0] for row in await tx.fetch("insert_jobs.not_ended", sorted(open_ - found))}
        job_ids = found | not_ended
    return found
