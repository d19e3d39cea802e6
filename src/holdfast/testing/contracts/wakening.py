"""Wake-ups: in a crowd that takes, frees, cancels and loses at once nobody waits for ever, and nothing is left."""

from __future__ import annotations

import asyncio
from collections import Counter

from holdfast.core.breaker import BreakerGate, BreakerMark
from holdfast.core.cause import Cause
from holdfast.core.fairness import Lane
from holdfast.core.gates import Barrier, Place, RateGate, SlotGate
from holdfast.core.job import JobId
from holdfast.core.settlement import Retry, Settlement, Succeed
from holdfast.core.state import State
from holdfast.stores.base import Store
from holdfast.testing.contracts.arrange import (
    ERROR,
    LANE,
    LONG_S,
    PLENTY,
    a_job,
    drain,
    due,
    enlist,
    finish,
    insert,
    lose,
    serve,
    start,
    state,
    states,
)
from holdfast.testing.contracts.gates import ELSEWHERE, nothing_is_left, use
from holdfast.testing.contracts.rates import QUICK, a_moment

ONE, TWO = SlotGate("one", 1), SlotGate("two", 2)
SIZES = {"one": 1, "two": 2}


async def _holders_fit(store: Store) -> None:
    for gate in await store.gates():
        if gate.place.barrier is Barrier.LIMIT:
            assert gate.held <= SIZES[gate.place.key], f"more than its size: {gate}"


async def check_a_crowd_that_takes_and_frees_at_once_leaves_nobody_waiting(store: Store) -> None:
    kinds = ((ONE,), (TWO,), (ONE, TWO), (TWO, ONE), ())
    lanes = (LANE, ELSEWHERE)
    ids = await insert(
        store, *(a_job(gates=gates, queue=lane.queue) for _ in range(6) for gates in kinds for lane in lanes)
    )
    ended: set[JobId] = set()

    async def work(lane: Lane) -> None:
        worker = await enlist(store)
        for _ in range(12):
            jobs = (await store.claim_jobs(worker, {lane: 4}, deadline_s=60)).jobs
            await _holders_fit(store)
            settlements = [_word(job.id, job.token, job.attempt) for job in jobs]
            await store.settle_jobs(worker, settlements)
            ended.update(each.job_id for each in settlements if isinstance(each, Succeed))
            await store.promote_jobs(limit=PLENTY)
            await store.serve_gates(limit=2)

    def _word(job_id: JobId, token: int, attempt: int) -> Settlement:
        if attempt > 1 or job_id.int % 3 == 0:
            return Succeed(job_id, token, None)
        return Retry(job_id, token, 0, ERROR) if job_id.int % 3 == 1 else Succeed(job_id, token, None)

    await asyncio.gather(*(work(lane) for lane in (*lanes, *lanes)))
    worker = await enlist(store)
    while len(ended) < len(ids):
        await due(store)
        await serve(store)
        jobs = await drain(store, worker, *lanes)
        found = Counter(await states(store, *ids))
        assert jobs, f"there is room, and nobody is woken: {found}, {await store.gates()}"
        await store.settle_jobs(worker, [Succeed(job.id, job.token, None) for job in jobs])
        ended |= {job.id for job in jobs}
    assert await states(store, *ids) == [State.SUCCEEDED] * len(ids)
    await nothing_is_left(store)


async def check_no_wake_up_is_lost_between_a_claim_that_parks_and_an_ending_that_frees(store: Store) -> None:
    first, second = await enlist(store), await enlist(store)
    for turn in range(12):
        run = await start(store, worker=first, gates=(ONE,))
        [waiting] = await insert(store, a_job(gates=(ONE,)))
        calls = [store.claim_jobs(second, {LANE: 5}, deadline_s=60), finish(store, run)]
        if turn % 2:
            calls.reverse()
        await asyncio.gather(*calls)
        await serve(store)
        if await state(store, waiting) is not State.RUNNING:
            got = [job.id for job in await drain(store, second)]
            assert got == [waiting], f"turn {turn}: the slot is free, and it waits: {await store.gates()}"
        for held in (await store.renew_worker(second, lease_s=LONG_S, held_for_s=0)).held:
            await store.settle_jobs(second, [Succeed(held.job_id, held.token, None)])
        await serve(store)
    await nothing_is_left(store)


