"""What the contract promises about time, on a clock moved by hand (the shipped checks move none)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from holdfast.core.errors import LeaseLost
from holdfast.core.job import KeyClaim
from holdfast.core.settlement import Bury, HandBack, Retry, Snooze
from holdfast.core.state import State
from holdfast.runtime.clock import ManualClock
from holdfast.stores.base import Existing, HeldJob, Inserted, Promotion, Store
from holdfast.stores.sqlite import SqliteStore
from holdfast.testing.contracts.arrange import (
    ERROR,
    PLENTY,
    a_job,
    apply,
    claim,
    due,
    enlist,
    finish,
    info,
    insert,
    resume,
    start,
    state,
    states,
)

Scenario = Callable[[Store, ManualClock], Awaitable[None]]


def run(scenario: Scenario) -> None:
    async def within_a_store() -> None:
        clock = ManualClock()
        store = SqliteStore(":memory:", clock=clock)
        await store.open()
        try:
            await scenario(store, clock)
        finally:
            await store.close()

    asyncio.run(within_a_store())


def test_a_lease_ends_when_it_says() -> None:
    async def scenario(store: Store, clock: ManualClock) -> None:
        run = await start(store, worker=await enlist(store, lease_s=10))
        clock.advance(9.5)
        assert (await store.reap_workers(limit=PLENTY)).workers == ()
        await claim(store, run.worker)
        clock.advance(0.5)
        with pytest.raises(LeaseLost):
            await claim(store, run.worker)
        assert (await store.reap_workers(limit=PLENTY)).workers == (run.worker,)
        assert await state(store, run.id) is State.READY
        with pytest.raises(LeaseLost):
            await store.renew_worker(run.worker, lease_s=10, held_for_s=0)

    run(scenario)


def test_a_renewed_lease_counts_from_the_renewal() -> None:
    async def scenario(store: Store, clock: ManualClock) -> None:
        worker = await enlist(store, lease_s=10)
        for _ in range(5):
            clock.advance(9)
            renewal = await store.renew_worker(worker, lease_s=10, held_for_s=0)
            assert renewal.now == clock.now()
        assert (await store.reap_workers(limit=PLENTY)).workers == ()

    run(scenario)


def test_a_renewal_tells_only_of_old_leases() -> None:
    async def scenario(store: Store, clock: ManualClock) -> None:
        worker = await enlist(store)
        old = await start(store, worker=worker)
        clock.advance(5)
        await start(store, worker=worker)
        renewal = await store.renew_worker(worker, lease_s=60, held_for_s=3)
        assert renewal.held == [HeldJob(old.id, old.token)]

    run(scenario)


def test_jobs_become_ready_when_due_and_in_the_order_of_their_times() -> None:
    async def scenario(store: Store, clock: ManualClock) -> None:
        late, soon = a_job(delay_s=20), a_job(run_at=clock.now() + 10)
        await insert(store, late, soon)
        assert await store.promote_jobs(limit=PLENTY) == Promotion(0, 10)
        clock.advance(9.5)
        assert await store.promote_jobs(limit=PLENTY) == Promotion(0, 0.5)
        clock.advance(30)
        assert await store.promote_jobs(limit=PLENTY) == Promotion(2, None)
        jobs = await claim(store, await enlist(store))
        assert [job.id for job in jobs] == [soon.id, late.id]

    run(scenario)


@pytest.mark.parametrize("kind", [Retry, Snooze])
def test_a_run_again_waits_its_delay(kind: type[Retry] | type[Snooze]) -> None:
    async def scenario(store: Store, clock: ManualClock) -> None:
        run = await start(store)
        await apply(store, run.worker, kind(run.id, run.token, 30, ERROR))
        clock.advance(29)
        assert await due(store) == 0
        clock.advance(1)
        assert await due(store) == 1

    run(scenario)


def test_ended_jobs_go_after_their_retention_and_never_within_an_hour() -> None:
    async def scenario(store: Store, clock: ManualClock) -> None:
        done = await start(store)
        await finish(store, done)
        [cancelled] = await insert(store, a_job())
        await store.cancel_jobs([cancelled], reason="not needed")
        clock.advance(3599)
        assert await store.prune_jobs(keep_succeeded_s=0, keep_cancelled_s=0, limit=PLENTY) == 0
        clock.advance(1)
        assert await store.prune_jobs(keep_succeeded_s=7200, keep_cancelled_s=60, limit=PLENTY) == 1
        assert await states(store, done.id, cancelled) == [State.SUCCEEDED, None]
        clock.advance(3600)
        assert await store.prune_jobs(keep_succeeded_s=7200, keep_cancelled_s=60, limit=PLENTY) == 1
        assert await store.endings([done.id]) == {done.id: None}

    run(scenario)


def test_pruning_is_bounded() -> None:
    async def scenario(store: Store, clock: ManualClock) -> None:
        ids = await insert(store, *(a_job() for _ in range(5)))
        await store.cancel_jobs(ids, reason="not needed")
        clock.advance(4000)
        counts = [await store.prune_jobs(keep_succeeded_s=0, keep_cancelled_s=0, limit=2) for _ in range(4)]
        assert counts == [2, 2, 1, 0]

    run(scenario)


def test_a_key_outlives_its_pruned_job_and_ends_with_its_window() -> None:
    async def scenario(store: Store, clock: ManualClock) -> None:
        key = KeyClaim("order-17", b"ship 17", 10_000)
        [first] = await insert(store, a_job(key=key))
        await store.cancel_jobs([first], reason="not needed")
        clock.advance(5000)
        assert await store.prune_jobs(keep_succeeded_s=0, keep_cancelled_s=0, limit=PLENTY) == 1
        assert await store.insert_jobs([a_job(key=key)]) == [Existing(first)]
        clock.advance(5000)
        second = a_job(key=key)
        assert await store.insert_jobs([second]) == [Inserted(second.id, State.READY)]

    run(scenario)


def test_a_running_job_is_past_its_deadline() -> None:
    async def scenario(store: Store, clock: ManualClock) -> None:
        run = await start(store, expires_in_s=10)
        clock.advance(20)
        assert await store.expire_jobs(limit=PLENTY) == 0
        await finish(store, run)
        assert await state(store, run.id) is State.SUCCEEDED

    run(scenario)


@pytest.mark.parametrize("upkeep_ran_meanwhile", [False, True])
@pytest.mark.parametrize("back", ["hand back", "retry"])
def test_a_job_that_waits_again_after_its_deadline_expires(back: str, upkeep_ran_meanwhile: bool) -> None:
    # Whether upkeep came by while it ran must make no difference.
    async def scenario(store: Store, clock: ManualClock) -> None:
        run = await start(store, expires_in_s=10)
        clock.advance(20)
        if upkeep_ran_meanwhile:
            await store.expire_jobs(limit=PLENTY)
        if back == "retry":
            await apply(store, run.worker, Retry(run.id, run.token, 5, ERROR))
        else:
            await apply(store, run.worker, HandBack(run.id, run.token, "drained"))
        assert await store.expire_jobs(limit=PLENTY) == 1
        assert await state(store, run.id) is State.CANCELLED

    run(scenario)


def test_a_replay_has_no_deadline() -> None:
    async def scenario(store: Store, clock: ManualClock) -> None:
        run = await start(store, expires_in_s=10)
        await apply(store, run.worker, Bury(run.id, run.token, "permanent", ERROR))
        clock.advance(20)
        await store.replay_jobs([run.id])
        assert await store.expire_jobs(limit=PLENTY) == 0
        again = await resume(store, run.id)  # a person's word counts for more than the old deadline
        await finish(store, again)
        assert (await info(store, run.id)).state is State.SUCCEEDED

    run(scenario)
