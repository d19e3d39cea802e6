"""A worker from start to end: drain, stop now, two side by side, a lost lease, jobs that must run alone."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter
from pathlib import Path

import pytest
from tests.integration.scene import PATIENCE_S, Heard, by_hand, scene, url_of

from holdfast import ConfigError, Holdfast, current_job
from holdfast.core.state import State
from holdfast.runtime.failpoints import arm
from holdfast.telemetry.events import (
    JobLost,
    ServiceCrashed,
    WorkerDraining,
    WorkerLeaseLost,
    WorkerStarted,
    WorkerStopped,
)


@scene
async def test_a_worker_that_stops_lets_what_runs_end_and_claims_nothing_more() -> None:
    hf = Holdfast(":memory:")
    started, go_on = asyncio.Event(), asyncio.Event()
    ran: list[int] = []

    @hf.task
    async def work(n: int) -> int:
        ran.append(n)
        started.set()
        await go_on.wait()
        return n

    async with hf:
        heard = Heard(hf, WorkerDraining, WorkerStopped)
        worker = hf.worker(concurrency=1)
        await worker.start()
        running, waiting = await work.enqueue(1), await work.enqueue(2)
        await started.wait()
        stopping = asyncio.create_task(worker.stop())
        draining = await heard.next(WorkerDraining)
        assert draining.running == 1
        go_on.set()
        await stopping
        assert (await heard.next(WorkerStopped)).worker == draining.worker
        assert [(await job.info()).state for job in (running, waiting)] == [State.SUCCEEDED, State.READY]
        assert await hf.workers.list() == []
    assert ran == [1]


@scene
async def test_what_does_not_end_within_the_grace_period_is_handed_back_uncharged_to_its_old_place() -> None:
    hf = Holdfast(":memory:")
    started = asyncio.Event()
    order: list[str] = []

    @hf.task
    async def work(name: str) -> int:
        order.append(name)
        started.set()
        if len(order) == 1:
            await asyncio.Event().wait()
        return current_job().attempt

    async with hf:
        async with hf.worker(concurrency=1, grace_s=0.01):
            first, second = await work.enqueue("first"), await work.enqueue("second")
            await started.wait()
        info = await first.info()
        assert (info.state, info.attempt) == (State.READY, 0)
        assert [(run.cause, run.number) for run in info.attempts] == [("handed_back", 1)]
        async with hf.worker(concurrency=1):
            assert await first.result(timeout=PATIENCE_S) == 1
            assert await second.result(timeout=PATIENCE_S) == 1
    assert order == ["first", "first", "second"]


@scene
async def test_stop_now_ends_a_long_grace_period() -> None:
    hf = Holdfast(":memory:", grace_s=3600)
    started = asyncio.Event()

    @hf.task
    async def work() -> None:
        started.set()
        await asyncio.Event().wait()

    async with hf:
        heard = Heard(hf, WorkerDraining)
        worker = hf.worker()
        await worker.start()
        job = await work.enqueue()
        await started.wait()
        stopping = asyncio.create_task(worker.stop())
        await heard.next(WorkerDraining)
        worker.stop_now()
        await asyncio.wait_for(stopping, PATIENCE_S)
        assert (await job.info()).state is State.READY


@scene
async def test_stop_now_without_a_stop_before_does_not_wait_either() -> None:
    hf = Holdfast(":memory:", grace_s=3600)
    started = asyncio.Event()

    @hf.task
    async def work() -> None:
        started.set()
        await asyncio.Event().wait()

    async with hf:
        worker = hf.worker()
        await worker.start()
        job = await work.enqueue()
        await started.wait()
        worker.stop_now()
        assert await asyncio.wait_for(worker.wait_ended(), PATIENCE_S) is None
        assert [run.cause for run in (await job.info()).attempts] == ["handed_back"]


@scene
async def test_stop_now_does_not_wait_for_a_thread_that_cannot_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.worker.session._STOP_WAIT_S", 0.01)
    hf = Holdfast(":memory:", grace_s=3600)
    started, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    @hf.task
    def stuck() -> None:
        loop.call_soon_threadsafe(started.set)
        go_on.wait(PATIENCE_S)

    async with hf:
        heard = Heard(hf, WorkerDraining)
        worker = hf.worker()
        await worker.start()
        job = await stuck.enqueue()
        await started.wait()
        stopping = asyncio.create_task(worker.stop())
        await heard.next(WorkerDraining)
        worker.stop_now()
        await asyncio.wait_for(stopping, PATIENCE_S)
        assert (await job.info()).state is State.READY
        go_on.set()


@scene
async def test_a_cancellation_asked_for_while_the_worker_stops_is_kept() -> None:
    hf = Holdfast(":memory:", grace_s=3600)
    started, go_on = asyncio.Event(), asyncio.Event()

    @hf.task
    async def deaf() -> None:
        started.set()
        while not go_on.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await go_on.wait()
        raise ValueError("not done")

    async with hf:
        worker = hf.worker()
        await worker.start()
        job = await deaf.enqueue()
        await started.wait()
        await job.cancel("enough")
        stopping = asyncio.create_task(worker.stop())
        go_on.set()
        await stopping
        info = await job.info()
    assert (info.state, info.reason) == (State.CANCELLED, "enough")


@scene
async def test_two_workers_on_one_file_share_the_work_and_run_each_job_once(tmp_path: Path) -> None:
    url = url_of(tmp_path / "jobs.db")
    apps = [Holdfast(url, poll_s=0.05) for _ in range(2)]
    runs: Counter[int] = Counter()
    workers: Counter[str] = Counter()
    both = asyncio.Event()

    for hf in apps:

        @hf.task(name="work")
        async def work(n: int) -> None:
            runs[n] += 1
            workers[current_job().worker] += 1
            if len(workers) == 2:
                both.set()
            await both.wait()  # the first worker fills its slots and has to leave the rest to the other

    one, other = apps
    async with one, other, one.worker(concurrency=5), other.worker(concurrency=5):
        jobs = await one.enqueue_many([one.named("work").request(n) for n in range(100)])
        for job in jobs:
            await job.result(timeout=PATIENCE_S)
        assert all([(await job.info()).attempts == () for job in jobs])
    assert set(runs.values()) == {1}
    assert len(runs) == 100
    assert len(workers) == 2


@scene
async def test_a_worker_that_lost_its_lease_stops_its_jobs_and_starts_over_as_somebody_else(tmp_path: Path) -> None:
    file = tmp_path / "jobs.db"
    hf = Holdfast(url_of(file), lease_s=1)
    runs: list[str] = []
    ended: list[str] = []
    first = asyncio.Event()

    @hf.task
    async def work() -> str:
        runs.append(current_job().worker)
        if len(runs) == 1:
            first.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise
        return current_job().worker

    async with hf:
        heard = Heard(hf, WorkerStarted, WorkerLeaseLost, JobLost)
        async with hf.worker():
            old = (await heard.next(WorkerStarted)).worker
            job = await work.enqueue()
            await first.wait()
            by_hand(file, "DELETE FROM worker")
            assert (await heard.next(WorkerLeaseLost)).worker == old
            assert (await heard.next(JobLost)).job_id == job.id
            new = (await heard.next(WorkerStarted)).worker
            assert await job.result(timeout=PATIENCE_S) == str(new)
        info = await job.info()
    assert old != new
    assert runs == [str(old), str(new)]
    assert ended == ["cancelled"]
    assert (info.state, info.attempt, info.worker) == (State.SUCCEEDED, 1, str(new))
    assert [(run.cause, run.worker) for run in info.attempts] == [("lease_expired", str(old))]


@scene
async def test_what_a_run_returns_after_its_lease_is_lost_does_not_count(tmp_path: Path) -> None:
    file = tmp_path / "jobs.db"
    hf = Holdfast(url_of(file), lease_s=1)
    runs: list[str] = []
    first = asyncio.Event()

    @hf.task
    async def work() -> str:
        runs.append(current_job().worker)
        if len(runs) == 1:
            first.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return "stale"
        return "fresh"

    async with hf, hf.worker():
        job = await work.enqueue()
        await first.wait()
        by_hand(file, "DELETE FROM worker")
        assert await job.result(timeout=PATIENCE_S) == "fresh"
    assert len(set(runs)) == 2


@scene
async def test_a_worker_whose_fetcher_breaks_hands_back_and_starts_over() -> None:
    hf = Holdfast(":memory:")

    @hf.task
    async def ping() -> str:
        return "pong"

    async with hf:
        heard = Heard(hf, ServiceCrashed, WorkerStarted)
        async with hf.worker():
            old = (await heard.next(WorkerStarted)).worker
            arm("claim_jobs.inside", ZeroDivisionError("a bug"))
            job = await ping.enqueue()
            crash = await heard.next(ServiceCrashed)
            assert (crash.service, crash.error) == ("fetcher", "ZeroDivisionError: a bug")
            assert (await heard.next(WorkerStarted)).worker != old
            assert await job.result(timeout=PATIENCE_S) == "pong"


@scene
async def test_a_job_that_lost_its_process_twice_runs_without_neighbours(tmp_path: Path) -> None:
    file = tmp_path / "jobs.db"
    hf = Holdfast(url_of(file), lease_s=1)
    running: set[str] = set()
    beside: dict[str, set[str]] = {}
    gates: dict[str, asyncio.Event] = {}
    started: asyncio.Queue[str] = asyncio.Queue()

    @hf.task
    async def work(name: str) -> None:
        running.add(name)
        for each in running:
            beside.setdefault(each, set()).update(running - {each})
        gates[name] = asyncio.Event()
        started.put_nowait(name)
        await gates[name].wait()
        running.discard(name)

    async with hf:
        jobs = [await work.enqueue("long")]
        async with hf.worker(concurrency=10):
            assert await started.get() == "long"
            await hf.queues.pause("default")
            suspects = [await work.enqueue(f"suspect {n}") for n in range(2)]
            jobs += [await work.enqueue(f"other {n}") for n in range(2)]
            for suspect in suspects:
                by_hand(file, "UPDATE ready SET losses = 2 WHERE job_id = ?", suspect.id.bytes)
            await hf.queues.resume("default")
            # The others start; the suspects wait until nothing runs, longer than a lost claim would be noticed.
            assert {await started.get(), await started.get()} == {"other 0", "other 1"}
            await _heartbeats(hf, 4)
            for name in ("long", "other 0", "other 1"):
                gates[name].set()
            for _ in range(4):
                name = await started.get()
                if name.startswith("suspect"):
                    jobs.append(await work.enqueue(f"late, beside {name}"))
                    await _heartbeats(hf, 2)  # time enough to start it, for a worker that would
                gates[name].set()
            for job in (*jobs, *suspects):
                await job.result(timeout=PATIENCE_S)
        infos = [await suspect.info() for suspect in suspects]
    assert beside["suspect 0"] == beside["suspect 1"] == set()
    assert [(info.attempt, info.attempts) for info in infos] == [(1, ()), (1, ())]


async def _heartbeats(hf: Holdfast, count: int) -> None:
    """Wait for so many renewals of the one worker's lease."""
    async with asyncio.timeout(PATIENCE_S):
        for _ in range(count):
            [before] = await hf.workers.list()
            while (await hf.workers.list())[0].lease_until == before.lease_until:
                await asyncio.sleep(0)


@scene
async def test_settings_of_one_worker_are_its_own_and_checked() -> None:
    hf = Holdfast(":memory:", concurrency=3)
    async with hf:
        async with hf.worker(concurrency=5), hf.worker():
            assert sorted(worker.concurrency for worker in await hf.workers.list()) == [3, 5]
        with pytest.raises(ConfigError, match=r"^setting concurrency \(argument concurrency\): 0 is not a whole"):
            hf.worker(concurrency=0)
        with pytest.raises(ConfigError, match=r"no setting concurency \(in an argument\): did you mean concurrency\?"):
            hf.worker(concurency=1)


@scene
async def test_a_worker_that_is_told_to_stop_while_it_starts_leaves_no_lease(tmp_path: Path) -> None:
    hf = Holdfast(url_of(tmp_path / "jobs.db"))
    async with hf:
        worker = hf.worker()
        heard = Heard(hf, WorkerStopped)
        hf.telemetry.attach(lambda event: worker.ask_stop(), only=WorkerStarted)
        await worker.start()
        await worker.stop()
        await heard.next(WorkerStopped)
        assert await hf.workers.list() == []
