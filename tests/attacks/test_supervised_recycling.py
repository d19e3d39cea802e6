"""Processes that are replaced while their jobs go on: how many there can be."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

from tests.integration.scene import scene
from tests.supervision.crew import Crew, manned

MakeCrew = Callable[..., Crew]
LEAVES = "ends when its jobs have ended"


@scene
async def test_processes_that_wait_for_long_jobs_do_not_pile_up(make_crew: MakeCrew) -> None:
    """Every one that is worn out has a job that goes on: with a successor for each there would be ever more of them."""
    async with manned(make_crew(max_jobs=1, concurrency=8)) as crew:
        for number in (1, 2):
            await crew.enqueue("hold", f"go-{number}")
            [held] = await crew.until_noted(f"holds go-{number}")
            await crew.result(await crew.enqueue("add", 1, 2))
            await crew.until_logged(LEAVES)
        passed_s = time.monotonic() + 4.0  # that no third one is started cannot be heard
        await crew.until(lambda: time.monotonic() > passed_s or f"process {held.pid} {LEAVES}" in crew.log)
        assert len(crew.children()) == 2, crew.log
        crew.let_go("go-1")  # there is room again
        await crew.until_logged(f"process {held.pid} {LEAVES}")
        crew.let_go("go-2")


@scene
async def test_many_requests_for_new_code_start_no_process_each(make_crew: MakeCrew) -> None:
    async with manned(make_crew()) as crew:
        job = await crew.enqueue("hold", "go")
        [held] = await crew.until_noted("holds go")
        most = 0
        for _ in range(10):
            crew.send(signal.SIGHUP)
            asked_s = time.monotonic() + 0.1  # so that each of them is heard: the next one would be taken for the same
            await crew.until(lambda until_s=asked_s: time.monotonic() > until_s)
            most = max(most, len(crew.children()))
        assert most <= 3, "the worker, its successor, and one that is not wanted any more"
        await crew.until_logged(f"process {held.pid} {LEAVES}")
        crew.let_go("go")
        assert await crew.result(job) == held.pid


@scene
async def test_a_process_for_lonely_jobs_gets_new_code_as_others_do(make_crew: MakeCrew) -> None:
    async with manned(make_crew()) as crew:
        job = await crew.enqueue("hold_alone", "go")
        [alone] = await crew.until_noted("holds go")
        crew.send(signal.SIGHUP)
        await crew.until_logged(f"process {alone.pid} {LEAVES}: the code is loaded anew")
        crew.let_go("go")
        assert await crew.result(job) == alone.pid
