"""enqueue: new jobs into `job` and one of `ready`, `timer`, `blocked`, with keys and watermarks (P1, P4, P8)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from uuid import UUID

from holdfast.core.gates_text import gates_text
from holdfast.core.job import JobId, NewJob
from holdfast.core.state import State
from holdfast.core.unique_text import unique_text
from holdfast.stores.base import Conflict, Full, Hint, Inserted, InsertResult, Taken, Withheld
from holdfast.stores.judging import Holder, Judged, Taking, judge
from holdfast.stores.sqlite import unique
from holdfast.stores.sqlite.statements import load
from holdfast.stores.sqlite.tails import queue_up
from holdfast.stores.sqlite.tenants import mark_tenanted
from holdfast.stores.sqlite.transaction import Tx

SQL = load("insert_jobs")


def insert_jobs(tx: Tx, jobs: Sequence[NewJob], *, whole: bool, admit: bool) -> list[InsertResult]:
    """One answer per job, in order. `whole`: when one cannot be taken, none is."""
    shut = _shut_queues(tx, jobs)  # also for those that go past: it tells which queues have tenants
    shut = shut if admit else {}
    if named := {job.queue for job in jobs if job.tenant}:
        mark_tenanted(tx, named)
    refused, taking = _judge(tx, jobs, shut)
    if whole and any(isinstance(answer, Conflict | Full | Taken) for answer in refused.values()):
        return [refused.get(index, Withheld()) for index in range(len(jobs))]
    kept = [job for index, job in enumerate(jobs) if index not in refused] if refused else jobs
    fresh = _insert_bodies(tx, kept)
    _take_keys(tx, fresh)
    if taking:
        states = _place_unique(tx, fresh, {jobs[index].id: taken for index, taken in taking.items()})
    else:
        states = _place(tx, fresh)
    if fresh is jobs:  # the ordinary batch: all of it is new
        return [Inserted(job.id, state) for job, state in zip(jobs, states, strict=True)]
    placed = {job.id: state for job, state in zip(fresh, states, strict=True)}
    return [refused.get(index) or Inserted(job.id, placed.get(job.id)) for index, job in enumerate(jobs)]


def _shut_queues(tx: Tx, jobs: Sequence[NewJob]) -> dict[str, Full]:
    """Judge each queue once: below its mark it takes the whole batch, else nothing of it."""
    shut: dict[str, Full] = {}
    for queue in {job.queue for job in jobs}:
        depth, closed = tx.depth_of(queue)
        judged = tx.judge(queue, depth, closed=closed)
        if judged.closed != closed:
            tx.set_gate(queue, closed=judged.closed)
        if judged.closed or judged.draining:
            parked = tx.parked_in(queue)
            shut[queue] = Full(queue, depth, judged.marks.high, judged.marks.low, judged.age_s, judged.draining, parked)
    return shut


def _judge(tx: Tx, jobs: Sequence[NewJob], shut: dict[str, Full]) -> Judged:
    def holder_of(tenant: str, key: str) -> Holder | None:
        row = tx.db.execute(SQL["holder"], (tenant, key, tx.now)).fetchone()
        return None if row is None else Holder(UUID(bytes=row[0]), row[1])

    return judge(
        jobs,
        now=tx.now,
        shut=shut,
        holder_of=holder_of,
        unique_holder_of=lambda key: unique.holder_of(tx, key),
        exists=lambda job_id: _exists(tx, job_id),
    )


def _exists(tx: Tx, job_id: JobId) -> bool:
    return tx.db.execute(SQL["exists"], (job_id.bytes,)).fetchone() is not None


def _insert_bodies(tx: Tx, jobs: Sequence[NewJob]) -> Sequence[NewJob]:
    """Insert the bodies; returns those that were not there before."""
    if not jobs:
        return jobs
    rows = [_body(tx, job) for job in jobs]
    tx.db.execute("SAVEPOINT bodies")
    try:
        tx.db.executemany(SQL["body"], rows)
    except sqlite3.IntegrityError:  # a repeated call: go one by one
        tx.db.execute("ROLLBACK TO bodies")
        fresh = []
        for job, row in zip(jobs, rows, strict=True):
            if not _exists(tx, job.id):
                tx.db.execute(SQL["body"], row)
                fresh.append(job)
        jobs = fresh
    tx.db.execute("RELEASE bodies")
    return jobs


def _body(tx: Tx, job: NewJob) -> tuple[object, ...]:
    return (
        job.id.bytes,
        job.task,
        job.queue,
        job.priority,
        job.tenant,
        job.payload,
        job.options,
        job.max_attempts,
        json.dumps(job.tags) if job.tags else None,
        job.metadata,
        job.headers,
        _expires_at(tx, job),
        tx.now,
        gates_text(job.gates) if job.gates else None,
        unique_text(job.unique) if job.unique is not None else None,
    )


def _expires_at(tx: Tx, job: NewJob) -> float | None:
    return job.expires_at if job.expires_in_s is None else tx.now + job.expires_in_s


def _take_keys(tx: Tx, jobs: Sequence[NewJob]) -> None:
    for job in jobs:
        if job.key is not None:
            row = (job.tenant, job.key.key, job.key.fingerprint, job.id.bytes, tx.now + job.key.window_s)
            tx.db.execute(SQL["take_key"], row)


def _place_unique(tx: Tx, jobs: Sequence[NewJob], taking: Mapping[JobId, Taking]) -> list[State]:
    """The same for a batch some of which have to be unique, and may go instead of others."""
    unique.take(tx, jobs, taking)
    states = _place(tx, [unique.brought_forward(job, taking.get(job.id), tx.now) for job in jobs])
    unique.replace(tx, taking)
    return states


def _place(tx: Tx, jobs: Sequence[NewJob]) -> list[State]:
    """Give each new job its state."""
    states: list[State] = []
    ready: list[NewJob] = []
    for job in jobs:
        if job.delay_s is job.run_at is job.expires_in_s is job.expires_at is None and not job.waits_for:
            ready.append(job)  # the ordinary job, without further looking
            states.append(State.READY)
            continue
        tx.left_ready(job.queue, 0)  # a queue is known from its first job on, ready or not
        if (expires_at := _expires_at(tx, job)) is not None:
            tx.db.execute(SQL["expiry"], (expires_at, job.id.bytes))
        due_at = job.run_at if job.delay_s is None else tx.now + job.delay_s
        if job.waits_for and _block(tx, job, due_at):
            states.append(State.BLOCKED)
        elif due_at is not None and due_at > tx.now:
            tx.db.execute(SQL["timer"], (due_at, job.id.bytes))
            tx.hints |= Hint.TIMER
            states.append(State.SCHEDULED)
        else:
            ready.append(job)
            states.append(State.READY)
    queue_up(tx, [(job.queue, job.priority, job.id.bytes, 0, 0, 0) for job in ready])
    return states


def _block(tx: Tx, job: NewJob, due_at: float | None) -> bool:
    """Wait for those that have not ended; False when all of them have (a pruned job has ended, too)."""
    live = [
        awaited.bytes
        for awaited in dict.fromkeys(job.waits_for)
        if awaited != job.id and tx.db.execute(SQL["is_live"], {"id": awaited.bytes}).fetchone()
    ]
    tx.db.executemany(SQL["member"], [(awaited, job.id.bytes) for awaited in live])
    if live:
        tx.db.execute(SQL["blocked"], (job.id.bytes, len(live), due_at))
    return bool(live)
