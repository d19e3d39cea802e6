"""`hf.queues` and `hf.workers`: depths, pausing, purging, settings that all processes share."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from tests.integration.scene import PATIENCE_S, scene, until, url_of

from holdfast import Holdfast, InvalidOptions, RetryPolicy
from holdfast.core.backpressure import Watermarks
from holdfast.core.queue import QueueSettings
from holdfast.core.state import State
from holdfast.runtime.clock import ManualClock


@scene
async def test_a_queue_shows_how_many_jobs_are_in_each_state() -> None:
    clock = ManualClock()
    hf = Holdfast(":memory:", clock=clock, lease_s=3600, poll_s=0.05)
    go_on = asyncio.Event()

    @hf.task(queue="mail", retry=RetryPolicy(max_attempts=1))
    async def work(fail: bool = False) -> None:
        if fail:
            raise ValueError
        await go_on.wait()

    async with hf:
        assert await hf.queues.list() == []
        async with hf.worker(concurrency=1):
            await until(await work.enqueue(fail=True), State.DEAD)
            await until(await hf.named("nobody.knows").options(queue="mail").enqueue(), State.PARKED)
            await work.options(delay=60).enqueue()
            await until(await work.enqueue(), State.RUNNING)
            oldest = await work.enqueue()
            clock.advance(5)
            await work.options(priority="high").enqueue()
            [queue] = await hf.queues.list()
            await oldest.cancel()
            [younger] = await hf.queues.list()
            await hf.queues.purge("mail")
            go_on.set()
    assert (queue.name, queue.ready, queue.scheduled, queue.blocked) == ("mail", 2, 1, 0)
    assert (queue.parked, queue.running, queue.dead, queue.accepting) == (1, 1, 1, True)
    assert (queue.by_priority, queue.oldest_ready_s) == ({5: 1, 7: 1}, 5.0)
    assert (younger.by_priority, younger.oldest_ready_s) == ({7: 1}, 0.0)


@scene
async def test_a_paused_queue_starts_nothing_more_and_what_runs_goes_on() -> None:
    hf = Holdfast(":memory:")
    started, go_on = asyncio.Event(), asyncio.Event()

    @hf.task(queue="mail")
    async def work() -> str:
        started.set()
        await go_on.wait()
        return "done"

    @hf.task(queue="other")
    async def ping() -> str:
        return "pong"

    async with hf, hf.worker():
        running = await work.enqueue()
        await started.wait()
        await hf.queues.pause("mail")
        go_on.set()
        assert await running.result(timeout=PATIENCE_S) == "done"
        waiting = await work.enqueue()
        assert await (await ping.enqueue()).result(timeout=PATIENCE_S) == "pong"  # the worker has looked since
        assert (await waiting.info()).state is State.READY
        assert [queue.settings.paused for queue in await hf.queues.list()] == [True, False]
        await hf.queues.resume("mail")
        assert await waiting.result(timeout=PATIENCE_S) == "done"


@scene
async def test_settings_of_a_queue_do_not_disturb_each_other_and_are_shared(tmp_path: Path) -> None:
    one, other = (Holdfast(url_of(tmp_path / "jobs.db")) for _ in range(2))
    async with one, other:
        await one.queues.pause("mail")
        await other.queues.set_weights("mail", weight=2.5)
        await one.queues.set_weights("mail", priorities={"bulk": 5})
        await other.queues.set_watermarks("mail", high=100, low=10)
        [queue] = await one.queues.list()
    assert queue.settings == QueueSettings(
        paused=True,
        watermarks=Watermarks(100, 10),
        weight=2.5,
        weights={"critical": 60, "high": 30, "normal": 10, "low": 3, "bulk": 5},
    )


@scene
async def test_purging_cancels_all_that_waits_in_one_queue() -> None:
    hf = Holdfast(":memory:")
    started, go_on = asyncio.Event(), asyncio.Event()

    @hf.task(queue="mail")
    async def work() -> str:
        started.set()
        await go_on.wait()
        return "done"

    async with hf, hf.worker(concurrency=1):
        running = await work.enqueue()
        await started.wait()
        waiting = await hf.enqueue_many([work.request() for _ in range(600)])
        later = await work.options(delay=60).enqueue()
        other = await work.options(queue="other").enqueue()
        assert await hf.queues.purge("mail", reason="spring cleaning") == 601
        assert await hf.queues.purge("mail") == 0
        for job in (waiting[0], waiting[-1], later):
            info = await job.info()
            assert (info.state, info.reason) == (State.CANCELLED, "spring cleaning")
        assert (await other.info()).state is State.READY
        go_on.set()
        assert await running.result(timeout=PATIENCE_S) == "done"


@scene
async def test_a_worker_serves_the_queues_that_it_is_told_to() -> None:
    hf = Holdfast(":memory:")

    @hf.task(queue="mail")
    async def mail() -> str:
        return "mail"

    @hf.task(queue="sums")
    async def sums() -> str:
        return "sums"

    async with hf, hf.worker(queues=["mail"]):
        unserved, served = await sums.enqueue(), await mail.enqueue()
        assert await served.result(timeout=PATIENCE_S) == "mail"
        assert (await unserved.info()).state is State.READY
        async with hf.worker(queues="sums,mail"):
            assert await unserved.result(timeout=PATIENCE_S) == "sums"


@scene
async def test_a_worker_takes_up_a_queue_that_comes_into_being() -> None:
    hf = Holdfast(":memory:")

    @hf.task
    async def ping() -> str:
        return "pong"

    async with hf, hf.worker():
        await (await ping.enqueue()).result(timeout=PATIENCE_S)
        job = await ping.options(queue="brand-new").enqueue()
        assert await job.result(timeout=PATIENCE_S) == "pong"


@scene
async def test_workers_are_listed_while_they_live() -> None:
    hf = Holdfast(":memory:")
    started, go_on = asyncio.Event(), asyncio.Event()

    @hf.task
    async def work() -> None:
        started.set()
        await go_on.wait()

    async with hf:
        assert await hf.workers.list() == []
        async with hf.worker(concurrency=7, queues=["default"], lease_s=5):
            job = await work.enqueue()
            await started.wait()
            [worker] = await hf.workers.list()
            go_on.set()
            await job.result(timeout=PATIENCE_S)
        assert await hf.workers.list() == []
    assert (worker.pid, worker.concurrency, worker.queues, worker.running) == (os.getpid(), 7, ("default",), 1)
    assert worker.started_at < worker.lease_until


@scene
async def test_whoever_purges_a_queue_that_is_none_is_told_the_nearest_name() -> None:
    hf = Holdfast(":memory:", poll_s=0.05)

    @hf.task(queue="mail")
    async def send() -> None: ...

    async with hf:
        assert await hf.queues.purge("mail") == 0, "a task of this app is at home there"
        await hf.queues.pause("reports")
        assert await hf.queues.purge("reports") == 0, "it has a setting"
        await hf.named("nobody.knows").options(queue="errands").enqueue()
        assert [await hf.queues.purge("errands"), await hf.queues.purge("errands")] == [1, 0], "it has had a job"
        async with hf.worker(queues=("night",)):
            assert await hf.queues.purge("night") == 0, "a worker serves it"
        before = await hf.audit.list()
        with pytest.raises(InvalidOptions, match=r"there is no queue 'erands'.*; did you mean 'errands'\?"):
            await hf.queues.purge("erands")
        assert await hf.audit.list() == before, "what is refused is not on record"
