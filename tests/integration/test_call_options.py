"""When, where and for how long: delay, run_at, expires, priority, queue, tenant, tags, metadata."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from tests.integration.scene import PATIENCE_S, Heard, scene, until

from holdfast import Holdfast, JobCancelled, current_job
from holdfast.core.state import State
from holdfast.runtime.clock import ManualClock
from holdfast.telemetry.events import JobsPromoted

NOON = datetime(2024, 2, 29, 12, tzinfo=UTC)


@scene
async def test_a_delayed_job_runs_when_its_time_has_come_and_not_before() -> None:
    clock = ManualClock(NOON.timestamp())
    hf = Holdfast(":memory:", clock=clock, lease_s=3600)

    @hf.task
    async def hour() -> int:
        return datetime.fromtimestamp(clock.now(), UTC).hour

    async with hf:
        by_seconds = await hour.options(delay=3600).enqueue()
        by_timedelta = await hour.options(delay=timedelta(hours=2)).enqueue()
        by_moment = await hour.options(run_at=NOON + timedelta(hours=3)).enqueue()
        past = await hour.options(run_at=NOON - timedelta(hours=3)).enqueue()
        jobs = [by_seconds, by_timedelta, by_moment]
        infos = [await job.info() for job in jobs]
        assert [info.state for info in infos] == [State.SCHEDULED] * 3
        assert [info.run_at for info in infos] == [NOON + timedelta(hours=n) for n in (1, 2, 3)]
        assert (await past.info()).state is State.READY
        async with hf.worker(lease_s=3600):
            assert await past.result(timeout=PATIENCE_S) == 12
        for n, job in enumerate(jobs, 1):
            assert (await job.info()).state is State.SCHEDULED
            clock.advance(3600)
            async with hf.worker(lease_s=3600):
                assert await job.result(timeout=PATIENCE_S) == 12 + n


@scene
async def test_a_running_worker_promotes_what_falls_due() -> None:
    hf = Holdfast(":memory:")

    @hf.task
    async def ping() -> str:
        return "pong"

    async with hf:
        promoted = Heard(hf, JobsPromoted)
        async with hf.worker():
            job = await ping.options(delay=0.05).enqueue()
            assert (await promoted.next(JobsPromoted)).count == 1
            assert await job.result(timeout=PATIENCE_S) == "pong"
        info = await job.info()
    assert info.started_at - info.created_at >= timedelta(seconds=0.05)


@scene
async def test_jobs_that_fall_due_together_run_in_the_order_of_their_times() -> None:
    clock = ManualClock()
    hf = Holdfast(":memory:", clock=clock, lease_s=3600)
    ran: list[int] = []

    @hf.task
    async def note(n: int) -> None:
        ran.append(n)

    async with hf:
        jobs = [await note.options(delay=n).enqueue(n) for n in (3, 1, 2)]
        clock.advance(5)
        async with hf.worker(concurrency=1):
            await asyncio.gather(*(job.result(timeout=PATIENCE_S) for job in jobs))
    assert ran == [1, 2, 3]


@scene
async def test_a_job_not_started_by_its_deadline_is_cancelled() -> None:
    clock = ManualClock(NOON.timestamp())
    hf = Holdfast(":memory:", clock=clock, lease_s=3600)

    @hf.task
    async def greet() -> str:
        return "good morning"

    async with hf:
        late = [
            await greet.options(expires=60).enqueue(),
            await greet.options(expires=timedelta(minutes=1)).enqueue(),
            await greet.options(expires=NOON + timedelta(minutes=1)).enqueue(),
            await greet.options(expires=60, delay=30).enqueue(),
        ]
        in_time = await greet.options(expires=61).enqueue()
        assert (await late[0].info()).expires_at == NOON + timedelta(minutes=1)
        clock.advance(60)
        async with hf.worker():
            assert await in_time.result(timeout=PATIENCE_S) == "good morning"
            for job in late:
                with pytest.raises(JobCancelled, match=r"was cancelled: expired$"):
                    await job.result(timeout=PATIENCE_S)


@scene
async def test_a_running_job_has_kept_its_deadline() -> None:
    clock = ManualClock()
    hf = Holdfast(":memory:", clock=clock, lease_s=3600)
    started, go_on = asyncio.Event(), asyncio.Event()

    @hf.task
    async def long() -> str:
        started.set()
        await go_on.wait()
        return "done"

    async with hf, hf.worker():
        job = await long.options(expires=10).enqueue()
        await started.wait()
        clock.advance(20)
        # Whoever comes after the deadline is expired by the same sweep that must leave the running one alone.
        other = await long.options(expires=1).enqueue()
        assert await other.cancel() is not None
        go_on.set()
        assert await job.result(timeout=PATIENCE_S) == "done"


@scene
async def test_a_job_carries_tenant_tags_and_metadata() -> None:
    hf = Holdfast(":memory:")

    @hf.task
    async def who() -> list[str]:
        job = current_job()
        return [job.tenant, job.queue, job.task, str(job.id), str(job.attempt)]

    async with hf, hf.worker(queues=["mail"]):
        labelled = who.options(tenant="acme", tags=["a", "b", "a"], metadata={"order": 17, "vip": True}, queue="mail")
        job = await labelled.enqueue()
        assert await job.result(timeout=PATIENCE_S) == ["acme", "mail", who.name, str(job.id), "1"]
        info = await job.info()
    assert (info.tenant, info.tags, info.metadata) == ("acme", ("a", "b"), {"order": 17, "vip": True})


@scene
async def test_a_limit_given_with_a_call_goes_before_the_tasks_own() -> None:
    hf = Holdfast(":memory:")
    hang = asyncio.Event()

    @hf.task(timeout=None)
    async def wait() -> None:
        await hang.wait()

    async with hf, hf.worker():
        job = await wait.options(timeout=0.05).enqueue()
        info = await until(job, lambda info: info.state is State.SCHEDULED)
        assert info.error is not None
        assert info.error.message == "the run was ended at its hard limit of 0.05 s"
        await job.cancel()


@scene
async def test_options_given_again_replace_those_before_and_none_takes_them_back() -> None:
    hf = Holdfast(":memory:")

    @hf.task
    async def note() -> None: ...

    async with hf:
        later = note.options(delay=60, key="k", metadata={"a": 1}, expires=90)
        sooner = await later.options(delay=None, key=None, metadata=None, expires=None).enqueue()
        info = await sooner.info()
        assert (info.state, info.run_at, info.metadata, info.expires_at) == (State.READY, None, None, None)
        first, second = await later.enqueue(), await later.enqueue()
        assert first.id == second.id != sooner.id
