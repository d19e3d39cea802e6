"""A task that takes its process down is found out: it runs again uncharged, and is poison after the third time."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest
from tests.integration.scene import PATIENCE_S, Heard, scene, until
from tests.isolation import app
from tests.isolation.app import hf

from holdfast import RetryPolicy
from holdfast.core.state import State
from holdfast.telemetry.events import Event, JobCrashed

WAYS = {
    "exit": "its process exited with code 3",
    "SIGKILL": "its process was killed by signal 9 (SIGKILL)",
    "SIGSEGV": "its process was killed by signal 11 (SIGSEGV)",
    "hang up": "its process exited with code 1",
    "babble": "its process answered with something else than one line of JSON below 7340032 bytes: "
    "Expecting value: line 1 column 1 (char 0)",
    "lie": "its process answered with nonsense: not an answer: {'ended': 'retry', 'delay_s': 'soon'}",
}


@pytest.mark.parametrize("how", WAYS)
@scene
async def test_three_crashes_are_poison_with_the_causes_on_record(how: str, tmp_path: Path) -> None:
    async with hf:
        heard = Heard(hf, JobCrashed)
        async with hf.worker(isolates=2):
            neighbour = await app.until_there.enqueue(str(tmp_path / "go"))
            await until(neighbour, lambda info: info.stage is not None)
            here = await app.until_there_in_worker.enqueue(str(tmp_path / "go"))
            info = await until(await app.die.enqueue(how), State.DEAD)
            (tmp_path / "go").touch()
            for job in (here, neighbour):
                assert await job.result(timeout=PATIENCE_S) == "there"
                assert (await job.info()).attempts == ()
            told = [await heard.next(JobCrashed) for _ in range(3)]
    assert info.reason == "poison"
    assert [(run.number, run.cause, run.error and run.error.message) for run in info.attempts] == [
        (1, "worker_lost", WAYS[how])
    ] * 3
    assert info.error is not None
    assert info.error.message == f"its process died 3 times while it ran alone; last: {WAYS[how]}"
    assert [event.why for event in told] == [WAYS[how]] * 3


@scene
async def test_a_process_that_dies_before_it_begins_is_held_against_nobody() -> None:
    async with hf:
        crashed: list[Event] = []
        hf.telemetry.attach(crashed.append, only=(JobCrashed,))
        async with hf.worker(isolates=1) as worker:
            pid = await (await app.pid.enqueue()).result(timeout=PATIENCE_S)
            os.kill(pid, signal.SIGSTOP)  # it will not hear of the job
            job = await app.add.enqueue(1)
            while worker._isolates._idle:
                await asyncio.sleep(0.001)
            os.kill(pid, signal.SIGKILL)
            assert await job.result(timeout=PATIENCE_S) == 2
            info = await job.info()
    assert crashed == []
    assert [(run.cause, run.error and run.error.message) for run in info.attempts] == [
        ("handed_back", "its process was killed by signal 9 (SIGKILL) before it began")
    ]


@scene
async def test_a_crash_is_not_held_against_the_attempts() -> None:
    async with hf, hf.worker():
        job = await app.die.options(retry=RetryPolicy(max_attempts=1)).enqueue("exit")
        info = await until(job, State.DEAD)
    assert (info.reason, info.attempt) == ("poison", 1)


@scene
async def test_a_crashed_job_that_was_to_be_cancelled_is() -> None:
    async with hf, hf.worker(isolates=1):
        job = await app.swallow.enqueue()
        pid = int((await until(job, lambda info: info.stage is not None)).stage or 0)
        await job.cancel("enough")
        os.kill(pid, signal.SIGKILL)
        info = await until(job, State.CANCELLED)
    assert info.reason == "enough"
