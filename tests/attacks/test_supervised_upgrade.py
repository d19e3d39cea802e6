"""New code while jobs come in without a pause: nothing is lost, cut short, charged or run twice."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import Callable

import pytest
from tests.integration.scene import scene
from tests.supervision.crew import Crew, manned

from holdfast import JobHandle

MakeCrew = Callable[..., Crew]


@pytest.mark.parametrize("kills", [False, True], ids=["in peace", "while processes are killed"])
@scene
async def test_new_code_under_load(make_crew: MakeCrew, kills: bool) -> None:
    async with manned(make_crew(concurrency=4, spares=1), "--processes", "2") as crew:
        await crew.until_logged("started, ", 2)
        jobs: list[JobHandle[int]] = []
        done = asyncio.Event()

        async def produce() -> None:
            while not done.is_set():
                jobs.append(await crew.enqueue("add", len(jobs), 1))
                await asyncio.sleep(0.005)

        producing = asyncio.create_task(produce())
        old = set(crew.children())
        crew.send(signal.SIGHUP)
        if kills:
            crew.kill(min(old))
        await crew.until(lambda: not old & set(crew.children()))
        done.set()
        await producing
        for number, job in enumerate(jobs):
            assert await crew.result(job) == number + 1
        again = {str(job.id): [run.cause for run in (await job.info()).attempts] for job in jobs}
        ran = Counter(run.job for run in crew.noted("added"))
    assert len(jobs) > 20
    assert set(ran) == set(again), "all of them, and nothing else"
    # A claim that is answered when its process is to leave goes back before it has begun.
    causes = {cause for causes in again.values() for cause in causes}
    assert causes <= ({"worker_lost", "handed_back"} if kills else {"handed_back"})
    assert kills or set(ran.values()) == {1}, "nothing is cut short"
    unexplained = {job: times for job, times in ran.items() if times > 1 + len(again[job])}
    assert unexplained == {}
