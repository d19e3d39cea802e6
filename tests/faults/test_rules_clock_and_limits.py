"""Rules 10 and 11: clocks that jump, tokens that grow over all processes, limits that hold between them."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest
from tests.faults.pair import meanwhile, pair
from tests.faults.trial import PATIENCE_S, Trial
from tests.history import Answer, ClientRecorder, Report, RunRecorder, check, load_client, load_runs

from holdfast.core.gates import SlotGate
from holdfast.core.settlement import HandBack, Succeed
from holdfast.core.state import State
from holdfast.runtime.clock import ManualClock
from holdfast.stores.base import Store
from holdfast.stores.health import StoreHealth
from holdfast.telemetry.events import ClockDisagrees, Event, WorkerLeaseLost
from holdfast.telemetry.hub import Telemetry
from holdfast.testing.contracts.arrange import (
    PLENTY,
    a_job,
    claim,
    enlist,
    finish,
    insert,
    resume,
    start,
    state,
    states,
)
from holdfast.upkeep.reaper import Reaper

LEASE_S = 10.0
HOUR_S = 3600.0

# ---------------------------------------------------------------- 10: clocks and tokens


@pytest.mark.parametrize("jump_s", [HOUR_S, -HOUR_S])
def test_rule_10_after_a_jump_of_the_clock_nothing_is_reaped_for_one_lease(jump_s: float, place: Path) -> None:
    async def run() -> None:
        async with pair(place) as (one, other, clock, _):
            events: list[Event] = []
            telemetry = Telemetry()
            telemetry.attach(events.append, only=ClockDisagrees)
            health = StoreHealth(clock=clock, telemetry=telemetry)
            reaper = Reaper(other, lease_s=LEASE_S, clock=clock, telemetry=telemetry, health=health)
            job = await start(one, worker=await enlist(one, lease_s=LEASE_S))
            await reaper.tick()
            clock.jump_wall(jump_s)
            for _ in range(9):
                await reaper.tick()
                clock.advance(1)
            assert await state(one, job.id) is State.RUNNING
            assert [event.difference_s for event in events if isinstance(event, ClockDisagrees)] == [jump_s]
            clock.advance(2 * LEASE_S + max(0.0, -jump_s))
            await reaper.tick()
            clock.advance(LEASE_S)
            await reaper.tick()
            assert await state(one, job.id) is State.READY

    asyncio.run(run())


def test_rule_10_a_clock_that_jumps_between_the_look_and_the_reaping_costs_no_lease(place: Path) -> None:
    async def run() -> None:
        async with pair(place) as (one, other, clock, _):
            telemetry = Telemetry()
            health = StoreHealth(clock=clock, telemetry=telemetry)
            reaper = Reaper(other, lease_s=LEASE_S, clock=clock, telemetry=telemetry, health=health)
            job = await start(one, worker=await enlist(one, lease_s=LEASE_S))
            await reaper.tick()

            async def jump() -> None:
                clock.jump_wall(HOUR_S)

            jumped = meanwhile("reap_workers", jump)
            await reaper.tick()
            assert jumped == [None], "after the reaper has looked at the clock"
            assert await state(one, job.id) is State.RUNNING

    asyncio.run(run())


def test_rule_10_a_worker_that_lives_keeps_its_jobs_through_a_jump_of_the_clock(tmp_path: Path) -> None:
    async def run() -> None:
        clock = ManualClock()
        async with Trial(tmp_path, clock=clock) as trial, trial.hf.worker():
            handle = await trial.enqueue(trial.hold, 7)
            await trial.started()
            clock.jump_wall(HOUR_S)
            later = await trial.enqueue(trial.work, 8)
            assert await later.result(timeout=PATIENCE_S) == 8
            trial.release()
            assert await handle.result(timeout=PATIENCE_S) == 7
            assert trial.of(WorkerLeaseLost) == []
            assert await trial.causes(handle.id) == []

    asyncio.run(run())


def test_rule_10_tokens_grow_over_all_processes(place: Path) -> None:
    async def run() -> None:
        async with pair(place) as (one, other, *_):
            await insert(one, *(a_job() for _ in range(30)))
            workers = [(store, await enlist(store)) for store in (one, other)]
            tokens: list[int] = []
            for n in range(12):
                store, worker = workers[n % 2]
                # The other one claims between this one's request and its transaction.
                between = meanwhile("claim_jobs", lambda n=n: claim(workers[1 - n % 2][0], workers[1 - n % 2][1], 1))
                jobs = await claim(store, worker, 2)
                tokens += [job.token for [first] in between for job in [first]] + sorted(job.token for job in jobs)
                await store.settle_jobs(worker, [HandBack(job.id, job.token, "again") for job in jobs])
            assert len(tokens) == 12 * 3
            assert all(before < after for before, after in pairwise(tokens)), tokens

    asyncio.run(run())


# ---------------------------------------------------------------- 11: limits


def test_rule_11_a_slot_is_taken_with_the_claim_and_freed_with_the_lease(place: Path) -> None:
    async def run() -> None:
        async with pair(place) as (one, other, clock, _):
            ids = await insert(one, *(a_job(gates=(SlotGate("one", 1),)) for _ in range(3)))
            first = await enlist(one, lease_s=LEASE_S)
            second = await enlist(other)
            taken = meanwhile("claim_jobs", lambda: claim(other, second))  # asked later, served first
            assert await claim(one, first) == []
            [[job]] = taken
            assert await states(one, *ids) == [State.RUNNING, State.PARKED, State.PARKED]
            await other.settle_jobs(second, [Succeed(job.id, job.token, None)])
            run = await resume(one, ids[1], worker=first)
            assert await claim(other, second) == []
            clock.advance(LEASE_S)  # whoever held it is gone without a word
            await other.reap_workers(limit=PLENTY)
            assert await states(one, *ids) == [State.SUCCEEDED, State.READY, State.READY]
            [job] = await claim(other, second)
            assert job.id == ids[2], "the slot went to the one that had waited for it"
            assert await state(one, run.id) is State.PARKED
            await other.settle_jobs(second, [Succeed(job.id, job.token, None)])
            await finish(other, await resume(other, run.id, worker=second))
            assert await states(one, *ids) == [State.SUCCEEDED] * 3
            assert not any(await one.sweep(limit=PLENTY))

    asyncio.run(run())


def test_rule_11_a_limit_holds_between_workers_that_race(place: Path) -> None:
    """Judged by the trail of leases, not by any counter."""
    clients, runs = place / "client", place / "runs"
    for each in (clients, runs):
        each.mkdir()

    async def work(store: Store) -> None:
        recorder = RunRecorder(runs)
        worker = await enlist(store)
        while any(found.ready or found.running or found.parked for found in await store.list_queues()):
            jobs = await claim(store, worker, 5)
            for job in jobs:
                told = {"token": job.token, "attempt": job.attempt, "worker": worker}
                recorder.start(job.id, **told)
                recorder.effect(job.id, **told)
                recorder.end(job.id, **told)
            await store.settle_jobs(worker, [Succeed(job.id, job.token, None) for job in jobs])
        recorder.close()

    async def run() -> Report:
        async with pair(place) as stores:
            stores.where.install_audit()
            recorder = ClientRecorder(clients)
            for job_id in await insert(stores.one, *(a_job(gates=(SlotGate("two", 2),)) for _ in range(40))):
                recorder.enqueue(job_id, answer=Answer.OK)
            recorder.close()
            await asyncio.gather(*(stores.in_a_thread(work) for _ in range(2)))
            return check(load_client(clients), load_runs(runs), stores.where.record(as_of=stores.clock.now()))

    report = asyncio.run(run())
    assert report.sound, report
    assert report.states == {"succeeded": 40}
