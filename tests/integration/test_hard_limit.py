"""The hard limit: the run is ended; what swallows its cancellation is reported and judged when it ends at last."""

from __future__ import annotations

import asyncio

import pytest
from tests.integration.scene import PATIENCE_S, Heard, scene, until

from holdfast import Holdfast, JobFailed, RetryPolicy
from holdfast.core.state import State
from holdfast.telemetry.events import JobOverdue

ONCE = RetryPolicy(max_attempts=1)


@scene
async def test_a_run_is_ended_at_its_hard_limit_and_charged() -> None:
    hf = Holdfast(":memory:")
    tidied: list[int] = []

    @hf.task(timeout=0.02, retry=RetryPolicy(max_attempts=2, base=0))
    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            tidied.append(1)

    async with hf, hf.worker():
        job = await work.enqueue()
        with pytest.raises(JobFailed, match=r"HardTimeout: the run was ended at its hard limit of 0\.02 s$"):
            await job.result(timeout=PATIENCE_S)
        info = await job.info()
    assert [(run.number, run.cause) for run in info.attempts] == [(1, "retry"), (2, "dead")]
    assert tidied == [1, 1]


@scene
async def test_an_error_while_it_is_being_ended_does_not_hide_the_limit() -> None:
    hf = Holdfast(":memory:")

    @hf.task(timeout=0.02, retry=ONCE)
    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise OSError("while tidying up")

    async with hf, hf.worker():
        info = await until(await work.enqueue(), State.DEAD)
    assert info.error is not None
    assert info.error.type == "holdfast.HardTimeout"


@scene
async def test_a_swallowed_cancellation_is_reported_asked_again_and_the_run_ends_when_it_ends() -> None:
    hf = Holdfast(":memory:")
    asked: list[int] = []
    go_on = asyncio.Event()

    @hf.task(timeout=0.02, retry=ONCE)
    async def deaf(value: bool) -> str:
        while not go_on.is_set():
            try:
                await go_on.wait()
            except asyncio.CancelledError:
                asked.append(1)
        if not value:
            raise OSError("late")
        return "late, but done"

    async with hf:
        heard = Heard(hf, JobOverdue)
        async with hf.worker():
            done, failed = await deaf.enqueue(True), await deaf.enqueue(False)
            overdue = [await heard.next(JobOverdue) for _ in range(2)]
            assert {event.job_id for event in overdue} == {done.id, failed.id}
            assert all(event.seconds >= 1 for event in overdue)
            assert [(await job.info()).state for job in (done, failed)] == [State.RUNNING] * 2
            go_on.set()
            assert await done.result(timeout=PATIENCE_S) == "late, but done"
            info = await until(failed, State.DEAD)
    assert len(asked) >= 4  # each at its limit, and again a second later
    assert info.error is not None
    assert info.error.type == "holdfast.HardTimeout"


@scene
async def test_the_slot_of_an_ended_run_is_free_again() -> None:
    hf = Holdfast(":memory:")

    @hf.task(timeout=0.02, retry=RetryPolicy(max_attempts=5, base=3600, cap=3600, jitter="none"))
    async def stuck() -> None:
        await asyncio.Event().wait()

    @hf.task
    async def ping() -> str:
        return "pong"

    async with hf, hf.worker(concurrency=1):
        await stuck.enqueue()
        assert await (await ping.enqueue()).result(timeout=PATIENCE_S) == "pong"


@scene
async def test_no_limit_means_none() -> None:
    hf = Holdfast(":memory:")

    @hf.task(timeout=0.02, retry=ONCE)
    async def work() -> str:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await asyncio.Event().wait()
        return "unhurried"

    async with hf, hf.worker():
        assert await (await work.options(timeout=None).enqueue()).result(timeout=PATIENCE_S) == "unhurried"
