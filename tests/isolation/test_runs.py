"""What a task does and says in a process of its own comes back as if it had been here."""

from __future__ import annotations

import os
from typing import Any
from uuid import UUID

from tests.integration.scene import PATIENCE_S, Heard, scene, until
from tests.isolation import app
from tests.isolation.app import hf

from holdfast import JobHandle
from holdfast.core.state import State
from holdfast.telemetry.flow_events import BreakerClosed, BreakerOpened
from holdfast.testing.contracts.arrange import a_job


def _handle(job_id: UUID) -> JobHandle[Any]:
    return JobHandle(job_id, hf._open_client(), lambda result: result)


@scene
async def test_it_runs_in_a_process_of_its_own_which_is_kept_for_the_next() -> None:
    async with hf, hf.worker():
        pids = [await (await app.pid.enqueue()).result(timeout=PATIENCE_S) for _ in range(3)]
        here = await (await app.pid_of_worker.enqueue()).result(timeout=PATIENCE_S)
        [in_thread, in_main_thread] = await (await app.pid_in_thread.enqueue()).result(timeout=PATIENCE_S)
    assert here == os.getpid()
    assert {*pids, in_thread} == {pids[0]}
    assert pids[0] != here
    assert not in_main_thread


@scene
async def test_arguments_and_results_are_what_they_are_in_a_worker() -> None:
    async with hf, hf.worker():
        assert await (await app.add.enqueue(2, b=3)).result(timeout=PATIENCE_S) == 5
        bad = a_job(task=app.add.name, queue="default", payload=b'{"args": ["\xff"]}')
        await hf._open_store().insert_jobs([bad])
        undecodable = await until(_handle(bad.id), State.DEAD)
        refused = await until(await app.unlike_json.enqueue(), State.DEAD)
        too_long = await until(await app.long_text.enqueue(100 * 1024 * 1024), State.DEAD)
        long = await app.long_text.enqueue(1000 * 1024)
        assert len(await long.result(timeout=PATIENCE_S)) == 1000 * 1024
    assert undecodable.reason == "bad_payload"
    assert refused.reason == too_long.reason == "bad_result"
    assert too_long.error is not None
    assert "the limit is" in too_long.error.message


@scene
async def test_an_error_comes_back_as_text_with_its_traceback() -> None:
    async with hf, hf.worker():
        info = await until(await app.fail.enqueue("été"), State.DEAD)
    assert info.error is not None
    assert (info.error.type, info.error.message, info.reason) == ("LookupError", "été", "exhausted")
    assert "raise LookupError(how)" in info.error.traceback


@scene
async def test_what_a_task_decides_about_its_next_run_holds() -> None:
    async with hf, hf.worker():
        later = await until(await app.fail.enqueue("later"), State.SCHEDULED)
        never = await until(await app.fail.enqueue("permanently"), State.DEAD)
    assert [run.cause for run in later.attempts] == ["snooze"]
    assert never.reason == "permanent"


@scene
async def test_the_soft_limit_is_raised_inside() -> None:
    async with hf, hf.worker():
        assert await (await app.tidy.enqueue()).result(timeout=PATIENCE_S) == "tidied up"


@scene
async def test_progress_is_reported_and_jobs_are_enqueued_from_inside() -> None:
    async with hf, hf.worker():
        job = await app.wait.enqueue()
        info = await until(job, lambda info: info.progress is not None)
        assert info.progress is not None
        assert (info.progress.done, info.progress.total) == (1, 2)
        assert info.worker == str((await hf.workers.list())[0].id)
        await job.cancel()
        more = UUID(await (await app.enqueue_more.enqueue()).result(timeout=PATIENCE_S))
        assert (await until(_handle(more), State.SUCCEEDED)).result == 42


@scene
async def test_hooks_providers_and_middleware_are_there_as_in_a_worker() -> None:
    async with hf, hf.worker():
        [pid, made, lived, started_in] = await (await app.provided.enqueue()).result(timeout=PATIENCE_S)
        [inner, outer] = await (await app.surrounded.enqueue()).result(timeout=PATIENCE_S)
    assert pid != os.getpid()
    assert (made, lived, started_in) == (f"made in {pid}", f"lived in {pid}", [pid])
    assert inner == outer == pid


@scene
async def test_a_task_that_nobody_knows_is_parked_as_ever() -> None:
    async with hf, hf.worker():
        info = await until(await hf.enqueue("nobody.knows"), State.PARKED)
    assert info.reason is not None


@scene
async def test_a_breaker_hears_of_runs_in_other_processes_and_of_those_that_had_to_be_killed() -> None:
    async with hf:
        heard = Heard(hf, BreakerOpened, BreakerClosed)
        async with hf.worker():
            await until(await app.charge.enqueue(True), State.DEAD)
            assert (await heard.next(BreakerOpened)).breaker == "bank"
            probe = await app.charge.enqueue(False)
            assert await probe.result(timeout=PATIENCE_S) == "charged"
            assert (await heard.next(BreakerClosed)).breaker == "bank"
            await until(await app.hang.enqueue(), State.DEAD)
            assert (await heard.next(BreakerOpened)).breaker == "slow bank"
