"""What the supervisor costs: the same jobs drained by `holdfast worker`, and by the same worker in one plain process.

`python -m bench.supervised` takes many pairs, each in the other order than the last one, and compares the medians. The
queue is paused until every process, the spare included, has come to rest, and the rate is taken from the store's own
record of what ended, without the first and the last twentieth: starting up and running out are no part of it. Machines
are noisy, so the CPU time of each process stands beside the rate; it hardly depends on what else runs.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

from bench import postgres_server
from bench.ended import all_ended, when_ended
from bench.postgres_library import _prepare
from bench.scenarios import fresh_file

ALONE = [sys.executable, "-m", "bench.tasks"]
SUPERVISED = [sys.executable, "-m", "holdfast", "worker", "bench.tasks:hf"]
_IDLE_FOR_S = 5.0
_TRIMMED = 20


class Drain(NamedTuple):
    """One measurement, per job where it is not a rate."""

    jobs_per_s: float
    worker_us: float
    """CPU of the process that ran the jobs."""
    others_us: float
    """CPU of the supervisor and of the spare."""


def drain(url: str, jobs: int, command: list[str]) -> Drain:
    """Run all of them, and see how quickly and at what cost."""
    asyncio.run(_prepare(url, jobs))
    asyncio.run(_set_paused(url, paused=True))
    worker = _start(command, url)
    try:
        pids = _come_to_rest(worker.pid, processes=3 if command == SUPERVISED else 1)
        before = list(map(_cpu_s, pids))
        asyncio.run(_set_paused(url, paused=False))
        while not all_ended(url):
            time.sleep(0.2)
        used = [after - start for after, start in zip(map(_cpu_s, pids), before, strict=True)]
        per_job = sorted((1e6 * each / jobs for each in used), reverse=True)
        return Drain(_rate(when_ended(url)), per_job[0], sum(per_job[1:]))
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


def compare(fresh_url: Callable[[], str], *, jobs: int, pairs: int) -> None:
    """Print every measurement, the medians of both, and their ratios."""
    taken: dict[str, list[Drain]] = {"alone": [], "supervised": []}
    commands = {"alone": ALONE, "supervised": SUPERVISED}
    for number in range(pairs):
        for name in sorted(taken, reverse=bool(number % 2)):
            one = drain(fresh_url(), jobs, commands[name])
            taken[name].append(one)
            print(f"  pair {number + 1:>2}  {name:<10} {_shown(one)}", flush=True)
    alone, supervised = (Drain(*map(statistics.median, zip(*taken[name], strict=True))) for name in taken)
    print(f"  median   {'alone':<10} {_shown(alone)}\n  median   {'supervised':<10} {_shown(supervised)}")
    rates = sorted(one.jobs_per_s / other.jobs_per_s for one, other in zip(*reversed(taken.values()), strict=True))
    print(
        f"  ratio of the rates {supervised.jobs_per_s / alone.jobs_per_s:.3f} (of single pairs "
        f"{rates[0]:.2f} to {rates[-1]:.2f}, median {statistics.median(rates):.3f}), of the CPU in the worker "
        f"{alone.worker_us / supervised.worker_us:.3f}, of the CPU in all "
        f"{alone.worker_us / (supervised.worker_us + supervised.others_us):.3f}"
    )


def _shown(one: Drain) -> str:
    return f"{one.jobs_per_s:>8,.0f}/s  {one.worker_us:>6.2f} µs in the worker, {one.others_us:>5.2f} µs in others"


def _rate(ended_s: list[float]) -> float:
    """Jobs per second, from their endings in order."""
    ends = len(ended_s) // _TRIMMED
    return (len(ended_s) - 2 * ends) / (ended_s[-ends - 1] - ended_s[ends])


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


def _children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as file:  # noqa: PTH123  # a file of the kernel's
        return [int(each) for each in file.read().split()]


def _cpu_s(pid: int) -> float:
    """What a process has used, to the microsecond: Linux has a clock for each."""
    return time.clock_gettime(~pid << 3 | 2)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.supervised", description=__doc__)
    parser.add_argument("--pairs", type=int, default=12, help="how often both are measured (default 12)")
    parser.add_argument("--jobs", type=int, default=80_000, help="jobs per measurement (default 80,000)")
    parser.add_argument("--store", choices=["sqlite", "postgres"], help="only this store (default: both)")
    options = parser.parse_args()
    with contextlib.ExitStack() as cleanup:
        if options.store != "postgres":
            print("SQLite")
            compare(lambda: cleanup.enter_context(fresh_file()), jobs=options.jobs, pairs=options.pairs)
        if options.store != "sqlite":
            server = cleanup.enter_context(postgres_server.running())
            print("PostgreSQL")
            compare(lambda: postgres_server.fresh_database(server), jobs=options.jobs, pairs=options.pairs)


if __name__ == "__main__":
    main()
