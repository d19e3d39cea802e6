"""One timer for the limits of all runs: each is ended at its own, and at nobody else's."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from holdfast.core.ids import new_job_id
from holdfast.core.job import ClaimedJob
from holdfast.telemetry.hub import Telemetry
from holdfast.worker.hard_limit import HardLimits
from holdfast.worker.run import Interruption, Run

PATIENCE_S = 30.0
LONG_S = 3600.0
SHORT_S = 0.005


def begin(limits: HardLimits, limit_s: float | None) -> Run:
    """A run whose user code waits for ever."""
    job = ClaimedJob(new_job_id(), 1, 1, "work", "default", 5, b"", None, None, "", False)
    run = Run(job, uuid4())
    run.task = run.user_code = asyncio.get_running_loop().create_task(asyncio.Event().wait())
    limits.start(run, limit_s)
    return run


async def struck(run: Run) -> None:
    """Wait until it is ended."""
    assert run.task is not None
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(PATIENCE_S):
            await run.task
    assert run.interruption is Interruption.TIMEOUT


def tidy_up(*runs: Run) -> None:
    for run in runs:
        assert run.task is not None
        run.task.cancel()


def test_a_limit_that_passes_sooner_than_those_begun_before_it_is_not_missed() -> None:
    async def scene() -> None:
        limits = HardLimits(Telemetry())
        patient, unlimited = begin(limits, LONG_S), begin(limits, None)
        await struck(begin(limits, SHORT_S))
        assert patient.interruption is unlimited.interruption is None
        tidy_up(patient, unlimited)

    asyncio.run(scene())


def test_the_timer_of_a_run_that_has_ended_goes_on_to_the_next() -> None:
    async def scene() -> None:
        limits = HardLimits(Telemetry())
        quick = begin(limits, SHORT_S)
        slow = begin(limits, 4 * SHORT_S)
        limits.end(quick)
        await struck(slow)
        assert quick.interruption is None, "it ended before its limit"
        tidy_up(quick)

    asyncio.run(scene())


def test_runs_whose_limits_pass_together_are_ended_together() -> None:
    async def scene() -> None:
        limits = HardLimits(Telemetry())
        for run in [begin(limits, SHORT_S) for _ in range(10)]:
            await struck(run)

    asyncio.run(scene())
