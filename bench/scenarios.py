"""What is measured on the SQLite store, all of it durable (WAL, synchronous=FULL)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from holdfast import Holdfast

CALLERS = 100


@contextlib.contextmanager
def fresh_file() -> Iterator[str]:
    """The url of a file that is not there yet."""
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as directory:
        yield f"sqlite:///{Path(directory) / 'bench.db'}"


@contextlib.contextmanager
def fresh_app() -> Iterator[tuple[Holdfast, Path]]:
    """The app of `bench.tasks` on a new file."""
    from bench import tasks

    with fresh_file() as url:
        tasks.hf.config = tasks.hf.config.with_arguments(url=url)
        yield tasks.hf, Path(url.removeprefix("sqlite:///"))


async def enqueue_one_by_one(jobs: int) -> float:
    """Enqueues per second of one caller that waits for each."""
    from bench.tasks import noop

    with fresh_app() as (hf, _):
        async with hf:
            began = time.perf_counter()
            for number in range(jobs):
                await noop.enqueue(number)
            return jobs / (time.perf_counter() - began)


async def enqueue_concurrently(jobs: int) -> float:
    """Enqueues per second of 100 callers, each waiting for its own."""
    from bench.tasks import noop

    async def caller(count: int) -> None:
        for number in range(count):
            await noop.enqueue(number)

    with fresh_app() as (hf, _):
        async with hf:
            began = time.perf_counter()
            await asyncio.gather(*(caller(jobs // CALLERS) for _ in range(CALLERS)))
            return jobs / (time.perf_counter() - began)


async def enqueue_in_bulk(jobs: int, task: str = "noop") -> float:
    """Enqueues per second by `enqueue_many`, a thousand at a time."""
    from bench import tasks

    called = getattr(tasks, task)
    with fresh_app() as (hf, _):
        async with hf:
            began = time.perf_counter()
            for start in range(0, jobs, 1000):
                await hf.enqueue_many([called.request(number) for number in range(start, start + 1000)])
            return jobs / (time.perf_counter() - began)


async def drain(jobs: int, task: str = "noop") -> float:
    """Jobs per second that one worker process runs, from the first claim to the last settlement."""
    from bench import tasks

    called = getattr(tasks, task)
    with fresh_app() as (hf, _):
        async with hf:
            for start in range(0, jobs, 1000):
                handles = await hf.enqueue_many([called.request(number) for number in range(start, start + 1000)])
            began = time.perf_counter()
            async with hf.worker(concurrency=400):
                await handles[-1].result()
                while any(queue.ready or queue.running for queue in await hf.queues.list()):
                    await asyncio.sleep(0.001)
                return jobs / (time.perf_counter() - began)


async def pickup_here(jobs: int) -> tuple[float, float]:
    """p50 and p99 in ms from the call of enqueue to the start of the task, idle worker in the same process."""
    from bench.tasks import note_start, started

    started.clear()
    delays = []
    with fresh_app() as (hf, _):
        async with hf, hf.worker():
            for number in range(jobs):
                called = time.monotonic()
                handle = await note_start.enqueue(number)
                await handle.result()
                delays.append(started[number] - called)
    return _percentiles(delays)


async def pickup_elsewhere(jobs: int) -> tuple[float, float]:
    """The same with the worker in another process."""
    from bench.tasks import note_start

    called = {}
    with fresh_app() as (hf, path):
        log = path.with_suffix(".log")
        async with hf:
            with worker_process(path) as _:
                warm = await note_start.enqueue(-1, str(log))
                await warm.result()
                for number in range(jobs):
                    called[number] = time.monotonic()
                    handle = await note_start.enqueue(number, str(log))
                    await handle.result()
                    await asyncio.sleep(0.02)  # let it fall idle
        lines = (line.split() for line in log.read_text().splitlines())
        begun = {int(number): float(at) for number, at in lines}
    return _percentiles([begun[number] - called[number] for number in called])


async def idle_worker(seconds: float) -> tuple[float, float]:
    """Megabytes resident and per cent of a core of a worker process that has nothing to do."""
    from bench.tasks import noop

    with fresh_app() as (hf, path):
        async with hf:
            with worker_process(path) as pid:
                await (await noop.enqueue(1)).result()
                await asyncio.sleep(1.0)
                before = _cpu_s(pid)
                await asyncio.sleep(seconds)
                busy = _cpu_s(pid) - before
                resident_kb = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize() / 1024
    return resident_kb / 1024, 100 * busy / seconds


@contextlib.contextmanager
def worker_process(path: Path) -> Iterator[int]:
    """`bench.tasks` as a worker of its own."""
    env = os.environ | {"BENCH_URL": f"sqlite:///{path}"}
    process = subprocess.Popen([sys.executable, "-m", "bench.tasks"], env=env)
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _percentiles(delays: list[float]) -> tuple[float, float]:
    cuts = statistics.quantiles(delays, n=100)
    return cuts[49] * 1000, cuts[98] * 1000
