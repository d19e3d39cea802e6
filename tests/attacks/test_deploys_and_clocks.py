"""What changes around a running worker: other versions of the code, and the machine's clock."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from tests.integration.scene import PATIENCE_S, by_hand, scene, until, url_of

from holdfast import Holdfast
from holdfast.core.state import State
from holdfast.telemetry.events import JobParked


@scene
async def test_jobs_parked_by_an_old_worker_come_to_a_new_one_that_was_there_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unparking was done at a worker's start only: what old workers parked afterwards waited beside an idle new one."""
    monkeypatch.setattr("holdfast.upkeep.unparker._EVERY_S", 0.05)
    url = url_of(tmp_path / "jobs.db")
    old, new = Holdfast(url, poll_s=0.05), Holdfast(url, poll_s=0.05)

    @old.task(name="old.task")
    async def unwanted() -> None: ...

    @new.task(name="new.task")
    async def wanted(n: int) -> int:
        return n

    async with old, new:
        parked: list[object] = []
        old.telemetry.attach(parked.append, only=JobParked)
        async with new.worker(concurrency=4), old.worker(concurrency=4):
            jobs = [await wanted.enqueue(n) for n in range(10)]
            while not parked:  # until the old one has caught one of them
                jobs.append(await wanted.enqueue(0))
            for job in jobs:
                await job.result(timeout=PATIENCE_S)


@scene
async def test_a_job_that_was_parked_is_taken_by_who_knows_it_without_becoming_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It only became ready, for everybody: old workers, if they were quicker, had it again each time. Nothing is
    unparked here within the patience of this test."""
    monkeypatch.setattr("holdfast.upkeep.unparker._EVERY_S", 2 * PATIENCE_S)
    monkeypatch.setattr("holdfast.worker.fetcher._PARKED_EVERY_S", 0.05)
    url = url_of(tmp_path / "jobs.db")
    old, new = Holdfast(url, poll_s=0.05), Holdfast(url, poll_s=0.05)

    @old.task(name="old.task")
    async def unwanted() -> None: ...

    @new.task(name="new.task")
    async def wanted(n: int) -> int:
        return n

    async with old, new:
        parked: list[object] = []
        old.telemetry.attach(parked.append, only=JobParked)
        async with new.worker(concurrency=4), old.worker(concurrency=4), old.worker(concurrency=4):
            jobs = [await wanted.enqueue(n) for n in range(10)]
            while len(parked) < 10:
                jobs.append(await wanted.enqueue(0))
            for job in jobs:
                await job.result(timeout=PATIENCE_S)


@scene
async def test_a_parked_job_that_must_run_alone_is_unparked_by_who_knows_it(tmp_path: Path) -> None:
    """It cannot be taken beside others, so it has to become ready."""
    database = tmp_path / "jobs.db"
    hf, other = Holdfast(url_of(database), poll_s=0.05), Holdfast(url_of(database), poll_s=0.05)

    @hf.task(name="new.task")
    async def wanted(n: int) -> int:
        return n

    async with hf, other:
        async with other.worker():
            job = await wanted.enqueue(1)
            await until(job, State.PARKED)
        by_hand(database, "UPDATE parked SET losses = 2 WHERE job_id = ?", job.id.bytes)
        async with hf.worker():
            assert await job.result(timeout=PATIENCE_S) == 1


class ShiftedClock:
    """The machine's clocks, of which the wall clock can be set."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def now(self) -> float:
        return time.time() + self.ahead_s

    def monotonic(self) -> float:
        return time.monotonic()


@scene
async def test_a_clock_set_forward_by_an_hour_does_not_start_a_running_job_again() -> None:
    """All leases looked expired; the reaper held back, but renewing one was refused: all jobs were lost."""
    clock = ShiftedClock()
    hf = Holdfast(":memory:", lease_s=0.5, poll_s=0.05, clock=clock)
    runs: list[int] = []
    over = asyncio.Event()

    @hf.task(name="long")
    async def long() -> str:
        runs.append(1)
        await over.wait()
        return "once"

    @hf.task(name="quick")
    async def quick() -> str:
        return "too"

    async with hf, hf.worker():
        job = await long.enqueue()
        await until(job, State.RUNNING)
        for _ in range(2):
            clock.ahead_s += 3600
            async with asyncio.timeout(PATIENCE_S):
                while not any(each.lease_until.timestamp() > clock.now() for each in await hf.workers.list()):
                    await asyncio.sleep(0.01)
            assert await (await quick.enqueue()).result(timeout=PATIENCE_S) == "too"
        over.set()
        assert await job.result(timeout=PATIENCE_S) == "once"
        assert (await job.info()).attempts == ()
    assert runs == [1]
