"""SIGTERM: what runs may end, what has not started goes back; a second one does not wait; losing the lease neither."""

from __future__ import annotations

import asyncio
from pathlib import Path
from signal import SIGTERM

import pytest
from tests.campaign.child import Child, tail_of, until
from tests.faults.pair import wherever
from tests.faults.test_alone import lose_twice
from tests.faults.test_worker_moments import victim
from tests.faults.trial import PATIENCE_S, Trial
from tests.history.records import RunEvent

from holdfast.core.cause import Cause
from holdfast.core.state import State
from holdfast.runtime.failpoints import arm
from holdfast.telemetry.events import JobStarted, WorkerDraining, WorkerLeaseLost, WorkerStopped
from holdfast.worker import session


async def _draining(child: Child) -> None:
    what = "claims nothing more"
    await until(lambda: what in tail_of(child.log), within_s=PATIENCE_S, what="the drain to begin", log=child.log)


def test_sigterm_lets_running_jobs_end_and_leaves_the_rest(place: Path) -> None:
    async def run() -> None:
        async with Trial(place) as trial:
            running = [await trial.enqueue(trial.hold, n) for n in range(4)]  # as many as it runs at once
            with victim(trial) as child:
                await trial.started(4)
                waiting = [await trial.enqueue(trial.work, n) for n in range(4)]
                child.signal(SIGTERM)
                await _draining(child)
                trial.release()
                assert await child.ended(within_s=PATIENCE_S) == 0, tail_of(child.log)
            assert [(await handle.info()).state for handle in running] == [State.SUCCEEDED] * 4
            assert [(await handle.info()).state for handle in waiting] == [State.READY] * 4
            assert await trial.hf.workers.list() == []
            report = trial.judged(quiescent=False)
            assert report.sound, report
            assert report.runs == 4

    asyncio.run(run())


def test_a_second_sigterm_hands_running_jobs_back_at_once(place: Path) -> None:
    async def run() -> None:
        async with Trial(place) as trial:
            handles = [await trial.enqueue(trial.hold, n) for n in range(2)]
            with victim(trial) as child:
                await trial.started(2)
                child.signal(SIGTERM)
                await _draining(child)
                child.signal(SIGTERM)
                assert await child.ended(within_s=PATIENCE_S) == 0, tail_of(child.log)
                assert "Traceback" not in tail_of(child.log), tail_of(child.log)
            for handle in handles:
                info = await handle.info()
                assert (info.state, info.attempt) == (State.READY, 0)  # not charged
                assert await trial.causes(handle.id) == ["handed_back"]
            trial.release()
            async with trial.hf.worker():
                assert [await handle.result(timeout=PATIENCE_S) for handle in handles] == [0, 1]
            report = trial.judged()
            assert report.sound, report
            assert report.extra_runs == {"handed_back": 2}

    asyncio.run(run())


def test_hurry_does_not_wait_for_threads_for_the_whole_grace_period(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_STOP_WAIT_S", 0.1)

    async def run() -> None:
        async with Trial(place, grace_s=3600.0) as trial:
            handle = await trial.enqueue(trial.hold_in_thread, 7)
            worker = trial.hf.worker()
            await worker.start()
            await trial.started()
            stopping = asyncio.create_task(worker.stop())
            await trial.heard(WorkerDraining)
            worker.stop_now()
            await asyncio.wait_for(stopping, PATIENCE_S)
            assert await trial.causes(handle.id) == ["handed_back"]
            trial.release()
            await until(lambda: trial.runs(RunEvent.END), within_s=PATIENCE_S, what="the thread to end")
            async with trial.hf.worker():
                assert await handle.result(timeout=PATIENCE_S) == 7
            report = trial.judged()
            assert report.sound, report

    asyncio.run(run())


def test_what_is_claimed_while_the_worker_is_told_to_stop_is_handed_back_unstarted(place: Path) -> None:
    async def run() -> None:
        async with Trial(place) as trial:
            handles = [await trial.enqueue(trial.work, n) for n in range(3)]
            loop, worker = asyncio.get_running_loop(), trial.hf.worker(concurrency=100)

            async def stop_in_the_middle_of_the_claim() -> None:
                loop.call_soon_threadsafe(worker.ask_stop)
                # The worker's own word is not enough: it takes some turns of the loop to reach the fetcher.
                is_told = lambda: worker.session and worker.session._fetcher.stopping.is_set()  # noqa: E731
                await until(is_told, within_s=PATIENCE_S, what="the fetcher to be told")

            arm("claim_jobs.committed", wherever(stop_in_the_middle_of_the_claim))
            await worker.start()
            await worker.wait_ended()
            assert trial.runs() == []
            assert trial.of(JobStarted) == []
            for handle in handles:
                info = await handle.info()
                assert (info.state, info.attempt) == (State.READY, 0)
                assert await trial.causes(handle.id) == ["handed_back"]
            report = trial.judged(quiescent=False)
            assert report.sound, report

    asyncio.run(run())


def test_a_worker_that_loses_its_lease_while_it_drains_stops_its_jobs(place: Path) -> None:
    async def run() -> None:
        async with Trial(place, grace_s=3600.0) as trial:
            handle = await trial.enqueue(trial.hold, 7)
            worker = trial.hf.worker()
            await worker.start()
            await trial.started()
            [identity] = await trial.hf.workers.list()
            stopping = asyncio.create_task(worker.stop())
            await trial.heard(WorkerDraining)
            other = trial.where.store()
            await other.open()
            await other.hand_back_worker(identity.id, cause=Cause.WORKER_LOST, why="said so")
            await other.close()
            await asyncio.wait_for(stopping, PATIENCE_S)
            assert len(trial.of(WorkerLeaseLost)) == 1
            assert len(trial.of(WorkerStopped)) == 1
            assert [line.outcome for line in trial.runs(RunEvent.END)] == ["CancelledError"]
            assert (await handle.info()).state is State.READY
            report = trial.judged(quiescent=False)
            assert report.sound, report

    asyncio.run(run())


def test_jobs_that_must_run_alone_do_not_hold_up_a_drain(place: Path) -> None:
    """They wait for a neighbour to end; the worker must not wait with them past its grace period."""

    async def run() -> None:
        async with Trial(place, grace_s=0.0) as trial:
            lonely = [await trial.enqueue(trial.work, n) for n in range(3)]
            await lose_twice(trial, [handle.id for handle in lonely])
            held = await trial.enqueue(trial.hold, 7)
            worker = trial.hf.worker(concurrency=100)
            await worker.start()
            await trial.started()
            counts = trial.glance.counts()
            assert (counts["active"], counts["ready"]) == (1, 3), "they wait until the neighbour has ended"
            await asyncio.wait_for(worker.stop(), PATIENCE_S)
            assert [line.job_id for line in trial.runs()] == [str(held.id)]
            for handle in [*lonely, held]:
                assert (await handle.info()).state is State.READY
            trial.release()
            async with trial.hf.worker():
                assert [await handle.result(timeout=PATIENCE_S) for handle in [*lonely, held]] == [0, 1, 2, 7]
            report = trial.judged()
            assert report.sound, report
            assert report.overlapping_runs == 0

    asyncio.run(run())
