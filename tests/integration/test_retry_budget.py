"""A queue's budget of retries in a worker: over its share they wait longer, they are all there, and it is told."""

from __future__ import annotations

import asyncio

from tests.integration.scene import PATIENCE_S, Heard, gone, scene, until

from holdfast import Holdfast, JobInfo, RetryPolicy
from holdfast.core.cause import Cause
from holdfast.core.job import AttemptInfo
from holdfast.core.retry_budget import FREE
from holdfast.core.state import State
from holdfast.telemetry.events import QueueRetriesEased, QueueRetriesStretched

AT_ONCE = RetryPolicy(max_attempts=3, base=0, backoff="fixed")


def looks_at(info: JobInfo) -> list[AttemptInfo]:
    """What is on record of those that were in vain."""
    snoozed = [run for run in info.attempts if run.cause == Cause.SNOOZE]
    return [run for run in snoozed if run.error and "retry budget of queue bank" in run.error.message]


@scene
async def test_a_storm_is_put_off_and_nothing_is_lost_or_charged_for_it() -> None:
    hf = Holdfast(":memory:", queue={"bank": {"retry_budget": 0.2}})

    @hf.task(queue="bank", retry=AT_ONCE)
    async def charge() -> None:
        raise ConnectionRefusedError

    @hf.task(retry=AT_ONCE)
    async def other() -> None:
        raise ConnectionRefusedError

    async with hf:
        heard = Heard(hf, QueueRetriesStretched, QueueRetriesEased)
        free = await hf.enqueue_many([other.request() for _ in range(50)])
        jobs = await hf.enqueue_many([charge.request() for _ in range(200)])
        async with hf.worker():
            told = await heard.next(QueueRetriesStretched)
            assert (told.queue, told.percent) == ("bank", 20)
            async with asyncio.timeout(PATIENCE_S):
                for job in free:  # another queue has no budget: all its attempts are used up at once
                    async for info in job.events():
                        if info.state is State.DEAD:
                            break
            await gone(hf, State.READY)
            await gone(hf, State.RUNNING)
            # Who was given the last moment, by a forecast that took the burst for the rule: he is looked at in vain.
            last = max([await job.info() for job in jobs], key=lambda info: info.run_at or info.created_at)
            await until(next(job for job in jobs if job.id == last.id), lambda info: bool(looks_at(info)))
        infos = [await job.info() for job in jobs]
        runs = 0
        for info in infos:
            failed = [run for run in info.attempts if run.cause in (Cause.RETRY, Cause.DEAD)]
            assert info.attempt == len(failed), "a look costs no attempt"
            assert info.error is not None
            assert info.error.type == "ConnectionRefusedError", "nor does it hide the error"
            runs += len(failed)
        # One fifth of all runs, ten at once, and ten over a minute, which this does not last.
        assert runs - len(jobs) <= 0.2 * runs + 2 * FREE
        assert sum(info.state is State.SCHEDULED for info in infos) > 100
        assert {info.state for info in infos} <= {State.SCHEDULED, State.DEAD, State.READY}
