"""A claim whose answer comes when the lease is known to be lost starts nothing: others may have the jobs by then."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.faults.trial import PATIENCE_S, Trial

from holdfast.runtime.failpoints import armed


def test_what_was_claimed_under_a_lost_lease_is_not_started(place: Path) -> None:
    async def run() -> None:
        async with Trial(place) as trial:
            worker = trial.hf.worker()
            handle = await trial.enqueue(trial.work, 7)

            loop = asyncio.get_running_loop()

            def lose() -> None:
                """As the heartbeat's thread does; the loop hears of it after the claim's answer."""
                session = worker.session
                assert session is not None
                session._heartbeat.lost = True
                loop.call_soon_threadsafe(loop.call_later, 0.1, session._lose)

            with armed("claim_jobs.committed", lose):
                async with worker:
                    assert await handle.result(timeout=PATIENCE_S) == 7
            assert await trial.causes(handle.id) == ["lease_expired"]
            report = trial.judged()
            assert report.sound, report
            assert report.runs == 1, "not by whoever had lost the lease"

    asyncio.run(run())
