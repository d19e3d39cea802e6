"""Limits: at most so many jobs of a key run at once; the others wait without holding anybody up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from holdfast.core.cause import Cause
from holdfast.core.job import JobId, LimitSlot
from holdfast.core.settlement import UNKNOWN_TASK, Bury, Cancel, HandBack, Park, Retry, Snooze, Succeed
from holdfast.core.state import State
from holdfast.stores.base import Store, Swept
from holdfast.testing.contracts.arrange import (
    ERROR,
    LANE,
    LONG_S,
    PLENTY,
    TASK,
    Run,
    a_job,
    apply,
    claim,
    drain,
    enlist,
    finish,
    insert,
    lose,
    state,
    states,
)

ONE = LimitSlot("printer", 1)


async def check_no_more_than_the_limit_run_at_once(store: Store) -> None:
    ids = await insert(store, *(a_job(limit=LimitSlot("api", 2)) for _ in range(5)))
    got = [job.id for job in await drain(store, await enlist(store))]
    assert got == ids[:2], f"the oldest two run: {got}"
    found = await states(store, *ids)
    assert found == [State.RUNNING] * 2 + [State.PARKED] * 3, f"the others are parked: {found}"
    [info] = await store.job_infos(ids[-1:])
    assert info is not None, "a parked job is in the store"
    assert info.reason, f"a parked job says why: {info}"


async def check_the_limit_holds_between_workers_that_claim_at_once(store: Store) -> None:
    ids = await insert(store, *(a_job(limit=LimitSlot("api", 3)) for _ in range(30)))
    workers = [await enlist(store) for _ in range(5)]
    finished: set[JobId] = set()
    while len(finished) < len(ids):
        claims = await asyncio.gather(*(claim(store, worker, 4) for worker in workers))
        found = await states(store, *ids)
        assert found.count(State.RUNNING) <= 3, f"never more than three: {found.count(State.RUNNING)}"
        runs = [Run(worker, job) for worker, jobs in zip(workers, claims, strict=True) for job in jobs]
        assert runs or found.count(State.READY), f"a freed slot must bring the next one: {found}"
        await asyncio.gather(*(finish(store, run) for run in runs))
        finished |= {run.id for run in runs}


async def check_other_keys_and_unlimited_jobs_are_not_held_up(store: Store) -> None:
    first, second = a_job(limit=ONE), a_job(limit=ONE)
    other, free = a_job(limit=LimitSlot("scanner", 1)), a_job()
    await insert(store, first, second, other, free)
    got = [job.id for job in await drain(store, await enlist(store))]
    assert got == [first.id, other.id, free.id], f"only the second printer job waits: {got}"


async def check_a_lane_of_parked_jobs_is_not_reported_empty(store: Store) -> None:
    await insert(store, *(a_job(limit=ONE) for _ in range(6)))
    [free] = await insert(store, a_job())
    worker = await enlist(store)
    got: list[JobId] = []
    for _ in range(10):
        found = await store.claim_jobs(worker, {LANE: 2}, deadline_s=60)
        got += [job.id for job in found.jobs]
        if found.scanned.get(LANE, 0) < 2:
            break
    assert free in got, "a lane is empty only when it was scanned short"


async def _succeed(store: Store, run: Run) -> None:
    await apply(store, run.worker, Succeed(run.id, run.token, None))


async def _retry(store: Store, run: Run) -> None:
    await apply(store, run.worker, Retry(run.id, run.token, LONG_S, ERROR))


async def _snooze(store: Store, run: Run) -> None:
    await apply(store, run.worker, Snooze(run.id, run.token, LONG_S, ERROR))


async def _bury(store: Store, run: Run) -> None:
    await apply(store, run.worker, Bury(run.id, run.token, "permanent", ERROR))


async def _park(store: Store, run: Run) -> None:
    await apply(store, run.worker, Park(run.id, run.token, UNKNOWN_TASK, TASK))


async def _cancel(store: Store, run: Run) -> None:
    await apply(store, run.worker, Cancel(run.id, run.token, "asked to"))


async def _hand_back(store: Store, run: Run) -> None:
    await apply(store, run.worker, HandBack(run.id, run.token, "drained"))


async def _reap(store: Store, run: Run) -> None:
    await lose(store, run.worker)


async def _remove(store: Store, run: Run) -> None:
    await store.hand_back_worker(run.worker, cause=Cause.WORKER_LOST, why="killed")


FREED_BY: list[Callable[[Store, Run], Awaitable[None]]] = [
    _succeed,
    _retry,
    _snooze,
    _bury,
    _park,
    _cancel,
    _hand_back,
    _reap,
    _remove,
]


async def check_whatever_stops_a_run_frees_its_slot_for_the_oldest_waiter(store: Store) -> None:
    for number, free in enumerate(FREED_BY):
        limit = LimitSlot(f"key {number}", 1)
        ids = await insert(store, *(a_job(limit=limit) for _ in range(3)))
        worker = await enlist(store)
        [job] = await drain(store, worker)
        assert job.id == ids[0], "the oldest runs"
        assert await states(store, *ids[1:]) == [State.PARKED] * 2, "the others wait"
        await free(store, Run(worker, job))
        found = await states(store, *ids[1:])
        assert found == [State.READY, State.PARKED], f"after {free.__name__} the waiters are {found}"
        swept = await store.sweep(limit=PLENTY)
        assert swept == Swept(0, 0, 0, 0, 0), f"after {free.__name__} nothing is left to put right: {swept}"
        await store.cancel_jobs(ids, reason="out of the way")


async def check_a_chain_of_waiters_runs_one_by_one(store: Store) -> None:
    ids = await insert(store, *(a_job(limit=ONE) for _ in range(5)))
    worker = await enlist(store)
    for job_id in ids:
        jobs = await drain(store, worker)
        assert [job.id for job in jobs] == [job_id], f"one at a time, oldest first: {jobs}"
        await finish(store, Run(worker, jobs[0]))
    assert await states(store, *ids) == [State.SUCCEEDED] * 5, "all had their turn"


async def check_a_cancelled_waiter_is_passed_over(store: Store) -> None:
    ids = await insert(store, *(a_job(limit=ONE) for _ in range(3)))
    worker = await enlist(store)
    [job] = await drain(store, worker)
    await store.cancel_jobs([ids[1]], reason="not needed")
    await finish(store, Run(worker, job))
    assert await states(store, *ids[1:]) == [State.CANCELLED, State.READY], "the next one is woken"


async def check_cancelling_the_woken_waiter_wakes_the_next(store: Store) -> None:
    ids = await insert(store, *(a_job(limit=ONE) for _ in range(3)))
    worker = await enlist(store)
    [job] = await drain(store, worker)
    await finish(store, Run(worker, job))
    await store.cancel_jobs([ids[1]], reason="not needed")  # it was woken, and had not started
    await store.sweep(limit=PLENTY)
    jobs = await drain(store, worker)
    assert [job.id for job in jobs] == [ids[2]], f"nobody waits for ever for a free slot: {jobs}"


async def check_an_unlimited_job_is_never_parked(store: Store) -> None:
    await insert(store, a_job(limit=ONE), *(a_job() for _ in range(3)))
    assert len(await drain(store, await enlist(store))) == 4, "nothing here is over a limit"


async def check_a_replayed_job_takes_a_slot_again(store: Store) -> None:
    ids = await insert(store, a_job(limit=ONE))
    worker = await enlist(store)
    [job] = await drain(store, worker)
    await apply(store, worker, Bury(job.id, job.token, "permanent", ERROR))
    await store.replay_jobs(ids)
    await drain(store, worker)
    [waiting] = await insert(store, a_job(limit=ONE))
    await drain(store, worker)
    assert await state(store, waiting) is State.PARKED, "the replayed job holds the slot"
