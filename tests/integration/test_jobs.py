"""`hf.jobs`: list with filters and pages, cancel what waits and what runs, retry, explain every state."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from tests.integration.scene import PATIENCE_S, scene, until

from holdfast import Holdfast, JobCancelled, JobHandle, JobNotFound, JobStateError, RetryPolicy, current_job
from holdfast.core.gates import SlotGate
from holdfast.core.ids import new_job_id
from holdfast.core.job import NewJob
from holdfast.core.state import State
from holdfast.runtime.clock import ManualClock
from holdfast.stores.base import CancelAnswer

CALL = b'{"args": [], "kwargs": {}}'
NOON = datetime(2024, 2, 29, 12, tzinfo=UTC)


@scene
async def test_jobs_are_listed_newest_first_by_any_filter_and_in_pages() -> None:
    clock = ManualClock(NOON.timestamp())
    hf = Holdfast(":memory:", clock=clock)

    @hf.task(name="a", queue="one")
    async def a() -> None: ...

    @hf.task(name="b", queue="two")
    async def b() -> None: ...

    async with hf:
        jobs = []
        for task in (
            a,
            a.options(tenant="acme", tags=["red", "big"]),
            b.options(delay=60),
            b.options(tenant="acme", tags=["red"]),
        ):
            jobs.append(await task.enqueue())
            clock.advance(10)
        await jobs[0].cancel()
        ids = [job.id for job in jobs]

        async def found(**filters: object) -> list[int]:
            return [ids.index(info.id) for info in await hf.jobs.list(**filters)]  # type: ignore[arg-type]

        assert await found() == [3, 2, 1, 0]
        assert await found(state="ready") == [3, 1]
        assert await found(state=State.SCHEDULED) == [2]
        assert await found(state="cancelled") == [0]
        assert await found(queue="two") == [3, 2]
        assert await found(task="a") == [1, 0]
        assert await found(tenant="acme") == [3, 1]
        assert await found(tag="red") == [3, 1]
        assert await found(tag="big") == [1]
        assert await found(created_after=NOON + timedelta(seconds=20)) == [3, 2]
        assert await found(created_before=NOON + timedelta(seconds=20)) == [1, 0]
        assert await found(queue="two", tenant="acme") == [3]
        assert await found(queue="two", task="a") == []
        pages, cursor = [], None
        while page := await hf.jobs.list(limit=3, before=cursor):
            pages.append([ids.index(info.id) for info in page])
            cursor = str(page[-1].id)
        assert pages == [[3, 2, 1], [0]]


@scene
async def test_a_waiting_job_is_cancelled_at_once_and_never_runs() -> None:
    hf = Holdfast(":memory:")
    ran: list[int] = []

    @hf.task
    async def note() -> None:
        ran.append(1)

    async with hf:
        ready, scheduled = await note.enqueue(), await note.options(delay=0.01).enqueue()
        assert await hf.jobs.cancel(ready.id, reason="changed my mind") is CancelAnswer.CANCELLED
        assert await hf.jobs.cancel(str(scheduled.id)) is CancelAnswer.CANCELLED
        assert await hf.jobs.cancel(ready.id) is CancelAnswer.ENDED
        assert (await ready.info()).reason == "changed my mind"
        assert (await scheduled.info()).reason == "cancelled"
        async with hf.worker():
            last = await note.enqueue()
            await last.result(timeout=PATIENCE_S)
    assert ran == [1]


@scene
async def test_a_running_job_is_asked_to_stop_and_tidies_up() -> None:
    hf = Holdfast(":memory:")
    started = asyncio.Event()
    tidied: list[str] = []

    @hf.task
    async def long() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            tidied.append("up")

    async with hf, hf.worker():
        job = await long.enqueue()
        await started.wait()
        assert await job.cancel("enough") is CancelAnswer.REQUESTED
        with pytest.raises(JobCancelled, match="enough"):
            await job.result(timeout=PATIENCE_S)
        info = await job.info()
    assert tidied == ["up"]
    assert [run.cause for run in info.attempts] == ["cancelled"]


@scene
async def test_a_success_that_comes_first_wins_over_the_cancellation() -> None:
    hf = Holdfast(":memory:")
    started, asked = asyncio.Event(), asyncio.Event()

    @hf.task
    async def long() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            asked.set()
        return "done all the same"

    async with hf, hf.worker():
        job = await long.enqueue()
        await started.wait()
        await job.cancel()
        await asked.wait()
        assert await job.result(timeout=PATIENCE_S) == "done all the same"
        assert await job.cancel() is CancelAnswer.ENDED


@scene
async def test_a_run_that_fails_after_it_was_asked_to_stop_is_not_retried() -> None:
    hf = Holdfast(":memory:")
    started = asyncio.Event()

    @hf.task(retry=RetryPolicy(max_attempts=5, base=0))
    async def long() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ValueError("while tidying up") from None

    async with hf, hf.worker():
        job = await long.enqueue()
        await started.wait()
        await job.cancel("enough")
        info = await until(job, State.CANCELLED)
    assert (info.reason, info.attempt) == ("enough", 1)
    assert info.error is not None
    assert info.error.message == "while tidying up"


@scene
async def test_only_a_dead_job_is_retried() -> None:
    hf = Holdfast(":memory:")
    broken = True

    @hf.task(retry=RetryPolicy(max_attempts=1))
    async def work() -> int:
        if broken:
            raise ValueError
        return current_job().attempt

    async with hf:
        job = await work.enqueue()
        with pytest.raises(JobStateError, match=f"^job {job.id} is ready; only a dead job can be run again$"):
            await hf.jobs.retry(job.id)
        async with hf.worker():
            await until(job, State.DEAD)
            broken = False
            await hf.jobs.retry(str(job.id))
            await until(job, State.SUCCEEDED)
            assert await job.result(timeout=PATIENCE_S) == 1


@scene
async def test_a_job_that_nobody_knows_is_not_found() -> None:
    hf = Holdfast(":memory:")
    async with hf:
        for use in (hf.jobs.get, hf.jobs.cancel, hf.jobs.retry, hf.jobs.explain, hf.dead.get):
            missing = new_job_id()
            with pytest.raises(JobNotFound, match=f"^there is no job {missing}; ended jobs are pruned"):
                await use(missing)


@scene
async def test_every_state_is_explained() -> None:
    hf = Holdfast(":memory:", poll_s=0.05)
    go_on = asyncio.Event()

    @hf.task(name="work", retry=RetryPolicy(max_attempts=2, base=3600, cap=3600, jitter="none"))
    async def work(fail: bool = False) -> None:
        if fail:
            raise ValueError
        await go_on.wait()

    async with hf:
        explain = hf.jobs.explain
        job = await work.enqueue()
        assert await explain(job.id) == f"job {job.id} is ready, but no running worker serves queue 'default'"
        await hf.queues.pause("default")
        assert await explain(job.id) == f"job {job.id} is ready, but queue 'default' is paused"
        later = await work.options(run_at=datetime(2099, 1, 2, 3, 4, 5, tzinfo=UTC)).enqueue()
        assert await explain(later.id) == f"job {later.id} waits for its time, at 2099-01-02 03:04:05 UTC"

        store = hf._open_store()
        joined, one, two = new_job_id(), new_job_id(), new_job_id()
        await store.insert_jobs([NewJob(joined, "work", "other", 5, CALL, waits_for=(job.id,))])
        assert await explain(joined) == f"job {joined} waits for other jobs to end"

        async with hf.worker(queues=["default"]):
            [worker] = await hf.workers.list()
            await hf.queues.pause("default")
            unserved = await work.options(queue="elsewhere").enqueue()
            expected = f"job {unserved.id} is ready, but no running worker serves queue 'elsewhere'"
            assert await explain(unserved.id) == expected

            await hf.queues.resume("default")
            await until(job, State.RUNNING)
            assert await explain(job.id) == f"job {job.id} runs on worker {worker.id}, attempt 1"
            failing = await work.enqueue(fail=True)
            info = await until(failing, State.SCHEDULED)
            assert await explain(failing.id) == (
                f"job {failing.id} waits for its next attempt, at {info.run_at:%Y-%m-%d %H:%M:%S} UTC"
            )
            unknown = await hf.named("nobody.knows").enqueue()
            await until(unknown, State.PARKED)
            assert await explain(unknown.id) == (
                f"job {unknown.id} is parked: no worker that has seen it knows its task; it runs when one that does "
                "appears"
            )
            limit = SlotGate("k", 1)
            await store.insert_jobs([NewJob(each, "work", "default", 5, CALL, gates=(limit,)) for each in (one, two)])
            await until(JobHandle(two, hf._open_client(), lambda result: result), State.PARKED)
            assert await explain(two) == f"job {two} is parked: as many jobs with its limit's key run as may at once"
            assert (await hf.jobs.get(one)).state is State.RUNNING
            go_on.set()
            await job.result(timeout=PATIENCE_S)
            assert await explain(job.id) == f"job {job.id} ended succeeded"
            await later.cancel("not needed")
            assert await explain(later.id) == f"job {later.id} ended cancelled: not needed"
            dead = await until(await work.options(retry=RetryPolicy(max_attempts=1)).enqueue(fail=True), State.DEAD)
            assert await explain(dead.id) == f"job {dead.id} ended dead: exhausted"


@scene
async def test_a_ready_job_is_told_how_many_may_come_first_and_a_running_one_that_it_was_asked_to_stop() -> None:
    hf = Holdfast(":memory:")
    asked, go_on = asyncio.Event(), asyncio.Event()

    @hf.task
    async def work() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            asked.set()
            await go_on.wait()

    async with hf, hf.worker(concurrency=1):
        running, *_, last = [await work.enqueue() for _ in range(4)]
        await until(running, State.RUNNING)
        assert await hf.jobs.explain(last.id) == (
            f"job {last.id} is ready; up to 2 others of its queue and priority may come first"
        )
        await running.cancel()
        await asked.wait()
        assert (await hf.jobs.explain(running.id)).endswith(", attempt 1; it was asked to stop")
        await hf.queues.purge("default")
        go_on.set()
        await running.result(timeout=PATIENCE_S)
