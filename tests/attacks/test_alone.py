"""Jobs that must run alone: what kills its worker is found, its neighbours are not, and nobody else stands still."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

from tests.campaign.child import Child
from tests.integration.scene import PATIENCE_S, by_hand, scene, until, url_of

from holdfast import Holdfast, JobHandle
from holdfast.core.state import State


@scene
async def test_poison_dies_and_its_innocent_neighbours_live(tmp_path: Path) -> None:
    """After two deaths all five had to run alone, but one claim took all five: each death was charged to all."""
    database = tmp_path / "jobs.db"
    hf = Holdfast(url_of(database), poll_s=0.05)
    async with hf:
        poison = await hf.enqueue("poison")
        innocents = [await hf.enqueue("innocent", n) for n in range(4)]
        crew = Child("tests.attacks.elsewhere", "crew", database, log=tmp_path / "crew.log")
        try:
            end = await until(poison, lambda info: info.state.ended)
            assert [await job.result(timeout=PATIENCE_S) for job in innocents] == list(range(4))
            lost = [len((await job.info()).attempts) for job in innocents]
        finally:
            crew.kill()
    assert (end.state, end.reason) == (State.DEAD, "poison")
    assert min(lost) >= 2, "they were beside it often enough to be suspects"


def must_run_alone(database: Path, job: JobHandle[Any]) -> None:
    """As if two workers had died with it."""
    by_hand(database, "UPDATE ready SET losses = 2 WHERE job_id = ?", job.id.bytes)


@scene
async def test_a_lonely_job_that_is_stuck_does_not_stop_ordinary_work(tmp_path: Path) -> None:
    """A `def` job ran alone and never came back: the fetcher waited for the worker to be empty, for ever."""
    database = tmp_path / "jobs.db"
    hf = Holdfast(url_of(database), lease_s=1, poll_s=0.05)
    release = threading.Event()

    @hf.task(name="stuck", timeout=0.1)
    def stuck() -> None:
        release.wait(2 * PATIENCE_S)

    @hf.task(name="quick")
    async def quick(n: int) -> int:
        return n

    async with hf:
        lonely = await stuck.enqueue()
        must_run_alone(database, lonely)
        worker = hf.worker(concurrency=4)
        async with worker:
            await until(lonely, State.RUNNING)
            try:
                for n in range(3):
                    assert await (await quick.enqueue(n)).result(timeout=PATIENCE_S) == n
                assert (await lonely.info()).state is State.RUNNING
            finally:
                release.set()


@scene
async def test_a_long_neighbour_of_a_lonely_job_does_not_stop_ordinary_work(tmp_path: Path) -> None:
    """A job waited to run alone beside one that ran for hours: the worker claimed nothing for minutes at a time."""
    database = tmp_path / "jobs.db"
    hf = Holdfast(url_of(database), lease_s=1, poll_s=0.05)
    over = asyncio.Event()

    @hf.task(name="long")
    async def long() -> None:
        await over.wait()

    @hf.task(name="quick")
    async def quick(n: int) -> int:
        return n

    async with hf:
        beside = await long.enqueue()
        async with hf.worker(concurrency=4):
            await until(beside, State.RUNNING)
            await hf.queues.pause("default")
            lonely = await quick.enqueue(0)
            must_run_alone(database, lonely)
            await hf.queues.resume("default")
            for n in range(1, 6):  # the first of them shows the fetcher that the lonely one is there
                assert await (await quick.enqueue(n)).result(timeout=PATIENCE_S) == n
            assert (await lonely.info()).state is State.READY, "it has not run beside the long one"
            over.set()
