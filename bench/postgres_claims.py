"""Whether a claim costs more when more is waiting: CPU of its own server process, with few jobs ready and with many."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path

import asyncpg

from holdfast.core.backpressure import Watermarks
from holdfast.core.fairness import Lane
from holdfast.core.ids import new_job_id
from holdfast.core.job import NewJob
from holdfast.core.worker import NewWorker
from holdfast.stores.postgres import PostgresStore

FEW, MANY = 1_000, 1_000_000
CLAIMS, QUOTA = 200, 50
LANE = Lane("default", 5)

_FILL = """
WITH body AS (
    INSERT INTO holdfast.job (id, created_at, priority, max_attempts, task, queue, payload)
    SELECT id, now(), 5, 5, 'bench.tasks.noop', 'default', '{"args":[1],"kwargs":{}}'::bytea
    FROM unnest($1::uuid[]) AS new (id) RETURNING id
)
INSERT INTO holdfast.ready (seq, entered_at, job_id, priority, attempt, losses, crashes, attached, queue)
SELECT nextval('holdfast.place'), now(), id, 5, 0, 0, 0, false, 'default' FROM body
"""


def compare(few_url: str, many_url: str) -> tuple[float, float, float]:
    """µs of a claim of 50 with a thousand jobs waiting, the same with a million, and how many times as much that is."""
    few, many = asyncio.run(_cost(few_url, FEW)), asyncio.run(_cost(many_url, MANY))
    return few, many, many / few


async def _cost(url: str, waiting: int) -> float:
    """Every claim is followed by an insert of as many, so that as many wait throughout."""
    store = PostgresStore(url, watermarks=Watermarks(high=10 * MANY, low=MANY))
    await store.open(migrate=True)
    side = await asyncpg.connect(url)
    for start in range(0, waiting, 10_000):
        count = min(10_000, waiting - start)
        await side.execute(_FILL, [new_job_id() for _ in range(count)])
    worker = NewWorker(id=uuid.uuid4(), host="bench", pid=1, concurrency=QUOTA)
    await store.register_worker(worker, lease_s=3600)
    await _claim_and_refill(store, worker)
    claiming = await side.fetchval("SELECT pid FROM pg_stat_activity WHERE application_name = 'holdfast claim'"
                                   " AND datname = current_database()")  # fmt: skip
    before = _cpu_us(claiming)
    for _ in range(CLAIMS):
        await _claim_and_refill(store, worker)
    used = _cpu_us(claiming) - before
    await side.close()
    await store.close()
    return used / CLAIMS


async def _claim_and_refill(store: PostgresStore, worker: NewWorker) -> None:
    claim = await store.claim_jobs(worker.id, {LANE: QUOTA}, deadline_s=10)
    assert len(claim.jobs) == QUOTA, f"{len(claim.jobs)} jobs were claimed, {QUOTA} were to be had"
    payload = b'{"args":[1],"kwargs":{}}'
    await store.insert_jobs(
        [NewJob(new_job_id(), "bench.tasks.noop", LANE.queue, LANE.priority, payload) for _ in range(QUOTA)]
    )


def _cpu_us(pid: int) -> float:
    """What the scheduler has counted, which is finer than the ticks in `stat`."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1000
