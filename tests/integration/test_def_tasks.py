"""Tasks made from `def`: in threads, with the caller's context, current_job and progress from there."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar
from uuid import UUID

import pytest
from tests.integration.scene import PATIENCE_S, Heard, scene, until

from holdfast import Holdfast, HoldfastError, JobCancelled, LeaseLost, RetryPolicy, current_job
from holdfast.core.state import State
from holdfast.stores.base import CancelAnswer
from holdfast.telemetry.events import JobOverdue

TINT: ContextVar[str] = ContextVar("tint", default="none")


@scene
async def test_a_def_task_runs_in_a_thread_and_the_loop_goes_on() -> None:
    hf = Holdfast(":memory:")
    asked, answered = threading.Event(), threading.Event()

    @hf.task
    def block() -> str:
        asked.set()
        assert answered.wait(PATIENCE_S)
        return threading.current_thread().name

    async with hf, hf.worker():
        job = await block.enqueue()
        await asyncio.to_thread(asked.wait, PATIENCE_S)
        answered.set()  # only possible because the loop is not blocked
        assert (await job.result(timeout=PATIENCE_S)).startswith("holdfast-task-")


@scene
async def test_as_many_run_at_once_as_there_are_threads() -> None:
    hf = Holdfast(":memory:", threads=3)
    together = threading.Barrier(3, timeout=PATIENCE_S)

    @hf.task
    def meet() -> int:
        return together.wait()

    async with hf, hf.worker(concurrency=10):
        jobs = await hf.enqueue_many([meet.request()] * 6)
        met = [await job.result(timeout=PATIENCE_S) for job in jobs]
    assert sorted(met) == [0, 0, 1, 1, 2, 2]


@scene
async def test_each_run_has_a_context_of_its_own() -> None:
    hf = Holdfast(":memory:", threads=1)

    @hf.task
    def tint(colour: str) -> list[str]:
        before = TINT.get()
        TINT.set(colour)
        return [before, TINT.get(), str(current_job().id)]

    async with hf, hf.worker():
        TINT.set("outside")
        red, blue = await tint.enqueue("red"), await tint.enqueue("blue")
        assert await red.result(timeout=PATIENCE_S) == ["none", "red", str(red.id)]
        assert await blue.result(timeout=PATIENCE_S) == ["none", "blue", str(blue.id)]


@scene
async def test_progress_from_a_thread_is_written_when_it_returns() -> None:
    hf = Holdfast(":memory:")
    reported, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    @hf.task
    def work() -> None:
        current_job().progress_from_thread(1, 2, "half")
        loop.call_soon_threadsafe(reported.set)
        assert go_on.wait(PATIENCE_S)

    async with hf, hf.worker():
        job = await work.enqueue()
        await reported.wait()
        info = await job.info()
        go_on.set()
        await job.result(timeout=PATIENCE_S)
    assert info.state is State.RUNNING
    assert info.progress is not None
    assert (info.progress.fraction, info.stage) == (0.5, "half")


@scene
async def test_progress_of_a_run_that_lost_its_lease_is_refused_in_a_thread_as_well_and_it_may_tidy_up() -> None:
    hf = Holdfast(":memory:", lease_s=3600)
    loop = asyncio.get_running_loop()
    seen: list[str] = []

    @hf.task
    def work() -> int:
        job = current_job()
        if not seen:
            giving_back = hf._open_store().hand_back_worker(UUID(job.worker), cause="worker_lost", why="told so")
            asyncio.run_coroutine_threadsafe(giving_back, loop).result()
            try:
                job.progress_from_thread(1)
            except LeaseLost as error:
                seen.append(f"{error}; {job.cancelled}")
                raise
        return job.attempt

    async with hf, hf.worker(concurrency=1):
        job = await work.enqueue()
        assert await job.result(timeout=PATIENCE_S) == 1
    assert seen == [f"job {job.id}: this run's lease has passed on, nothing that it writes counts; True"]


@scene
async def test_progress_from_thread_on_the_event_loop_is_refused_instead_of_waiting_for_itself() -> None:
    hf = Holdfast(":memory:")

    @hf.task
    async def work() -> str:
        with pytest.raises(HoldfastError) as caught:
            current_job().progress_from_thread(1)
        return str(caught.value)

    async with hf, hf.worker():
        message = await (await work.enqueue()).result(timeout=PATIENCE_S)
    assert message == (
        "progress_from_thread() was called on the event loop, where it would wait for itself; "
        "in an `async def` task use `await current_job().progress(…)`"
    )


@scene
async def test_a_def_task_that_has_swallowed_its_cancellation_can_still_see_it() -> None:
    hf = Holdfast(":memory:")
    started = asyncio.Event()
    loop = asyncio.get_running_loop()

    @hf.task
    def work() -> None:
        job = current_job()
        tick = threading.Event()
        try:
            loop.call_soon_threadsafe(started.set)
            while True:
                tick.wait(0.01)
        except BaseException:
            while not job.cancelled:
                tick.wait(0.01)
        raise InterruptedError("asked to stop")

    async with hf, hf.worker():
        job = await work.enqueue()
        await started.wait()
        assert await job.cancel("enough") is CancelAnswer.REQUESTED
        with pytest.raises(JobCancelled, match="enough"):
            await job.result(timeout=PATIENCE_S)
        info = await job.info()
    assert info.error is not None
    assert info.error.message == "asked to stop"


@scene
async def test_a_def_task_past_its_hard_limit_is_reported_and_judged_when_it_ends() -> None:
    hf = Holdfast(":memory:")
    go_on = threading.Event()

    @hf.task(timeout=0.02, retry=RetryPolicy(max_attempts=1))
    def stuck(fail: bool) -> str:
        while not go_on.is_set():
            try:
                go_on.wait(PATIENCE_S)
            except asyncio.CancelledError:
                continue  # deaf
        if fail:
            raise OSError("late, and wrong")
        return "late, but done"

    async with hf:
        heard = Heard(hf, JobOverdue)
        async with hf.worker():
            done, failed = await stuck.enqueue(False), await stuck.enqueue(True)
            overdue = {(await heard.next(JobOverdue)).job_id for _ in range(2)}
            assert overdue == {done.id, failed.id}
            go_on.set()
            # Whoever returns a value has done the work.
            assert await done.result(timeout=PATIENCE_S) == "late, but done"
            info = await until(failed, State.DEAD)
    assert info.error is not None
    assert info.error.message == "the run was ended at its hard limit of 0.02 s"


@scene
async def test_a_thread_that_outlives_its_worker_disturbs_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.worker.session._STOP_WAIT_S", 0.01)
    hf = Holdfast(":memory:", grace_s=0)
    started, go_on, ended = asyncio.Event(), threading.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    runs: list[int] = []

    @hf.task
    def stuck() -> str:
        runs.append(current_job().token)
        loop.call_soon_threadsafe(started.set)
        try:
            assert go_on.wait(PATIENCE_S)  # where nothing interrupts it
        finally:
            ended.set()
        return "done"

    async with hf:
        async with hf.worker():
            job = await stuck.enqueue()
            await started.wait()
        info = await job.info()
        assert (info.state, [each.cause for each in info.attempts]) == (State.READY, ["handed_back"])
        go_on.set()
        await asyncio.to_thread(ended.wait, PATIENCE_S)
        async with hf.worker():
            assert await job.result(timeout=PATIENCE_S) == "done"
        assert (await job.info()).attempt == 1
    assert len(runs) == 2
