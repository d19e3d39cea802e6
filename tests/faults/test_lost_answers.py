"""What was committed although its answer was lost: E3 enqueue, C3 claim, R3 outcome, H1 heartbeat."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from pathlib import Path

from tests.campaign.child import until
from tests.faults.trial import PATIENCE_S, Trial
from tests.history.records import RunEvent

from holdfast.core.cause import Cause
from holdfast.core.state import State
from holdfast.runtime.failpoints import FailpointHit, arm, armed, disarm, hits
from holdfast.telemetry.events import WorkerLeaseLost, WorkerStarted


def every(nth: int) -> Callable[[], None]:
    """An action that strikes at every n-th pass."""
    passes = count(1)

    def strike() -> None:
        if next(passes) % nth == 0:
            raise FailpointHit(f"every {nth}")

    return strike


def test_enqueues_whose_answers_are_lost_make_one_job_each(place: Path) -> None:
    async def run() -> None:
        async with Trial(place) as trial:
            arm("insert_jobs.committed", every(3), times=None)
            handles = {}
            for n in range(0, 180, 4):  # one by one, a few at once, with keys, in bulk
                handles[n] = await trial.work.enqueue(n)
                pair = await asyncio.gather(trial.work.enqueue(n + 1), trial.work.options(key=f"k{n}").enqueue(n + 2))
                handles[n + 1], handles[n + 2] = pair
                [handles[n + 3]] = await trial.hf.enqueue_many([trial.work.request(n + 3)])
            assert hits("insert_jobs.committed") > 180
            disarm("insert_jobs.committed")
            for handle in handles.values():
                trial.accepted(handle)
            assert trial.glance.counts()["job"] == len(handles)
            async with trial.hf.worker():
                for n, handle in handles.items():
                    assert await handle.result(timeout=PATIENCE_S) == n
            report = trial.judged()
            assert report.sound, report
            assert report.runs == len(handles)

    asyncio.run(run())


def test_a_claim_whose_answer_is_lost_is_found_and_handed_back(place: Path) -> None:
    async def run() -> None:
        async with Trial(place) as trial:
            handles = [await trial.enqueue(trial.work, n) for n in range(3)]
            with armed("claim_jobs.committed", "fail"):
                async with trial.hf.worker(concurrency=100):  # enough for the first claim to reach every lane
                    assert [await handle.result(timeout=PATIENCE_S) for handle in handles] == [0, 1, 2]
                assert hits("claim_jobs.committed") > 1
            for handle in handles:
                assert await trial.causes(handle.id) == ["claim_lost"]
                assert (await handle.info()).attempt == 1  # what never ran is not charged
            assert trial.of(WorkerLeaseLost) == []
            report = trial.judged()
            assert report.sound, report
            assert report.runs == len(handles)

    asyncio.run(run())


def test_an_outcome_whose_answer_is_lost_is_not_run_again(place: Path) -> None:
    async def run() -> None:
        async with Trial(place) as trial:
            arm("settle_jobs.committed", every(3), times=None)  # PostgreSQL passes it twice for a mixed batch
            async with trial.hf.worker():
                done = [await trial.enqueue(trial.work, n) for n in range(10)]
                retried = [await trial.enqueue(trial.fail_once, n) for n in range(10)]
                for handles in (done, retried):
                    assert [await handle.result(timeout=PATIENCE_S) for handle in handles] == list(range(10))
            assert hits("settle_jobs.committed") >= 4
            assert [await trial.causes(handle.id) for handle in retried] == [["retry"]] * 10
            report = trial.judged()
            assert report.sound, report
            assert report.runs == 10 + 20
            assert report.extra_runs == {"retry": 10}

    asyncio.run(run())


def test_a_lease_is_kept_through_a_few_failed_heartbeats(place: Path) -> None:
    async def run() -> None:
        async with Trial(place, lease_s=2.0) as trial, trial.hf.worker():
            handle = await trial.enqueue(trial.hold, 7)
            await trial.started()
            for moment in ("begin", "inside", "committed"):
                point = f"renew_worker.{moment}"
                with armed(point, "fail", times=2):
                    await until(lambda p=point: hits(p) >= 3, within_s=PATIENCE_S, what="a heartbeat after the failed")
            trial.release()
            assert await handle.result(timeout=PATIENCE_S) == 7
            assert trial.of(WorkerLeaseLost) == []
            assert len(trial.of(WorkerStarted)) == 1
            report = trial.judged()
            assert report.sound, report
            assert report.runs == 1

    asyncio.run(run())


def test_a_worker_that_cannot_renew_stops_its_jobs_and_starts_over(place: Path) -> None:
    async def run() -> None:
        async with Trial(place) as trial, trial.hf.worker():
            handle = await trial.enqueue(trial.hold, 7)
            await trial.started()
            with armed("renew_worker.begin", "fail", times=None):
                await until(lambda: trial.runs(RunEvent.END), within_s=PATIENCE_S, what="the run to be stopped")
            [stopped] = trial.runs(RunEvent.END)
            assert stopped.outcome == "CancelledError"
            trial.release()
            assert await handle.result(timeout=PATIENCE_S) == 7
            assert await trial.causes(handle.id) == ["lease_expired"]
            report = trial.judged()
            assert report.sound, report

    asyncio.run(run())


def test_a_worker_that_was_declared_dead_goes_on_under_a_new_identity(place: Path) -> None:
    async def run() -> None:
        async with Trial(place) as trial, trial.hf.worker():
            handle = await trial.enqueue(trial.hold, 7)
            await trial.started()
            [before] = await trial.hf.workers.list()
            other = trial.where.store()
            await other.open()
            await other.hand_back_worker(before.id, cause=Cause.WORKER_LOST, why="said so")
            await other.close()
            await trial.heard(WorkerStarted, 2)
            [after] = await trial.hf.workers.list()
            assert after.id != before.id
            await trial.started(2)
            trial.release()
            assert await handle.result(timeout=PATIENCE_S) == 7
            info = await handle.info()
            assert (info.state, info.worker) == (State.SUCCEEDED, str(after.id))
            assert await trial.causes(handle.id) == ["worker_lost"]
            report = trial.judged()
            assert report.sound, report
            assert report.runs == 2

    asyncio.run(run())
