"""A process whose heartbeat stops is ended before its lease is."""

from __future__ import annotations

import signal
from collections.abc import Callable

from tests.integration.scene import scene
from tests.supervision.crew import Crew, manned

MakeCrew = Callable[..., Crew]


@scene
async def test_a_stopped_process_is_ended_and_its_jobs_run_again(make_crew: MakeCrew) -> None:
    async with manned(make_crew(lease_s=2.0)) as crew:
        job = await crew.enqueue("hold", "go")
        [first] = await crew.until_noted("holds go")
        crew.kill(first.pid, signal.SIGSTOP)
        [_, again] = await crew.until_noted("holds go", 2)
        assert again.pid != first.pid
        crew.let_go("go")
        assert await crew.result(job) == again.pid
        [attempt] = (await job.info()).attempts
        assert attempt.cause == "worker_lost", "the supervisor was quicker than the end of the lease"
        assert "no sign of life" in str(attempt.error)


@scene
async def test_code_that_stops_all_threads_is_ended(make_crew: MakeCrew) -> None:
    async with manned(make_crew(lease_s=2.0)) as crew:
        job = await crew.enqueue("keeps_the_gil_for_ever")
        await crew.result(job)
        [attempt] = (await job.info()).attempts
        assert (attempt.cause, "no sign of life" in str(attempt.error)) == ("worker_lost", True)
