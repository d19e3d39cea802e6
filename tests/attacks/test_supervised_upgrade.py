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

NOT_STARTED = "the worker was stopping, it was not started"


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
        again = {str(job.id): (await job.info()).attempts for job in jobs}
        ran = Counter(run.job for run in crew.noted("added"))
    assert len(jobs) > 20
    assert set(ran) == set(again), "all of them, and nothing else"
    lost = {job: [run for run in runs if run.cause == "worker_lost"] for job, runs in again.items()}
    # A process may have a claim under way when it is told to leave, whose jobs the store has leased to it by then: they
    # go back uncharged before they have begun, as `tests/faults/test_stopping.py` has it. That lease is no run.
    back = [run for job, runs in again.items() for run in runs if run not in lost[job]]
    assert {(run.cause, run.error and run.error.message) for run in back} <= {("handed_back", NOT_STARTED)}
    assert kills or not any(lost.values())
    unexplained = {job: times for job, times in ran.items() if times > 1 + len(lost[job])}
    assert unexplained == {}, "nothing is cut short, and only what was killed runs again"