async def check_waiters_that_are_cancelled_make_no_hole_in_the_line(store: Store) -> None:
    worker = await enlist(store)
    run = await start(store, worker=worker, gates=(ONE,))
    ids = await insert(store, *(a_job(gates=(ONE,)) for _ in range(8)))
    await drain(store, worker)
    await asyncio.gather(
        finish(store, run),
        store.cancel_jobs(ids[:4], reason="not needed"),
        store.serve_gates(limit=PLENTY),
        store.cancel_jobs(ids[5:7], reason="not needed"),
    )
    await serve(store)
    for expected in (ids[4], ids[7]):
        [job] = await drain(store, worker)
        assert job.id == expected, f"got {job}"
        await store.settle_jobs(worker, [Succeed(job.id, job.token, None)])
        await serve(store)
    await nothing_is_left(store)


async def check_holders_lost_with_their_worker_free_all_they_held(store: Store) -> None:
    for number in range(3):
        worker = await enlist(store)
        both = await start(store, worker=worker, gates=(ONE, TWO))
        more = await start(store, worker=worker, gates=(TWO,))
        [waiting] = await insert(store, a_job(gates=(TWO, ONE), queue=ELSEWHERE.queue))
        other = await enlist(store)
        assert await drain(store, other, ELSEWHERE) == []
        await lose(store, worker)
        await serve(store)
        assert await state(store, waiting) is State.READY, f"turn {number}: both are free"
        ids = [both.id, more.id, waiting]
        await store.cancel_jobs(ids, reason="next turn")
        await store.hand_back_worker(other, cause=Cause.HANDED_BACK, why="next turn")
        await serve(store)
    await nothing_is_left(store)


async def check_a_waiter_past_its_deadline_is_cancelled_and_the_next_goes(store: Store) -> None:
    worker = await enlist(store)
    run = await start(store, worker=worker, gates=(ONE,))
    soon = await store.now() + 0.3
    late, next_one = await insert(store, a_job(gates=(ONE,), expires_at=soon), a_job(gates=(ONE,)))
    assert await drain(store, worker) == []
    while await store.now() <= soon:  # its deadline has to lie ahead when it is parked
        await store.serve_gates(limit=PLENTY)
    assert await store.expire_jobs(limit=PLENTY) in (0, 1)
    assert await state(store, late) is State.CANCELLED, "it was not started in time"
    assert await use(store, Place(Barrier.LIMIT, "one")) == (1, 1), "and waits no more"
    await finish(store, run)
    await serve(store)
    [job] = await drain(store, worker)
    assert job.id == next_one
    await store.settle_jobs(worker, [Succeed(job.id, job.token, None)])
    await nothing_is_left(store)


async def check_a_purged_queue_leaves_no_gates(store: Store) -> None:
    bank = BreakerGate("bank", 1, LONG_S, LONG_S)
    quick = RateGate("quick", QUICK)
    worker = await enlist(store)
    runs = [await start(store, worker=worker, gates=(gate,)) for gate in (ONE, quick, bank)]
    mark = BreakerMark(runs[2].token, failed=True, breaker=bank)
    await store.settle_jobs(worker, [Succeed(runs[2].id, runs[2].token, None)], marks=[mark])
    ids = await insert(store, *(a_job(gates=(gate,)) for gate in (ONE, quick, quick, bank) for _ in range(2)))
    for job in await drain(store, worker):
        await store.settle_jobs(worker, [Succeed(job.id, job.token, None)])
    waiting = (await states(store, *ids)).count(State.PARKED)
    assert waiting >= 4, f"got {await states(store, *ids)}"
    assert await store.purge_queue(LANE.queue, reason="enough", limit=PLENTY) == waiting
    for run in runs[:2]:
        await finish(store, run)
    await store.set_breaker("bank", closed=True, by="me")
    await a_moment(store)
    await nothing_is_left(store)
