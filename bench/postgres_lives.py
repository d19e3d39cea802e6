"""What a job's whole life costs the server: inserted, claimed and settled in batches through the store itself.

`python -m bench.postgres_lives [--jobs N] [--drop INDEX …]`: without an index, it shows what that index costs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import uuid
from collections.abc import Sequence

import asyncpg

from bench.postgres_server import cost, fresh_database, running
from holdfast.core.fairness import Lane
from holdfast.core.ids import new_job_id
from holdfast.core.job import NewJob
from holdfast.core.settlement import Succeed
from holdfast.core.worker import NewWorker
from holdfast.stores.postgres import PostgresStore

BATCH = 200
LANE = Lane("default", 5)
PAYLOAD = json.dumps({"args": [1], "kwargs": {"to": "ada@example.org"}}).encode()


async def live(url: str, jobs: int, *, warm: bool = False) -> None:
    """That many jobs, one batch after the other."""
    store = PostgresStore(url)
    await store.open(migrate=warm)
    worker = NewWorker(id=uuid.uuid4(), host="bench", pid=1, concurrency=BATCH)
    await store.register_worker(worker, lease_s=3600)
    for start in range(0, jobs, BATCH):
        count = min(BATCH, jobs - start)
        await store.insert_jobs(
            [NewJob(new_job_id(), f"shop.mail.send_{n % 10}", LANE.queue, LANE.priority, PAYLOAD) for n in range(count)]
        )
        claim = await store.claim_jobs(worker.id, {LANE: count}, deadline_s=10)
        await store.settle_jobs(worker.id, [Succeed(job.id, job.token, b"null") for job in claim.jobs])
    await store.close()


async def _drop(url: str, indexes: Sequence[str]) -> None:
    connection = await asyncpg.connect(url)
    for index in indexes:
        await connection.execute(f"DROP INDEX holdfast.{index}")
    await connection.close()


def main() -> None:
    """Measure once and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=40_000)
    parser.add_argument("--drop", nargs="*", default=[], metavar="INDEX")
    given = parser.parse_args()
    with running() as server:
        url = fresh_database(server)
        asyncio.run(live(url, 10 * BATCH, warm=True))
        asyncio.run(_drop(url, given.drop))
        before = cost(server)
        asyncio.run(live(url, given.jobs))
        after = cost(server)
    cpu_us = (after.cpu_s - before.cpu_s) / given.jobs * 1e6
    wal = (after.wal_bytes - before.wal_bytes) / given.jobs
    print(f"{cpu_us:.1f} µs of the server's CPU, {wal:.0f} bytes of WAL per job")


if __name__ == "__main__":
    main()
