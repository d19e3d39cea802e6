"""How a run is asked to stop: the first reason counts, but a lost lease overrules it."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from holdfast.core.ids import new_job_id
from holdfast.core.job import ClaimedJob
from holdfast.worker.run import Interruption, Run


def new_run() -> Run:
    job = ClaimedJob(new_job_id(), 1, 1, "work", "default", 5, b"", None, None, "", False)
    return Run(job, uuid4())


def test_the_first_reason_counts() -> None:
    run = new_run()
    run.interrupt(Interruption.CANCEL)
    run.interrupt(Interruption.TIMEOUT)
    assert run.interruption is Interruption.CANCEL


@pytest.mark.parametrize("first", Interruption)
def test_a_lost_lease_overrules_every_other_reason(first: Interruption) -> None:
    run = new_run()
    run.interrupt(first)
    run.interrupt(Interruption.LEASE_LOST)
    assert run.interruption is Interruption.LEASE_LOST


def test_only_user_code_on_the_loop_is_cancelled_and_each_time_it_is_asked() -> None:
    async def main() -> None:
        run = new_run()
        asked: list[int] = []
        started, done = asyncio.Event(), asyncio.Event()

        async def deaf() -> None:
            started.set()
            while len(asked) < 2:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    asked.append(1)
            done.set()

        run.interrupt(Interruption.TIMEOUT)  # nothing to cancel yet
        run.user_code = asyncio.create_task(deaf())
        await started.wait()
        run.interrupt(Interruption.TIMEOUT)
        await asyncio.sleep(0)
        run.interrupt(Interruption.TIMEOUT)
        await done.wait()

    asyncio.run(main())
