"""`hf.jobs`: list with filters and pages, cancel what waits and what runs, retry."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from tests.integration.scene import PATIENCE_S, scene, until

from holdfast import Holdfast, JobCancelled, JobNotFound, JobStateError, RetryPolicy, current_job
from holdfast.core.ids import new_job_id
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
