"""The library on PostgreSQL, as a contender: `python -m bench.postgres_library URL SCENARIO JOBS [TASK [REDIS]]`."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import asyncpg

from bench.race import Cost, Figures, Track, run

CALLERS = 100


def measure(
    url: str,
    scenario: str,
    jobs: int,
    *,
    processes: int = 1,
    task: str = "noop",
    cost: Callable[[], Cost],
    redis: str = "",
) -> Figures:
    """A scenario in so many processes, on tables of its own; with a Redis beside them where one is named."""
    asyncio.run(_prepare(url, jobs if scenario == "drain" else 0, task, redis=redis))
    share = jobs // processes
    command = [sys.executable, "-m", "bench.postgres_library", url, scenario, str(share), task, redis]
    return run([command] * processes, cost=cost)


def pickup(url: str, jobs: int, *, redis: str = "") -> tuple[float, float]:
    """Milliseconds from before the enqueue to the start of the run, in one process: p50 and p99."""
    asyncio.run(_prepare(url, 0, redis=redis))
    return _percentiles(url, "pickup", jobs, redis)


def pickup_elsewhere(url: str, jobs: int, *, redis: str = "") -> tuple[float, float]:
    """The same with an idle worker in another process."""
    asyncio.run(_prepare(url, 0, redis=redis))
    words = [sys.executable, "-m", "bench.postgres_library", url, "work", "0", "noop", redis]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        worker.stdout.readline()
        try:
            return _percentiles(url, "elsewhere", jobs, redis)
        finally:
            worker.communicate()  # the end of its standard input is its own


def _percentiles(url: str, scenario: str, jobs: int, redis: str) -> tuple[float, float]:
    command = [sys.executable, "-m", "bench.postgres_library", url, scenario, str(jobs), "noop", redis]
    p50, p99 = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-2:]
    return float(p50), float(p99)


async def _prepare(url: str, jobs: int, task: str = "noop", *, redis: str = "") -> None:
    from bench import tasks
    from bench.tasks import hf

    hf.config = hf.config.with_arguments(url=url, redis=redis)
    await hf.migrate()
    async with hf:
        for start in range(0, jobs, 1000):
            await hf.enqueue_many([_mixed(getattr(tasks, task), number) for number in range(start, start + 1000)])


def _mixed(noop: object, number: int) -> object:
    """Over three lanes, as the hand-written loop has them."""
    return noop.options(priority=(9, 7, 5)[number % 3]).request(number)  # type: ignore[attr-defined]  # a task, imported later


async def bulk(jobs: int, task: str = "noop") -> None:
    from bench import tasks
    from bench.tasks import hf

    called = getattr(tasks, task)
    async with hf:
        await called.enqueue(0)
        with Track() as track:
            for start in range(0, jobs, 1000):
                await hf.enqueue_many([called.request(number) for number in range(start, start + 1000)])
            track.jobs = jobs


async def callers(jobs: int) -> None:
    from bench.tasks import hf, noop

    async def caller(count: int) -> None:
        for number in range(count):
            await noop.enqueue(number)

    async with hf:
        await noop.enqueue(0)
        with Track() as track:
            await asyncio.gather(*(caller(jobs // CALLERS) for _ in range(CALLERS)))
            track.jobs = jobs


async def drain(jobs: int) -> None:
    """Until nothing waits or runs any more; `jobs` is this process's share of what was there."""
    from bench.tasks import hf, noop

    side = await asyncpg.connect(hf.config.url)
    left = await side.prepare("SELECT EXISTS (SELECT FROM holdfast.ready) OR EXISTS (SELECT FROM holdfast.active)")
    async with hf:
        await noop.enqueue(0)  # what is imported and compiled once; the loop has its statements prepared, too
        worker = hf.worker(concurrency=400)
        with Track() as track:
            async with worker:
                while await left.fetchval():
                    await asyncio.sleep(0.01)
                track.jobs, track.ended = jobs, time.monotonic()
    await side.close()


async def pickups(jobs: int) -> None:
    from bench.tasks import hf, note_start, started

    async with hf, hf.worker(concurrency=10):
        waits = []
        for number in range(jobs):
            asked = time.monotonic()
            job = await note_start.enqueue(number)
            await job.result(timeout=10)
            waits.append(started[number] - asked)
    _show(waits)


async def work(_: int) -> None:
    """An idle worker, until nobody wants it any more."""
    from bench.tasks import hf

    async with hf, hf.worker(concurrency=10):
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)


async def elsewhere(jobs: int) -> None:
    from bench.tasks import hf, say_when

    async with hf:
        waits = []
        for _ in range(jobs):
            asked = time.monotonic()
            job = await say_when.enqueue()
            waits.append(await job.result(timeout=10) - asked)
            await asyncio.sleep(0.005)  # until it is idle again
    _show(waits)


def _show(waits: list[float]) -> None:
    waits.sort()
    print(1e3 * statistics.median(waits), 1e3 * waits[int(len(waits) * 0.99)])


if __name__ == "__main__":
    url, scenario, jobs = sys.argv[1], sys.argv[2], int(sys.argv[3])
    redis = sys.argv[5] if len(sys.argv) > 5 else ""
    from bench.tasks import hf
    from holdfast.runtime.loop import run_loop

    hf.config = hf.config.with_arguments(url=url, redis=redis)
    if scenario == "bulk":
        run_loop(bulk(jobs, *sys.argv[4:5]))
    else:
        scenarios = {"callers": callers, "drain": drain, "pickup": pickups, "elsewhere": elsewhere, "work": work}
        run_loop(scenarios[scenario](jobs))
