"""Limits, cancellations and drains hold for whatever a task does, and hit it alone."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from uuid import UUID

import pytest
from tests.integration.scene import PATIENCE_S, Heard, scene, until
from tests.isolation import app
from tests.isolation.app import hf
from tests.isolation.processes import gone

from holdfast import JobInfo, Task
from holdfast.core.cause import Cause
from holdfast.core.state import State
from holdfast.telemetry.events import WorkerStarted

#: For what does not end by itself, so that nothing has to be fair to it.
QUICK_S = 0.1


def began(info: JobInfo) -> bool:
    return info.stage is not None


@pytest.mark.parametrize(
    "task", [app.spin, app.backtrack, app.sleep_in_thread, app.swallow], ids=lambda task: task.name
)
@scene
async def test_the_hard_limit_holds_whatever_it_does(task: Task[[], None]) -> None:
    async with hf, hf.worker(isolates=1, kill_after_s=QUICK_S):
        before = await (await app.pid.enqueue()).result(timeout=PATIENCE_S)
        job = await task.options(timeout=0.2).enqueue()
        info = await until(job, State.DEAD)
        await gone(before)
        after = await (await app.pid.enqueue()).result(timeout=PATIENCE_S)
    assert info.error is not None
    assert info.error.type == "holdfast.HardTimeout"
    assert [run.cause for run in info.attempts] == ["dead"]
    assert info.stage == str(before) != str(after)


@scene
async def test_the_hard_limit_holds_while_another_job_blocks_the_event_loop() -> None:
    async with hf, hf.worker(isolates=1, kill_after_s=QUICK_S):
        job = await app.backtrack.options(timeout=1.0).enqueue()
        pid = int((await until(job, began)).stage or 0)
        blocker = await app.block_while_alive.enqueue(pid)
        was_there, ended = await blocker.result(timeout=PATIENCE_S)
        assert was_there
        assert ended, "while nothing else happened in its worker"
        guilty = await until(job, State.DEAD)
        innocent = await blocker.info()
    assert guilty.error is not None
    assert (guilty.error.type, guilty.attempt) == ("holdfast.HardTimeout", 1), "charged"
    assert innocent.attempts == ()


@scene
async def test_what_ends_at_its_limit_by_itself_costs_no_process() -> None:
    async with hf, hf.worker(isolates=1):
        info = await until(await app.wait.options(timeout=0.2).enqueue(), State.DEAD)
        after = await (await app.pid.enqueue()).result(timeout=PATIENCE_S)
    assert info.error is not None
    assert info.error.type == "holdfast.HardTimeout"
    assert info.stage == str(after)


@pytest.mark.parametrize("task", [app.wait, app.look_in_thread], ids=lambda task: task.name)
@scene
async def test_a_cancellation_is_passed_on(task: Task[[], None]) -> None:
    async with hf, hf.worker(isolates=1):
        job = await task.enqueue()
        await until(job, began)
        await job.cancel("enough")
        info = await until(job, State.CANCELLED)
        after = await (await app.pid.enqueue()).result(timeout=PATIENCE_S)
    assert info.reason == "enough"
    assert info.stage == str(after)


@pytest.mark.parametrize(
    "task", [app.spin, app.backtrack, app.sleep_in_thread, app.swallow], ids=lambda task: task.name
)
@scene
async def test_what_does_not_listen_to_its_cancellation_is_killed(task: Task[[], None]) -> None:
    async with hf, hf.worker(isolates=1, kill_after_s=QUICK_S):
        job = await task.enqueue()
        pid = int((await until(job, began)).stage or 0)
        await job.cancel("enough")
        info = await until(job, State.CANCELLED)
        await gone(pid)
    assert info.reason == "enough"
    assert [run.cause for run in info.attempts] == ["cancelled"]


@scene
async def test_what_waits_for_a_process_can_be_cancelled() -> None:
    async with hf, hf.worker(isolates=1, grace_s=0, kill_after_s=QUICK_S):
        first = await app.wait.enqueue()
        await until(first, began)
        second = await app.pid.enqueue()
        await until(second, State.RUNNING)
        await second.cancel("not needed")
        await until(second, State.CANCELLED)
        assert (await first.info()).state is State.RUNNING


@scene
async def test_neighbours_are_not_hurt_by_a_kill(tmp_path: Path) -> None:
    async with hf, hf.worker(kill_after_s=QUICK_S):
        here = await app.until_there_in_worker.enqueue(str(tmp_path / "go"))
        there = await app.until_there.enqueue(str(tmp_path / "go"))
        pid = (await until(there, began)).stage
        killed = await until(await app.spin.options(timeout=0.2).enqueue(), State.DEAD)
        (tmp_path / "go").touch()
        for job in (here, there):
            assert await job.result(timeout=PATIENCE_S) == "there"
            assert (await job.info()).attempts == ()
    assert killed.stage != pid


@scene
async def test_what_a_killed_task_has_started_goes_with_it() -> None:
    async with hf, hf.worker(kill_after_s=QUICK_S):
        job = await app.with_child.options(timeout=30).enqueue()
        info = await until(job, began)
        pids = [int(pid) for pid in (info.stage or "").split()]
        os.kill(pids[0], signal.SIGSTOP)  # now it cannot end by itself
        await job.cancel()
        await until(job, State.CANCELLED)
        for pid in pids:
            await gone(pid)


@scene
async def test_a_signal_to_all_processes_of_the_service_does_not_end_it(tmp_path: Path) -> None:
    async with hf, hf.worker():
        job = await app.until_there.enqueue(str(tmp_path / "go"))
        pid = int((await until(job, began)).stage or 0)
        os.kill(pid, signal.SIGTERM)
        os.kill(pid, signal.SIGINT)
        (tmp_path / "go").touch()
        assert await job.result(timeout=PATIENCE_S) == "there"


@scene
async def test_a_drained_worker_lets_it_end(tmp_path: Path) -> None:
    async with hf:
        worker = hf.worker(grace_s=PATIENCE_S)
        await worker.start()
        job = await app.until_there.enqueue(str(tmp_path / "go"))
        pid = int((await until(job, began)).stage or 0)
        stopping = asyncio.create_task(worker.stop())
        (tmp_path / "go").touch()
        await stopping
        assert await job.result(timeout=PATIENCE_S) == "there"
        await gone(pid)


@pytest.mark.parametrize("task", [app.wait, app.spin], ids=lambda task: task.name)
@scene
async def test_after_the_grace_period_it_is_handed_back_uncharged_and_ended(task: Task[[], None]) -> None:
    async with hf:
        async with hf.worker(grace_s=0, kill_after_s=QUICK_S):
            job = await task.enqueue()
            pid = int((await until(job, began)).stage or 0)
        await gone(pid)
        info = await job.info()
    assert (info.state, info.attempt) == (State.READY, 0)
    assert [(run.cause, run.error and run.error.message) for run in info.attempts] == [
        ("handed_back", "the worker stopped")
    ]


@scene
async def test_a_run_whose_worker_was_declared_dead_is_killed_at_once() -> None:
    async with hf:
        heard = Heard(hf, WorkerStarted)
        async with hf.worker(isolates=1, lease_s=5, kill_after_s=QUICK_S):
            await heard.next(WorkerStarted)
            job = await app.swallow.enqueue()
            info = await until(job, began)
            assert info.worker is not None
            await hf._open_store().hand_back_worker(UUID(info.worker), cause=Cause.WORKER_LOST, why="told so")
            await gone(int(info.stage or 0))
            await heard.next(WorkerStarted)
            again = await until(job, lambda now: now.stage not in (None, info.stage))
            assert again.worker != info.worker
            await job.cancel()
            await until(job, State.CANCELLED)
