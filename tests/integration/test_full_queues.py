"""What producers hear of a full queue: each switch once, a time that fits how it drains; and who may go past it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.integration.scene import scene

from holdfast import Holdfast, QueueFull
from holdfast.runtime.clock import ManualClock
from holdfast.telemetry.events import Event, QueueClosed, QueueOpened


def small(**settings: Any) -> Holdfast:
    return Holdfast(":memory:", high_watermark=10, low_watermark=4, **settings)


def switches(hf: Holdfast) -> list[Event]:
    heard: list[Event] = []
    hf.telemetry.attach(heard.append, only=(QueueClosed, QueueOpened))
    return heard


@scene
async def test_each_switch_is_told_once_however_many_wait() -> None:
    hf = small(wait_s=60)

    @hf.task
    async def work() -> None: ...

    async with hf:
        heard = switches(hf)
        await hf.enqueue_many([work.request() for _ in range(10)])
        waiting = [asyncio.create_task(work.enqueue()) for _ in range(30)]
        while not heard:
            await asyncio.sleep(0)
        for _ in range(5):
            with pytest.raises(QueueFull):
                await work.options(wait=0).enqueue()
        assert heard == [QueueClosed("default", 10)]
        async with hf.worker():
            await asyncio.gather(*waiting)
        closed = sum(isinstance(event, QueueClosed) for event in heard)
        opened = sum(isinstance(event, QueueOpened) for event in heard)
        # Thirty producers fill the ten places several times over; each time the queue closes and opens once.
        assert closed - 1 <= opened <= closed
        assert [type(event) for event in heard] == ([QueueClosed, QueueOpened] * closed)[: len(heard)]


@scene
async def test_that_it_opened_is_told_also_when_nobody_waited() -> None:
    hf = small()

    @hf.task
    async def work() -> None: ...

    async with hf:
        heard = switches(hf)
        jobs = await hf.enqueue_many([work.request() for _ in range(10)])
        for many in (False, True):
            with pytest.raises(QueueFull):
                await (hf.enqueue_many([work.options(wait=0).request()]) if many else work.options(wait=0).enqueue())
        for job in jobs:
            await job.cancel()
        await work.enqueue()
        await hf.enqueue_many([work.request()])
        assert heard == [QueueClosed("default", 10), QueueOpened("default")]


@scene
async def test_the_suggested_time_follows_how_the_queue_drains() -> None:
    clock = ManualClock()
    hf = small(clock=clock)

    @hf.task
    async def work() -> None: ...

    async def suggested() -> float:
        with pytest.raises(QueueFull) as caught:
            await work.options(wait=0).enqueue()
        return caught.value.retry_after

    async with hf:
        jobs = await hf.enqueue_many([work.request() for _ in range(10)])
        assert await suggested() == 5.0  # nothing is known yet
        clock.advance(4)
        assert await suggested() == 60.0  # nothing drains
        await jobs[0].cancel()
        clock.advance(4)
        assert await suggested() == 40.0  # one in eight seconds, five more to go
        await jobs[1].cancel()
        await jobs[2].cancel()
        clock.advance(2)
        assert await suggested() == pytest.approx(10.0)  # three in ten seconds, three more to go
        for job in jobs:
            await job.cancel()
        await work.enqueue()


@pytest.mark.parametrize("key", [None, "k"])
@scene
async def test_jobs_of_a_chosen_priority_go_past_a_full_queue(key: str | None) -> None:
    hf = small(queue={"default": {"bypass_priority": "critical"}})

    @hf.task
    async def work() -> None: ...

    async with hf:
        await hf.enqueue_many([work.request() for _ in range(10)])
        now = work.options(wait=0, key=key)
        with pytest.raises(QueueFull):
            await now.options(priority=8).enqueue()
        heard = switches(hf)
        urgent = await now.options(priority="critical").enqueue()
        assert (await urgent.info()).priority == 9
        many = [work.options(wait=0, priority=9).request() for _ in range(3)]
        await hf.enqueue_many(many)
        with pytest.raises(QueueFull):  # all or none, and one of them may not
            await hf.enqueue_many([*many, work.options(wait=0).request()])
        with pytest.raises(QueueFull):
            await work.options(wait=0, queue="default", priority=8).enqueue()
        assert not heard, "the queue is as full as before"
        assert len(await hf.jobs.list()) == 14


@scene
async def test_the_bypass_is_for_the_queue_that_was_named() -> None:
    hf = small(queue={"other": {"bypass_priority": 0}})

    @hf.task(priority=9)
    async def work() -> None: ...

    async with hf:
        await hf.enqueue_many([work.request() for _ in range(10)])
        with pytest.raises(QueueFull):
            await work.options(wait=0).enqueue()
