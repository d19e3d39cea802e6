"""PgQueuer, a peer on the same server, where it is installed (`pip install pgqueuer`): its drain of no-op jobs.

A contender (see `bench/race.py`). It needs nothing of Holdfast, so it may run with another environment's Python.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import asyncpg
import uvloop

from bench.race import Cost, Figures, Track, run

BATCH = 200
BULK = 1000


def drain(url: str, jobs: int, *, processes: int, cost: Callable[[], Cost], python: str) -> Figures | None:
    """Jobs per second from its queue to its log. It finishes by id alone: a worker that was stopped is not fenced."""
    if subprocess.run([python, "-c", "import pgqueuer, uvloop"], capture_output=True).returncode:
        return None
    subprocess.run([python, "-m", "bench.pgqueuer_peer", "fill", url, str(jobs)], check=True)
    return run([[python, "-m", "bench.pgqueuer_peer", "drain", url]] * processes, cost=cost)


def _part(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def _queries(connection: asyncpg.Connection[Any]) -> Any:
    return _part("pgqueuer.queries.Queries")(_part("pgqueuer.db.AsyncpgDriver")(connection))


async def _fill(url: str, jobs: int) -> None:
    connection = await asyncpg.connect(url)
    queries = _queries(connection)
    await queries.install()
    for start in range(0, jobs, BULK):
        count = min(BULK, jobs - start)
        await queries.enqueue(["noop"] * count, [b'{"args":[1],"kwargs":{}}'] * count, [0] * count)
    await connection.close()


async def _drain(url: str) -> None:
    connection = await asyncpg.connect(url)
    manager = _part("pgqueuer.qm.QueueManager")(_queries(connection))
    done = 0
    last = 0.0

    @manager.entrypoint("noop")  # type: ignore[untyped-decorator]  # the peer is not installed here
    async def noop(job: object) -> None:
        nonlocal done, last
        done += 1
        last = time.monotonic()

    with Track() as track:
        await manager.run(
            dequeue_timeout=timedelta(seconds=1),
            batch_size=BATCH,
            mode=_part("pgqueuer.types.QueueExecutionMode").drain,
        )
        track.jobs, track.ended = done, last


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["fill", to, count]:
            uvloop.run(_fill(to, int(count)))
        case ["drain", of]:
            uvloop.run(_drain(of))
