"""A worker's lease: registered once, renewed while it lasts, never made anew, handed back as a whole."""

from __future__ import annotations

import asyncio
from uuid import uuid4

from holdfast.core.cause import Cause
from holdfast.core.errors import LeaseLost
from holdfast.core.job import WorkerId
from holdfast.core.settlement import HandBack
from holdfast.core.state import State
from holdfast.stores.base import HeldJob, Store
from holdfast.testing.contracts.arrange import (
    LONG_S,
    a_job,
    a_worker,
    apply,
    claim,
    enlist,
    finish,
    info,
    insert,
    lose,
    start,
    state,
    states,
)


async def _not_renewed(store: Store, worker: WorkerId) -> None:
    try:
        got = await store.renew_worker(worker, lease_s=LONG_S, held_for_s=0)
    except LeaseLost:
        return
    raise AssertionError(f"this worker is not in the store, and yet: {got}")


async def check_a_registered_worker_is_listed(store: Store) -> None:
    worker = a_worker(host="böx", pid=17, concurrency=3, queues=("mail", "default"))
    await store.register_worker(worker, lease_s=LONG_S)
    [found] = await store.list_workers()
    assert (found.id, found.host, found.pid, found.concurrency) == (worker.id, "böx", 17, 3), f"got {found}"
    assert found.queues == ("mail", "default"), f"got {found}"
    assert found.running == 0, f"got {found}"
    assert found.lease_until > found.started_at, f"got {found}"


async def check_a_worker_lists_what_it_runs(store: Store) -> None:
    worker = await enlist(store)
    await insert(store, a_job(), a_job(), a_job())
    jobs = await claim(store, worker, 2)
    [found] = await store.list_workers()
    assert found.running == len(jobs) == 2, f"got {found}"


async def check_a_worker_tells_how_its_loop_lags(store: Store) -> None:
    worker = await enlist(store)
    for told, shown in ((None, 0.0), (1.5, 1.5), (None, 1.5), (0.0, 0.0)):
        await store.renew_worker(worker, lease_s=LONG_S, held_for_s=0, lag_s=told)
        [found] = await store.list_workers()
        assert found.lag_s == shown, f"after {told}: {found}"


async def check_renewals_may_come_from_another_event_loop(store: Store) -> None:
    """As they do in a worker: its heartbeat has a thread of its own, and all else goes on meanwhile."""
    worker = await enlist(store)

    async def renew() -> None:
        for n in range(20):
            await store.renew_worker(worker, lease_s=LONG_S, held_for_s=0, lag_s=float(n))

    renewing = asyncio.create_task(asyncio.to_thread(asyncio.run, renew()))
    looks = 0
    while not renewing.done() or not looks:
        await store.list_workers()
        await store.now()
        looks += 1
    await renewing
    [found] = await store.list_workers()
    assert found.lag_s == 19.0, f"the last renewal told 19.0: {found}"


async def check_renewing_prolongs(store: Store) -> None:
    worker = await enlist(store, lease_s=60)
    [before] = await store.list_workers()
    renewal = await store.renew_worker(worker, lease_s=LONG_S, held_for_s=0)
    [after] = await store.list_workers()
    assert after.lease_until > before.lease_until, f"{before} became {after}"
    assert abs(renewal.now - await store.now()) < LONG_S, f"the answer tells the store's time: {renewal}"


async def check_renewing_tells_the_leases_held_for_long(store: Store) -> None:
    worker = await enlist(store)
    await insert(store, a_job(), a_job())
    jobs = await claim(store, worker)
    other = await start(store)
    renewal = await store.renew_worker(worker, lease_s=LONG_S, held_for_s=-1)
    assert sorted(renewal.held) == sorted(HeldJob(job.id, job.token) for job in jobs), f"got {renewal}"
    renewal = await store.renew_worker(worker, lease_s=LONG_S, held_for_s=LONG_S)
    assert renewal.held == [], f"no lease is as old as that: {renewal}"
    await apply(store, worker, *(HandBack(job.id, job.token, "drained") for job in jobs))
    renewal = await store.renew_worker(worker, lease_s=LONG_S, held_for_s=-1)
    assert renewal.held == [], f"what was given back is not held: {renewal}"
    await finish(store, other)


async def check_renewing_works_from_another_event_loop(store: Store) -> None:
    worker = await enlist(store)

    def beat() -> None:
        asyncio.run(_renew(store, worker))

    await asyncio.to_thread(beat)


async def _renew(store: Store, worker: WorkerId) -> None:
    await store.renew_worker(worker, lease_s=LONG_S, held_for_s=0)


async def check_an_unknown_worker_is_not_renewed(store: Store) -> None:
    await _not_renewed(store, uuid4())
    assert await store.list_workers() == [], "renewing never makes a worker"


async def check_whom_nobody_has_reaped_may_renew_late(store: Store) -> None:
    run = await start(store, worker=await enlist(store, lease_s=LONG_S))
    await store.renew_worker(run.worker, lease_s=0, held_for_s=LONG_S)  # it has run out, as by a clock that jumped
    await store.renew_worker(run.worker, lease_s=LONG_S, held_for_s=LONG_S)
    reaped = await store.reap_workers(limit=10)
    assert reaped.workers == (), f"its lease holds again: {reaped}"
    await finish(store, run)


async def check_a_reaped_worker_is_not_renewed(store: Store) -> None:
    run = await start(store)
    await lose(store, run.worker)
    await _not_renewed(store, run.worker)
    assert await store.list_workers() == [], "renewing never makes a worker"


async def check_handing_back_returns_every_job_of_the_worker(store: Store) -> None:
    worker = await enlist(store)
    ids = await insert(store, *(a_job() for _ in range(5)))
    await claim(store, worker, 3)
    other = await start(store, queue="other")
    count = await store.hand_back_worker(worker, cause=Cause.HANDED_BACK, why="drained")
    assert count == 3, f"got {count}"
    assert await states(store, *ids) == [State.READY] * 5, "all are ready again"
    assert await state(store, other.id) is State.RUNNING, "others keep their jobs"
    assert [found.id for found in await store.list_workers()] == [other.worker], "the worker is gone"


async def check_a_removed_worker_neither_renews_nor_claims(store: Store) -> None:
    run = await start(store)
    await store.hand_back_worker(run.worker, cause=Cause.HANDED_BACK, why="drained")
    await _not_renewed(store, run.worker)
    try:
        got = await claim(store, run.worker)
    except LeaseLost:
        return
    raise AssertionError(f"a removed worker must not claim {got}")


async def check_handing_back_twice_or_for_nobody_is_harmless(store: Store) -> None:
    run = await start(store)
    counts = [
        await store.hand_back_worker(worker, cause=Cause.WORKER_LOST, why="killed")
        for worker in (run.worker, run.worker, uuid4())
    ]
    assert counts == [1, 0, 0], f"got {counts}"


async def check_a_drained_worker_leaves_no_mark_on_its_jobs(store: Store) -> None:
    await insert(store, a_job())
    for _ in range(5):
        worker = await enlist(store)
        [job] = await claim(store, worker)
        assert (job.attempt, job.alone) == (1, False), f"a clean hand-back is not the job's fault: {job}"
        await store.hand_back_worker(worker, cause=Cause.HANDED_BACK, why="drained")
    assert (await info(store, job.id)).attempt == 0, "nothing was charged"
