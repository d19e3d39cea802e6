"""Several processes on one file: a worker elsewhere runs what is enqueued here, and wakes without being polled."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.integration.scene import PATIENCE_S, scene, until, url_of

from holdfast import Holdfast, JobFailed
from holdfast.core.state import State

#: Nothing here may depend on looking again after a while.
NEVER_S = 60

PROGRAM = f"""
import asyncio, os, sys
from holdfast import Holdfast

hf = Holdfast(sys.argv[1], poll_s={NEVER_S}, grace_s={NEVER_S})

@hf.task(name="pid")
async def pid() -> int:
    return os.getpid()

@hf.task(name="long")
async def long(path: str) -> str:
    while not os.path.exists(path):
        await asyncio.sleep(0.005)
    return "done"

if __name__ == "__main__":
    hf.run_worker(concurrency=2)
"""


@asynccontextmanager
async def elsewhere(directory: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """A worker in a process of its own."""
    program = directory / "program.py"
    program.write_text(PROGRAM)
    process = await asyncio.create_subprocess_exec(sys.executable, str(program), url_of(directory / "jobs.db"))
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@scene
async def test_an_idle_worker_elsewhere_wakes_for_a_job_enqueued_here(tmp_path: Path) -> None:
    hf = Holdfast(url_of(tmp_path / "jobs.db"), poll_s=NEVER_S)
    async with hf, elsewhere(tmp_path) as other:
        for _ in range(5):  # after each of them it has nothing to do, and waits for a hint
            job = await hf.enqueue("pid")
            assert await job.result(timeout=PATIENCE_S) == other.pid != os.getpid()
        other.send_signal(signal.SIGTERM)
        assert await other.wait() == 0
        assert await hf.workers.list() == []


@scene
async def test_the_first_signal_drains_and_the_second_hands_back_at_once(tmp_path: Path) -> None:
    hf = Holdfast(url_of(tmp_path / "jobs.db"), poll_s=0.05)
    drained, cut = tmp_path / "drained", tmp_path / "cut"
    async with hf:
        async with elsewhere(tmp_path) as other:
            job = await hf.enqueue("long", str(drained))
            await until(job, State.RUNNING)
            other.send_signal(signal.SIGTERM)
            drained.touch()
            assert await other.wait() == 0
            assert await job.result(timeout=PATIENCE_S) == "done"
        async with elsewhere(tmp_path) as other:
            job = await hf.enqueue("long", str(cut))
            await until(job, State.RUNNING)
            other.send_signal(signal.SIGTERM)
            other.send_signal(signal.SIGINT)
            assert await other.wait() == 0
            info = await job.info()
    assert (info.state, info.attempt) == (State.READY, 0)
    assert [run.cause for run in info.attempts] == ["handed_back"]


@scene
async def test_a_job_cancelled_here_stops_there_and_one_that_fails_there_is_told_here(tmp_path: Path) -> None:
    hf = Holdfast(url_of(tmp_path / "jobs.db"), poll_s=0.05)
    async with hf, elsewhere(tmp_path):
        long = await hf.enqueue("long", str(tmp_path / "never"))
        await until(long, State.RUNNING)
        await long.cancel("enough")
        assert (await until(long, State.CANCELLED)).reason == "enough"
        wrong = await hf.enqueue("pid", "one too many")
        with pytest.raises(JobFailed, match="InvalidArguments: pid: argument 1: Unexpected positional argument"):
            await wrong.result(timeout=PATIENCE_S)
