"""A `def` task that never ends keeps its thread, and only that."""

from __future__ import annotations

import threading

from tests.integration.scene import PATIENCE_S, Heard, scene

from holdfast import Holdfast
from holdfast.telemetry.events import JobStarted

JOBS = 3


@scene
async def test_jobs_that_wait_behind_a_hung_thread_run_elsewhere() -> None:
    """They were claimed by a worker whose only thread hung, and waited there for ever, beside an idle worker."""
    hf = Holdfast(":memory:", lease_s=5, poll_s=0.05, grace_s=0.0)
    release = threading.Event()

    @hf.task(name="hang", timeout=0.1)
    def hang() -> None:
        release.wait(2 * PATIENCE_S)

    @hf.task(name="quick", timeout=0.2)
    def quick(n: int) -> int:
        return n

    async with hf:
        heard = Heard(hf, JobStarted)
        try:
            async with hf.worker(concurrency=10, threads=1):
                await hang.enqueue()
                assert (await heard.next(JobStarted)).task == "hang"
                jobs = await hf.enqueue_many([quick.request(n) for n in range(JOBS)])
                hung = {(await heard.next(JobStarted)).worker for _ in jobs}
                async with hf.worker(concurrency=10, threads=JOBS):
                    assert [await job.result(timeout=PATIENCE_S) for job in jobs] == list(range(JOBS))
                    causes = [[attempt.cause for attempt in (await job.info()).attempts] for job in jobs]
                release.set()
        finally:
            release.set()
    assert len(hung) == 1
    assert all(set(each) == {"handed_back"} for each in causes), causes
