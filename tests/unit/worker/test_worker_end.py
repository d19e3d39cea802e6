"""The last moments of a worker: what is heard of while it waits for its session to end."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

from holdfast.config import Config
from holdfast.core.task import Registry
from holdfast.runtime.clock import SystemClock
from holdfast.stores.health import StoreHealth
from holdfast.telemetry.hub import Telemetry
from holdfast.worker.lifecycle import Hooks
from holdfast.worker.run import Interruption
from holdfast.worker.worker import Worker


class StuckSession:
    """Its fetcher waits for the answer to a claim; only a run that is interrupted ends."""

    def __init__(self) -> None:
        self.id = uuid4()
        self.running = 1
        self.cut_short = 0
        self.lost = asyncio.Event()
        self.stopping = asyncio.Event()
        self.interrupted = asyncio.Event()
        self.heard: list[Interruption] = []

    async def stop(self, *, grace_s: float | None) -> None:
        self.stopping.set()
        await self.interrupted.wait()

    def hurry(self, why: Interruption) -> None:
        self.heard.append(why)
        if why is Interruption.LEASE_LOST:
            self.interrupted.set()


def _worker() -> Worker:
    store: Any = None
    clock, telemetry = SystemClock(), Telemetry()
    health = StoreHealth(clock=clock, telemetry=telemetry)
    shared: dict[str, Any] = {"clock": clock, "telemetry": telemetry, "health": health}
    return Worker(store, Registry(), Config(), upkeep=(), hooks=Hooks(), birth=lambda: store, **shared)


def test_a_lease_that_is_lost_after_the_worker_was_told_to_stop_now_still_stops_its_runs() -> None:
    async def end() -> list[Interruption]:
        worker, stuck = _worker(), StuckSession()
        session: Any = stuck
        worker._now.set()
        finishing = asyncio.create_task(worker._finish(session))
        await stuck.stopping.wait()
        while not stuck.heard:  # of the order to stop now
            await asyncio.sleep(0)
        stuck.lost.set()
        async with asyncio.timeout(5):
            await finishing
        return stuck.heard

    assert asyncio.run(end()) == [Interruption.DRAIN, Interruption.LEASE_LOST]
