"""A full queue (P8): producers wait until it drains or their deadline passes, and then hear when to come again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.integration.scene import PATIENCE_S, Heard, scene, until, url_of

from holdfast import Holdfast, QueueFull, Rate, RetryPolicy, current_job
from holdfast.core.state import State
from holdfast.telemetry.events import QueueClosed


def small(**settings: object) -> Holdfast:
    return Holdfast(":memory:", high_watermark=10, low_watermark=4, **settings)


@scene
async def test_a_full_queue_refuses_after_the_wait_and_says_when_to_come_again() -> None:
    hf = small()

    @hf.task
    async def work() -> None: ...

    async with hf:
        for _ in range(10):
            await work.enqueue()
        for wait in (0, 0.01):
            with pytest.raises(QueueFull) as caught:
                await work.options(wait=wait).enqueue()
            assert str(caught.value) == (
                "queue 'default' is full: 10 jobs are ready (high watermark 10) and it accepts more once it has "
                "drained to 4; nothing was enqueued; try again in 5 s, add workers, or raise the watermarks"
            )
            assert (caught.value.queue, caught.value.depth, caught.value.retry_after) == ("default", 10, 5.0)
        assert [queue.accepting for queue in await hf.queues.list()] == [False]
        assert len(await hf.jobs.list()) == 10
        # Another queue is not full.
        await work.options(wait=0, queue="other").enqueue()


@scene
async def test_a_queue_that_is_full_of_parked_jobs_says_so_and_what_helps() -> None:
    hf = small()

    @hf.task(rate=Rate("1/h"))
    async def work() -> str:
        return "done"

    async with hf, hf.worker():
        closed = Heard(hf, QueueClosed)
        first = await work.enqueue()
        assert await first.result(timeout=PATIENCE_S) == "done"
        for _ in range(10):
            await until(await work.enqueue(), State.PARKED)
        with pytest.raises(QueueFull) as caught:
            await work.options(wait=0).enqueue()
        assert str(caught.value) == (
            "queue 'default' is full: 0 jobs are ready and 10 are parked (high watermark 10) and it accepts more once "
            "it has drained to 4; nothing was enqueued; try again in 5 s, see what the parked ones wait for, as more "
            "workers change nothing there (`holdfast jobs list --state parked`, `holdfast jobs explain ID`), or raise "
            "the watermarks"
        )
        assert (caught.value.depth, caught.value.parked) == (10, 10)
        assert await closed.next(QueueClosed) == QueueClosed("default", 10, 10)


@scene
async def test_a_full_queue_that_is_paused_says_what_helps_and_counts_as_people_do() -> None:
    hf = Holdfast(":memory:", high_watermark=1, low_watermark=0)

    @hf.task
    async def work() -> None: ...

    async with hf:
        await work.enqueue()
        await hf.queues.pause("default")
        with pytest.raises(QueueFull) as caught:
            await work.options(wait=0).enqueue()
        assert str(caught.value) == (
            "queue 'default' is full: 1 job is ready (high watermark 1) and it accepts more once it has drained to 0; "
            "nothing was enqueued; try again in 5 s, resume it, as it is paused (`holdfast queues resume default`), or "
            "raise the watermarks"
        )
        assert caught.value.paused
        await hf.queues.resume("default")
        await hf.queues.drain("default")
        with pytest.raises(QueueFull, match="while its 1 waiting job goes on"):
            await work.options(wait=0).enqueue()


@scene
async def test_waiting_producers_go_on_when_the_queue_drains() -> None:
    hf = small(wait_s=60)

    @hf.task
    async def work(n: int) -> int:
        return n

    async with hf:
        closed = Heard(hf, QueueClosed)
        first = [await work.enqueue(n) for n in range(10)]
        waiting = [asyncio.create_task(work.enqueue(n)) for n in range(10, 20)]
        many = asyncio.create_task(hf.enqueue_many([work.request(n) for n in range(20, 30)]))
        await closed.next(QueueClosed)
        async with hf.worker():
            jobs = [*first, *await asyncio.gather(*waiting), *await many]
            assert [await job.result(timeout=PATIENCE_S) for job in jobs] == list(range(30))


@scene
async def test_a_queue_that_closed_stays_closed_down_to_its_low_mark() -> None:
    hf = small()

    @hf.task
    async def work() -> None: ...

    async with hf:
        jobs = await hf.enqueue_many([work.request() for _ in range(10)])
        now = work.options(wait=0)
        for job in jobs[:5]:  # down to 5, one above the mark
            with pytest.raises(QueueFull):
                await now.enqueue()
            await job.cancel()
        with pytest.raises(QueueFull):
            await now.enqueue()
        await jobs[5].cancel()
        await now.enqueue()


@scene
async def test_a_batch_is_admitted_whole_or_refused_whole() -> None:
    hf = small(wait_s=0)

    @hf.task
    async def work() -> None: ...

    async with hf:
        await hf.enqueue_many([work.request() for _ in range(9)])
        await hf.enqueue_many([work.request() for _ in range(50)])  # below the mark: taken whole
        with pytest.raises(QueueFull):
            await hf.enqueue_many([work.options(queue="other").request(), work.request()])
        assert [(queue.name, queue.ready) for queue in await hf.queues.list()] == [("default", 59)]


@scene
async def test_the_shortest_wait_of_a_batch_counts() -> None:
    hf = small(wait_s=60)

    @hf.task
    async def work() -> None: ...

    async with hf:
        await hf.enqueue_many([work.request() for _ in range(10)])
        with pytest.raises(QueueFull):
            await hf.enqueue_many([work.request(), work.options(wait=0).request()])


@scene
async def test_retries_and_jobs_that_fall_due_are_not_held_up() -> None:
    hf = small(wait_s=0)
    go_on = asyncio.Event()

    @hf.task(retry=RetryPolicy(max_attempts=2, base=0))
    async def work() -> int:
        await go_on.wait()
        if current_job().attempt == 1:
            raise ValueError
        return current_job().attempt

    async with hf, hf.worker(concurrency=1):
        running = await work.enqueue()
        await until(running, State.RUNNING)
        await hf.enqueue_many([work.request() for _ in range(10)])
        with pytest.raises(QueueFull):
            await work.enqueue()
        go_on.set()
        assert await running.result(timeout=PATIENCE_S) == 2


@scene
async def test_watermarks_can_be_changed_while_producers_wait() -> None:
    hf = small(wait_s=60)

    @hf.task
    async def work() -> None: ...

    async with hf:
        closed = Heard(hf, QueueClosed)
        await hf.enqueue_many([work.request() for _ in range(10)])
        waiting = asyncio.create_task(work.enqueue())
        assert (await closed.next(QueueClosed)).depth == 10
        await hf.queues.set_watermarks("default", high=100, low=50)
        await asyncio.wait_for(waiting, PATIENCE_S)


@scene
async def test_a_producer_in_another_app_hears_that_the_queue_has_drained(tmp_path: Path) -> None:
    settings = {"high_watermark": 10, "low_watermark": 4, "wait_s": 60}
    producer, consumer = (Holdfast(url_of(tmp_path / "jobs.db"), **settings) for _ in range(2))

    @consumer.task(name="work")
    async def work() -> str:
        return "done"

    async with producer, consumer:
        closed = Heard(producer, QueueClosed)
        await producer.enqueue_many([producer.named("work").request() for _ in range(10)])
        waiting = asyncio.create_task(producer.enqueue("work"))
        await closed.next(QueueClosed)
        async with consumer.worker():
            assert await (await waiting).result(timeout=PATIENCE_S) == "done"


@scene
async def test_a_key_that_is_known_is_answered_however_full_the_queue_is() -> None:
    hf = small(wait_s=0)

    @hf.task
    async def work(n: int) -> None: ...

    async with hf:
        job = await work.options(key="k").enqueue(0)
        await hf.enqueue_many([work.request(n) for n in range(10)])
        assert (await work.options(key="k").enqueue(0)).id == job.id
