"""A queue's budget of retries in a worker: over its share they wait longer, they are all there, and it is told."""

from __future__ import annotations

import asyncio

from tests.integration.scene import PATIENCE_S, Heard, gone, scene

from holdfast import Holdfast, RetryPolicy
from holdfast.core.retry_budget import FREE
from holdfast.core.state import State
from holdfast.telemetry.events import QueueRetriesEased, QueueRetriesStretched

AT_ONCE = RetryPolicy(max_attempts=3, base=0, backoff="fixed")


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
        infos = [await job.info() for job in jobs]
        runs, looks = 0, 0
        for info in infos:
            put_off = [run for run in info.attempts if run.error and "retry budget of queue bank" in run.error.message]
            assert {run.cause for run in put_off} <= {"snooze"}
            runs, looks = runs + len(info.attempts) - len(put_off), looks + len(put_off)
            assert info.attempt == len(info.attempts) - len(put_off), "a look costs no attempt"
            assert info.error is not None
            assert info.error.type == "ConnectionRefusedError", "nor does it hide the error"
        assert looks > 0
        # One fifth of all runs, ten at once, and ten over a minute, which this does not last.
        assert runs - len(jobs) <= 0.2 * runs + 2 * FREE
        assert sum(info.state is State.SCHEDULED for info in infos) > 100
        assert {info.state for info in infos} <= {State.SCHEDULED, State.DEAD, State.READY}
