"""What the supervisor costs: the same jobs drained by `holdfast worker`, and by the same worker in one plain process.

The rate is taken from the store's own record, from the first claim to the last ending. Starting up is not part of it:
the queue is paused until every process, the spare included, has come to rest.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time

import asyncpg

from bench.postgres_library import _prepare

ALONE = [sys.executable, "-m", "bench.tasks"]
SUPERVISED = [sys.executable, "-m", "holdfast", "worker", "bench.tasks:hf"]
_IDLE_FOR_S = 5.0


def drain(url: str, jobs: int, command: list[str]) -> float:
    """Jobs per second."""
    asyncio.run(_prepare(url, jobs))
    asyncio.run(_set_paused(url, paused=True))
    worker = _start(command, url)
    try:
        _come_to_rest(worker.pid, processes=3 if command == SUPERVISED else 1)
        asyncio.run(_set_paused(url, paused=False))
        return asyncio.run(_rate(url, jobs))
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait(60)


def idle(url: str) -> tuple[float, float]:
    """Percent of a core of the supervisor and of its processes (two and a spare), while there is nothing to do."""
    asyncio.run(_prepare(url, 0))
    worker = _start([*SUPERVISED, "--processes", "2"], url)
    try:
        pids = _come_to_rest(worker.pid, processes=4)
        before = [_cpu_s(pid) for pid in pids]
        time.sleep(_IDLE_FOR_S)
        used = [after - start for after, start in zip(map(_cpu_s, pids), before, strict=True)]
        return 100 * used[0] / _IDLE_FOR_S, 100 * sum(used[1:]) / _IDLE_FOR_S
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait(60)


def _come_to_rest(pid: int, *, processes: int) -> list[int]:
    """Wait until there are so many and they have next to nothing to do for a while."""
    used, since = -1.0, time.monotonic()
    while time.monotonic() - since < 1:
        pids = [pid, *_children(pid)]
        now = sum(map(_cpu_s, pids))
        if len(pids) < processes or now > used + 0.03:
            used, since = now, time.monotonic()
        time.sleep(0.05)
    return pids


async def _set_paused(url: str, *, paused: bool) -> None:
    from bench.tasks import hf

    hf.config = hf.config.with_arguments(url=url)
    async with hf:
        await (hf.queues.pause if paused else hf.queues.resume)("default")


def _start(command: list[str], url: str) -> subprocess.Popen[bytes]:
    env = os.environ | {"BENCH_URL": url, "HOLDFAST_CONCURRENCY": "400"}
    return subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL)


async def _rate(url: str, jobs: int) -> float:
    side = await asyncpg.connect(url)
    try:
        while await side.fetchval("SELECT count(*) FROM holdfast.done") < jobs:
            await asyncio.sleep(0.1)
        took = await side.fetchval("SELECT extract(epoch FROM max(ended_at) - min(started_at)) FROM holdfast.done")
        return jobs / float(took)
    finally:
        await side.close()


def _children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as file:  # noqa: PTH123  # a file of the kernel's
        return [int(each) for each in file.read().split()]


def _cpu_s(pid: int) -> float:
    with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123  # likewise
        user, system = file.read().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
