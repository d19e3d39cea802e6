"""One worker that drains what it is given: alone or under a supervisor, and stopped while another one has its turn."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from types import TracebackType
from typing import NamedTuple, Self

from bench.ended import all_ended, when_ended
from holdfast import Holdfast

ALONE = [sys.executable, "-m", "bench.tasks"]
SUPERVISED = [sys.executable, "-m", "holdfast", "worker", "bench.tasks:hf"]
#: Nobody may be taken for dead because it was stopped.
_LEASE_S = 600.0
_TRIMMED = 20


class Drain(NamedTuple):
    """One turn, per job where it is not a rate."""

    jobs_per_s: float
    worker_us: float
    """CPU of the process that ran the jobs."""
    others_us: float
    """CPU of the supervisor and of the spare."""


class Contender:
    """Its own database, its own processes; the queue is paused but while it has its turn."""

    def __init__(self, url: str, command: list[str], *options: str, processes: int | None = None) -> None:
        """`processes`: how many there are in the end, if not those of the command without options."""
        self._url = url
        self._command = [*command, *options]
        self._processes = processes or (1 if command == ALONE else 3)
        self._producer = Holdfast(url, high_watermark=10_000_000, low_watermark=1_000)

    def __enter__(self) -> Self:
        asyncio.run(self._producer.migrate())
        asyncio.run(self._set_paused(paused=True))
        settings = {"BENCH_URL": self._url, "HOLDFAST_CONCURRENCY": "400", "HOLDFAST_LEASE_S": str(_LEASE_S)}
        self._worker = subprocess.Popen(self._command, env=os.environ | settings, stderr=subprocess.DEVNULL)
        self.pids = come_to_rest(self._worker.pid, processes=self._processes)
        self._send(signal.SIGSTOP)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._send(signal.SIGCONT)
        self._worker.send_signal(signal.SIGTERM)
        self._worker.wait(60)

    def drain(self, jobs: int) -> Drain:
        """A turn. The first and the last twentieth of the endings do not count: it starts up and runs out there."""
        asyncio.run(self._enqueue(jobs))
        with self.awake():
            come_to_rest(self._worker.pid, processes=self._processes, for_s=0.2)
            since_s, before = time.time(), [cpu_s(pid) for pid in self.pids]
            asyncio.run(self._set_paused(paused=False))
            while not all_ended(self._url):
                time.sleep(0.05)
            used = [cpu_s(pid) - start for pid, start in zip(self.pids, before, strict=True)]
            asyncio.run(self._set_paused(paused=True))
        per_job = sorted((1e6 * each / jobs for each in used), reverse=True)
        return Drain(_rate(when_ended(self._url, since_s=since_s)), per_job[0], sum(per_job[1:]))

    @contextlib.contextmanager
    def awake(self) -> Iterator[None]:
        """It is stopped else."""
        self._send(signal.SIGCONT)
        try:
            yield
        finally:
            self._send(signal.SIGSTOP)

    async def _enqueue(self, jobs: int) -> None:
        async with self._producer as hf:
            noop = hf.named("bench.tasks.noop")
            lanes = [noop.options(priority=priority) for priority in (9, 7, 5)]  # as the other drains have them
            for start in range(0, jobs, 1000):
                await hf.enqueue_many([lanes[number % 3].request(number) for number in range(start, start + 1000)])

    async def _set_paused(self, *, paused: bool) -> None:
        async with self._producer as hf:
            await (hf.queues.pause if paused else hf.queues.resume)("default")

    def _send(self, number: signal.Signals) -> None:
        for pid in self.pids:
            os.kill(pid, number)


def come_to_rest(pid: int, *, processes: int, for_s: float = 1.0) -> list[int]:
    """Wait until there are so many, and they have next to nothing to do for a while."""
    used, since_s = -1.0, time.monotonic()
    while time.monotonic() - since_s < for_s:
        pids = [pid, *_children(pid)]
        now = sum(map(cpu_s, pids))
        if len(pids) < processes or now > used + 0.03 * for_s:
            used, since_s = now, time.monotonic()
        time.sleep(0.05)
    return pids


def cpu_s(pid: int) -> float:
    """What a process has used, to the microsecond: Linux has a clock for each."""
    return time.clock_gettime(~pid << 3 | 2)


def _children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as file:  # noqa: PTH123  # a file of the kernel's
        return [int(each) for each in file.read().split()]


def _rate(ended_s: list[float]) -> float:
    ends = len(ended_s) // _TRIMMED
    return (len(ended_s) - 2 * ends) / (ended_s[-ends - 1] - ended_s[ends])
