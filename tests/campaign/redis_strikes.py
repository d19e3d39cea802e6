"""What is done to the Redis beside PostgreSQL, and what that costs: how long jobs wait meanwhile, and afterwards."""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple
from uuid import UUID

from tests.campaign.app import QUEUES
from tests.campaign.producer import Ledger
from tests.proxies.redis import RedisProxy

from holdfast import Holdfast, JobHandle

_PROBE_EVERY_S = 0.02
#: So long after an outage a job still counts as one that may have felt it.
_AFTER_S = 2.0
QUIET, DURING, AFTER = "otherwise", "during an outage", "within 2 s after"


class Outage(NamedTuple):
    """When Redis was away, by the monotonic clock."""

    began_s: float
    ended_s: float


class RedisStrikes:
    """Each takes a moment, and goes on in the background."""

    def __init__(self, proxy: RedisProxy, rng: random.Random) -> None:
        self._proxy = proxy
        self._rng = rng
        self._under_way: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Lock()
        self.outages: list[Outage] = []

    def actions(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return {
            "kill Redis": lambda: self._later(self._kill()),
            "wipe Redis": lambda: self._later(self._wipe()),
            "flush Redis": lambda: self._later(self._flush()),
            "cut Redis off": lambda: self._later(self._cut_off()),
            "freeze the way to Redis": lambda: self._later(self._freeze()),
        }

    async def settled(self) -> None:
        await asyncio.gather(*self._under_way)

    async def _later(self, strike: Coroutine[Any, Any, None]) -> None:
        async def alone() -> None:
            async with self._turn:
                began_s = time.monotonic()
                await strike
                self.outages.append(Outage(began_s, time.monotonic()))

        task = asyncio.create_task(alone())
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _kill(self) -> None:
        await asyncio.to_thread(self._proxy.server.kill)
        await self._a_while()
        await asyncio.to_thread(self._proxy.server.start)

    async def _wipe(self) -> None:
        await asyncio.to_thread(self._proxy.server.wipe)

    async def _flush(self) -> None:
        await asyncio.to_thread(self._proxy.server.ask, "FLUSHALL")

    async def _cut_off(self) -> None:
        await asyncio.to_thread(self._proxy.refuse)
        await self._a_while()
        await asyncio.to_thread(self._proxy.admit)

    async def _freeze(self) -> None:
        await asyncio.to_thread(self._proxy.freeze)
        await self._a_while()
        await asyncio.to_thread(self._proxy.thaw)

    async def _a_while(self) -> None:
        await asyncio.sleep(self._rng.uniform(0.3, 3.0))


class Probes:
    """Urgent jobs, one after the other, and how long each waited for its first run."""

    def __init__(self, hf: Holdfast, ledger: Ledger) -> None:
        self._hf = hf
        self._ledger = ledger
        self._asked_s: dict[UUID, float] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._probe())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _probe(self) -> None:
        task = self._hf.named("swift").options(queue=QUEUES[1], priority=9, wait=30)

        async def ask() -> list[JobHandle[Any]]:
            asked_s = time.monotonic()
            handle = await task.enqueue(0)
            self._asked_s[handle.id] = asked_s
            return [handle]

        while True:
            await self._ledger.call([(None, "swift(0)")], ask)
            await asyncio.sleep(_PROBE_EVERY_S)

    async def waits(self, outages: list[Outage]) -> dict[str, list[float]]:
        """Seconds from enqueue to first run, by when it was asked for; of those that ran once.

        Not of those before the first outage: then the workers are only being started.
        """
        found: dict[str, list[float]] = {QUIET: [], DURING: [], AFTER: []}
        first_s = min((outage.began_s for outage in outages), default=float("inf"))
        for job_id, asked_s in self._asked_s.items():
            if asked_s < first_s:
                continue
            info = await self._hf.jobs.get(job_id)
            if info.started_at is not None and info.attempt == 1 and not info.attempts:
                waited_s = (info.started_at - info.created_at).total_seconds()
                found[_when(asked_s, outages)].append(waited_s)
        return found


def _when(asked_s: float, outages: list[Outage]) -> str:
    if any(outage.began_s <= asked_s <= outage.ended_s for outage in outages):
        return DURING
    if any(0 < asked_s - outage.ended_s <= _AFTER_S for outage in outages):
        return AFTER
    return QUIET


def shown(waits: dict[str, list[float]]) -> str:
    """In a line: how many, p50 and p99 in milliseconds."""
    parts = []
    for when, seconds in waits.items():
        if len(seconds) >= 2:
            cuts = statistics.quantiles(seconds, n=100)
            parts.append(f"{when}: {len(seconds)} jobs, p50 {1e3 * cuts[49]:.1f} ms, p99 {1e3 * cuts[98]:.1f} ms")
    return "; ".join(parts)
