"""Upkeep: retention, the sweep, the clock; safe to run at any time."""

from __future__ import annotations

import asyncio

from holdfast.core.backpressure import Watermarks
from holdfast.core.queue import QueueSettings
from holdfast.core.settlement import UNKNOWN_TASK, Bury, Park, Retry
from holdfast.core.state import State
from holdfast.stores.base import Full, Store, Swept
from holdfast.testing.contracts.arrange import (
    ERROR,
    LONG_S,
    PLENTY,
    QUEUE,
    TASK,
    Run,
    a_job,
    apply,
    claim,
    due,
    enlist,
    finish,
    insert,
    start,
    states,
)

HEALTHY = Swept(0, 0, 0, 0, 0)


async def check_the_clock_tells_epoch_seconds(store: Store) -> None:
    now = await store.now()
    assert 1_600_000_000 < now < 10_000_000_000, f"seconds since 1970: {now}"


async def check_young_jobs_are_never_pruned(store: Store) -> None:
    # A producer may still repeat an insert whose answer it has not seen: its id must be found.
    done = await start(store)
    await finish(store, done)
    [cancelled] = await insert(store, a_job())
    await store.cancel_jobs([cancelled], reason="not needed")
    count = await store.prune_jobs(keep_succeeded_s=0, keep_cancelled_s=0, limit=PLENTY)
    assert count == 0, f"nothing goes within an hour of its end: {count}"
    assert await states(store, done.id, cancelled) == [State.SUCCEEDED, State.CANCELLED], "both are kept"


async def check_pruning_leaves_the_living(store: Store) -> None:
    running = await start(store)
    ids = await insert(store, a_job(), a_job(delay_s=LONG_S))
    await store.prune_jobs(keep_succeeded_s=0, keep_cancelled_s=0, limit=PLENTY)
    found = await states(store, running.id, *ids)
    assert found == [State.RUNNING, State.READY, State.SCHEDULED], f"got {found}"


async def check_a_healthy_store_needs_no_sweep(store: Store) -> None:
    assert await store.sweep(limit=PLENTY) == HEALTHY, "a new store is in order"
    worker = await enlist(store)
    parked = await start(store, worker=worker)
    await apply(store, worker, Park(parked.id, parked.token, UNKNOWN_TASK, TASK))
    dead = await start(store, worker=worker)
    await apply(store, worker, Bury(dead.id, dead.token, "permanent", ERROR))
    retrying = await start(store, worker=worker)
    await apply(store, worker, Retry(retrying.id, retrying.token, 0, ERROR))
    await due(store)
    ids = await insert(store, a_job(), a_job(waits_for=(parked.id,)))
    before = await states(store, parked.id, dead.id, retrying.id, *ids)
    swept = await store.sweep(limit=PLENTY)
    assert swept == HEALTHY, f"there is nothing to put right: {swept}"
    after = await states(store, parked.id, dead.id, retrying.id, *ids)
    assert after == before, f"and so nothing moves: {before} became {after}"


async def check_upkeep_may_run_anywhere_at_any_time(store: Store) -> None:
    ids = await insert(store, *(a_job() for _ in range(20)))

    async def upkeep() -> None:
        await store.promote_jobs(limit=3)
        await store.reap_workers(limit=3)
        await store.expire_jobs(limit=3)
        await store.prune_jobs(keep_succeeded_s=0, keep_cancelled_s=0, limit=3)
        await store.fold_depths(limit=3)
        swept = await store.sweep(limit=PLENTY)
        assert swept == HEALTHY, f"moving jobs are not out of order: {swept}"

    async def work() -> None:
        worker = await enlist(store)
        while jobs := await claim(store, worker, 2):
            await asyncio.gather(*(finish(store, Run(worker, job)) for job in jobs))

    await asyncio.gather(work(), upkeep(), work(), upkeep(), upkeep())
    assert await states(store, *ids) == [State.SUCCEEDED] * 20, "all were run"


async def check_folding_changes_no_depth(store: Store) -> None:
    await store.set_queue(QUEUE, QueueSettings(watermarks=Watermarks(high=6, low=2)))
    for _ in range(6):
        await insert(store, a_job())
    assert await store.fold_depths(limit=1) <= 1, "never more than asked for"
    await asyncio.gather(*(store.fold_depths(limit=2) for _ in range(4)))
    [answer] = await store.insert_jobs([a_job()])
    assert answer == Full(QUEUE, 6, 6, 2), f"six are ready, however they are counted: {answer}"
    assert await store.sweep(limit=PLENTY) == HEALTHY, "and the count is right"
    while await store.fold_depths(limit=PLENTY):
        pass
    assert await store.sweep(limit=PLENTY) == HEALTHY, "also when nothing is left to fold"
