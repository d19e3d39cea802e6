"""What tenants cost on PostgreSQL: whole lives with none, one, a hundred and as many as jobs, in turns.

`python -m bench.tenants [--jobs N] [--rounds N]`: per job the server's CPU and WAL, and the rate against that without.
"""

from __future__ import annotations

import argparse
import asyncio
import time
import uuid
from collections.abc import Callable
from statistics import median
from typing import NamedTuple

from bench.postgres_lives import BATCH, PAYLOAD
from bench.postgres_server import cost, fresh_database, running
from holdfast.core.fairness import Lane
from holdfast.core.ids import new_job_id
from holdfast.core.job import NewJob
from holdfast.core.settlement import Succeed
from holdfast.core.worker import NewWorker
from holdfast.local import LocalPostgres
from holdfast.stores.postgres import PostgresStore

KINDS: dict[str, Callable[[int], str]] = {
    "none": lambda _: "",
    "one": lambda _: "acme",
    "hundred": lambda n: f"tenant-{n % 100}",
    "each": lambda n: f"tenant-{n}",
}


class Figures(NamedTuple):
    """Of one round."""

    inserted_per_s: float
    drained_per_s: float
    cpu_us: float
    wal_bytes: float


async def live(url: str, queue: str, tenant: Callable[[int], str], jobs: int) -> tuple[float, float]:
    """Fill the queue, then drain it; seconds for each."""
    store = PostgresStore(url)
    await store.open(migrate=True)
    worker = NewWorker(id=uuid.uuid4(), host="bench", pid=1, concurrency=BATCH)
    await store.register_worker(worker, lease_s=3600)
    lane = Lane(queue, 5)
    began = time.perf_counter()
    for start in range(0, jobs, BATCH):
        await store.insert_jobs(
            [
                NewJob(new_job_id(), "shop.send", lane.queue, lane.priority, PAYLOAD, tenant=tenant(start + n))
                for n in range(BATCH)
            ],
            admit=False,
        )
    filled = time.perf_counter()
    while found := (await store.claim_jobs(worker.id, {lane: BATCH}, deadline_s=10)).jobs:
        await store.settle_jobs(worker.id, [Succeed(job.id, job.token, b"null") for job in found])
    drained = time.perf_counter()
    await store.close()
    return filled - began, drained - filled


def measure(server: LocalPostgres, url: str, kind: str, jobs: int) -> Figures:
    """One round of one kind."""
    before = cost(server)
    insert_s, drain_s = asyncio.run(live(url, kind, KINDS[kind], jobs))
    after = cost(server)
    cpu_us = (after.cpu_s - before.cpu_s) / jobs * 1e6
    return Figures(jobs / insert_s, jobs / drain_s, cpu_us, (after.wal_bytes - before.wal_bytes) / jobs)


def main() -> None:
    """Measure in turns and print medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    found: dict[str, list[Figures]] = {kind: [] for kind in KINDS}
    with running() as server:
        url = fresh_database(server)
        for kind in KINDS:
            measure(server, url, kind, 10 * BATCH)
        for _ in range(given.rounds):
            for kind in KINDS:
                found[kind].append(measure(server, url, kind, given.jobs))
    base = found["none"]
    for kind, rounds in found.items():
        insert, drain, cpu_us, wal = (median(values) for values in zip(*rounds, strict=True))
        ratios = [
            median(getattr(mine, name) / getattr(plain, name) for mine, plain in zip(rounds, base, strict=True))
            for name in ("inserted_per_s", "drained_per_s")
        ]
        print(
            f"{kind:8} insert {insert:7.0f}/s ({ratios[0]:.2f})  drain {drain:7.0f}/s ({ratios[1]:.2f})  "
            f"{cpu_us:5.1f} µs CPU  {wal:5.0f} B WAL per job"
        )


if __name__ == "__main__":
    main()
