"""Moving waiting jobs to another queue or priority, by id and by filter."""

from __future__ import annotations

import asyncio

import pytest
from tests.integration.scene import PATIENCE_S, scene, until

from holdfast import Holdfast, InvalidOptions
from holdfast.core.state import State


@scene
async def test_what_is_moved_by_filter_comes_behind_what_is_there_in_its_old_order() -> None:
    hf = Holdfast(":memory:")
    ran: list[int] = []

    @hf.task
    async def work(number: int) -> None:
        ran.append(number)

    async with hf:
        there = await work.options(queue="bulk").enqueue(0)
        moved = [await work.options(tags=["slow"]).enqueue(number) for number in (1, 2, 3)]
        stays = await work.enqueue(4)
        assert await hf.jobs.move({"queue": "default", "tag": "slow"}, queue="bulk", priority="normal") == 3
        assert [(await job.info()).queue for job in (there, *moved, stays)] == ["bulk"] * 4 + ["default"]
        depths = {each.name: each.ready for each in await hf.queues.list()}
        assert depths == {"bulk": 4, "default": 1}
        async with hf.worker(concurrency=1, queues=["bulk"]):
            for job in moved:
                await job.result(timeout=PATIENCE_S)
    assert ran == [0, 1, 2, 3]


@scene
async def test_by_id_and_only_what_waits() -> None:
    hf = Holdfast(":memory:")
    go_on = asyncio.Event()

    @hf.task
    async def work() -> None:
        await go_on.wait()

    async with hf, hf.worker(concurrency=1):
        running = await work.enqueue()
        await until(running, State.RUNNING)
        later, ready = await work.options(delay=3600).enqueue(), await work.enqueue()
        ids = [running.id, later.id, ready.id]
        assert await hf.jobs.move(ids, priority=9) == 2
        assert [(await hf.jobs.get(each)).priority for each in ids] == [5, 9, 9]
        assert await hf.jobs.move(str(later.id), queue="other") == 1
        assert ((await later.info()).queue, (await later.info()).state) == ("other", State.SCHEDULED)
        go_on.set()
        await running.result(timeout=PATIENCE_S)
        assert await hf.jobs.move(running.id, queue="other") == 0


@scene
async def test_more_than_a_batch_keeps_its_order() -> None:
    hf = Holdfast(":memory:")
    ran: list[int] = []

    @hf.task
    async def work(number: int) -> None:
        ran.append(number)

    async with hf:
        jobs = await hf.enqueue_many([work.request(number) for number in range(1200)])
        assert await hf.jobs.move({"state": "ready", "queue": "default"}, queue="bulk") == 1200
        async with hf.worker(concurrency=1, queues=["bulk"]):
            await jobs[-1].result(timeout=PATIENCE_S)
    assert ran == list(range(1200))


@scene
async def test_senseless_moves_are_refused() -> None:
    hf = Holdfast(":memory:")
    async with hf:
        with pytest.raises(InvalidOptions, match=r"^move: say where to: queue=, priority=, or both$"):
            await hf.jobs.move({"queue": "a"})
        with pytest.raises(InvalidOptions, match=r"^move: say which jobs: ids, or filters"):
            await hf.jobs.move({}, queue="b")
        with pytest.raises(InvalidOptions, match=r"^move: unknown filter 'queu'; there are "):
            await hf.jobs.move({"queu": "a"}, queue="b")
        with pytest.raises(InvalidOptions, match=r"^queue name 'no name' has"):
            await hf.jobs.move({"queue": "a"}, queue="no name")
