"""At most so many jobs of a queue at once in a process: never more, and nobody else waits for it."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from tests.integration.scene import PATIENCE_S, scene, url_of

from holdfast import Holdfast


class Crowd:
    """Counts who is in at once, by queue."""

    def __init__(self) -> None:
        self.now: Counter[str] = Counter()
        self.most: Counter[str] = Counter()

    async def visit(self, queue: str, gate: asyncio.Event | None = None) -> None:
        self.now[queue] += 1
        self.most[queue] = max(self.most[queue], self.now[queue])
        await (asyncio.sleep(0) if gate is None else gate.wait())
        self.now[queue] -= 1


@scene
async def test_a_bounded_queue_with_a_backlog_holds_up_nobody() -> None:
    hf = Holdfast(":memory:", concurrency=10, queue={"slow": {"concurrency": 2}})
    crowd, gate = Crowd(), asyncio.Event()

    @hf.task(queue="slow", priority="critical")
    async def slow() -> None:
        await crowd.visit("slow", gate)

    @hf.task(queue="fast", priority="bulk")
    async def fast() -> None:
        await crowd.visit("fast")

    async with hf:
        backlog = await hf.enqueue_many([slow.request() for _ in range(300)])
        others = await hf.enqueue_many([fast.request() for _ in range(100)])
        async with hf.worker(), asyncio.timeout(PATIENCE_S):
            for job in others:  # every one of them ends, while the backlog before them stands still
                await job.result()
            assert crowd.now["slow"] == 2
            gate.set()
            for job in backlog:
                await job.result()
        assert crowd.most["slow"] == 2
        assert crowd.most["fast"] > 2


@pytest.mark.parametrize("cap", [1, 3])
@scene
async def test_the_next_one_starts_as_soon_as_one_has_ended(cap: int, tmp_path: Path) -> None:
    # With a minute between looks, only the end of a job can have the next one started.
    hf = Holdfast(url_of(tmp_path / "jobs.db"), poll_s=60, queue={"default": {"concurrency": cap}})
    crowd = Crowd()

    @hf.task
    async def work() -> None:
        await crowd.visit("default")

    @hf.task
    def in_thread() -> int:
        return 1

    async with hf, hf.worker(), asyncio.timeout(PATIENCE_S):
        jobs = await hf.enqueue_many([work.request() for _ in range(50)] + [in_thread.request() for _ in range(10)])
        for job in jobs:
            await job.result()
    assert crowd.most["default"] <= cap


@scene
async def test_each_process_has_a_bound_of_its_own_which_a_worker_may_be_given() -> None:
    hf = Holdfast(":memory:", queue={"default": {"concurrency": 1}})
    crowd, gate = Crowd(), asyncio.Event()

    @hf.task
    async def work() -> None:
        await crowd.visit("default", gate)
        gate.set()

    async with hf, hf.worker(queue={"default": {"concurrency": 4}}), asyncio.timeout(PATIENCE_S):
        jobs = await hf.enqueue_many([work.request() for _ in range(8)])
        while crowd.now["default"] < 4:
            await asyncio.sleep(0)
        gate.set()
        for job in jobs:
            await job.result()
    assert crowd.most["default"] == 4
