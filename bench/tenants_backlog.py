"""A great backlog of one tenant on PostgreSQL: what it does to producer and worker, and to another tenant's first job.

`python -m bench.tenants_backlog [--jobs N]`: memory of the process before, filled and while claiming; time of a claim.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import time
import uuid
from pathlib import Path
from statistics import median

from bench.postgres_lives import PAYLOAD
from bench.postgres_server import fresh_database, running
from holdfast.core.fairness import Lane
from holdfast.core.ids import new_job_id
from holdfast.core.job import NewJob
from holdfast.core.settlement import Succeed
from holdfast.core.worker import NewWorker
from holdfast.stores.postgres import PostgresStore

LANE = Lane("default", 5)
BATCH = 1000
SLOTS = 100


def _job(tenant: str) -> NewJob:
    return NewJob(new_job_id(), "shop.send", LANE.queue, LANE.priority, PAYLOAD, tenant=tenant)


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


async def _rounds(store: PostgresStore, worker: uuid.UUID, count: int) -> tuple[float, list[int]]:
    """Claim and settle again and again; the median time of a claim, and where the other tenant's jobs came."""
    times: list[float] = []
    places: list[int] = []
    for turn in range(count):
        if turn % 10 == 0:
            await store.insert_jobs([_job("small")], admit=False)
        began = time.perf_counter()
        found = (await store.claim_jobs(worker, {LANE: SLOTS}, deadline_s=30)).jobs
        times.append(time.perf_counter() - began)
        places += [place for place, job in enumerate(found) if job.tenant == "small"]
        await store.settle_jobs(worker, [Succeed(job.id, job.token, b"null") for job in found])
    return median(times) * 1000, places


async def _measure(url: str, jobs: int) -> None:
    store = PostgresStore(url)
    await store.open(migrate=True)
    worker = NewWorker(id=uuid.uuid4(), host="bench", pid=1, concurrency=SLOTS)
    await store.register_worker(worker, lease_s=36_000)
    await store.insert_jobs([_job("big") for _ in range(10_000)], admit=False)
    at_first_ms, places = await _rounds(store, worker.id, 60)
    print(f"10,000 waiting: {_resident_mb():.0f} MB, a claim of {SLOTS} takes {at_first_ms:.1f} ms, others at {places}")
    began = time.perf_counter()
    for _ in range(jobs // BATCH):
        await store.insert_jobs([_job("big") for _ in range(BATCH)], admit=False)
    took_s = time.perf_counter() - began
    print(f"{jobs:,} more enqueued at {jobs / took_s:,.0f}/s: {_resident_mb():.0f} MB")
    then_ms, places = await _rounds(store, worker.id, 200)
    print(f"{jobs:,} waiting: {_resident_mb():.0f} MB, a claim of {SLOTS} takes {then_ms:.1f} ms, others at {places}")
    await store.close()


def main() -> None:
    """Measure once and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    given = parser.parse_args()
    with running() as server:
        asyncio.run(_measure(fresh_database(server), given.jobs))


if __name__ == "__main__":
    main()
