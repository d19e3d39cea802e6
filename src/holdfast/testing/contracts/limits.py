"""Limits: at most so many jobs of a key run at once; the others wait without holding anybody up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from holdfast.core.cause import Cause
from holdfast.core.fairness import Lane
from holdfast.core.gates import SlotGate
from holdfast.core.job import JobId, WorkerId
from holdfast.core.queue import QueueSettings
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
    a_worker,
    apply,
    claim,
    drain,
    enlist,
    finish,
    insert,
    lose,
    serve,
    state,
    states,
)

ONE = SlotGate("printer", 1)


async def check_no_more_than_the_limit_run_at_once(store: Store) -> None:
    ids = await insert(store, *(a_job(gates=(SlotGate("api", 2),)) for _ in range(5)))
    got = [job.id for job in await drain(store, await enlist(store))]
    assert got == ids[:2], f"the oldest two run: {got}"
    found = await states(store, *ids)
    assert found == [State.RUNNING] * 2 + [State.PARKED] * 3, f"the others are parked: {found}"
    [info] = await store.job_infos(ids[-1:])
    assert info is not None, "a parked job is in the store"
    assert info.reason, f"a parked job says why: {info}"


async def check_the_limit_holds_between_workers_that_claim_at_once(store: Store) -> None:
    ids = await insert(store, *(a_job(gates=(SlotGate("api", 3),)) for _ in range(30)))
    workers = [await enlist(store) for _ in range(5)]
    finished: set[JobId] = set()
    while len(finished) < len(ids):
        claims = await asyncio.gather(*(claim(store, worker, 4) for worker in workers))
        found = await states(store, *ids)
        assert found.count(State.RUNNING) <= 3, f"never more than three: {found.count(State.RUNNING)}"
        runs = [Run(worker, job) for worker, jobs in zip(workers, claims, strict=True) for job in jobs]
        assert runs or found.count(State.READY), f"a freed slot must bring the next one: {found}"
        await asyncio.gather(*(finish(store, run) for run in runs))
        await serve(store)
        finished |= {run.id for run in runs}


async def check_other_keys_and_unlimited_jobs_are_not_held_up(store: Store) -> None:
    first, second = a_job(gates=(ONE,)), a_job(gates=(ONE,))
    other, free = a_job(gates=(SlotGate("scanner", 1),)), a_job()
    await insert(store, first, second, other, free)
    got = [job.id for job in await drain(store, await enlist(store))]
    assert got == [first.id, other.id, free.id], f"only the second printer job waits: {got}"


async def check_a_lane_of_parked_jobs_is_not_reported_empty(store: Store) -> None:
    await insert(store, *(a_job(gates=(ONE,)) for _ in range(6)))
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
        limit = SlotGate(f"key {number}", 1)
        ids = await insert(store, *(a_job(gates=(limit,)) for _ in range(3)))
        worker = await enlist(store)
        [job] = await drain(store, worker)
        assert job.id == ids[0], "the oldest runs"
        assert await states(store, *ids[1:]) == [State.PARKED] * 2, "the others wait"
        await free(store, Run(worker, job))
        await serve(store)
        found = await states(store, *ids[1:])
        assert found == [State.READY, State.PARKED], f"after {free.__name__} the waiters are {found}"
        swept = await store.sweep(limit=PLENTY)
        assert swept == Swept(0, 0, 0, 0, 0), f"after {free.__name__} nothing is left to put right: {swept}"
        await store.cancel_jobs(ids, reason="out of the way")


async def check_a_chain_of_waiters_runs_one_by_one(store: Store) -> None:
    ids = await insert(store, *(a_job(gates=(ONE,)) for _ in range(5)))
    worker = await enlist(store)
    for job_id in ids:
        jobs = await drain(store, worker)
        assert [job.id for job in jobs] == [job_id], f"one at a time, oldest first: {jobs}"
        await finish(store, Run(worker, jobs[0]))
        await serve(store)
    assert await states(store, *ids) == [State.SUCCEEDED] * 5, "all had their turn"


async def check_a_cancelled_waiter_is_passed_over(store: Store) -> None:
    ids = await insert(store, *(a_job(gates=(ONE,)) for _ in range(3)))
    worker = await enlist(store)
    [job] = await drain(store, worker)
    await store.cancel_jobs([ids[1]], reason="not needed")
    await finish(store, Run(worker, job))
    await serve(store)
    assert await states(store, *ids[1:]) == [State.CANCELLED, State.READY], "the next one is woken"


async def check_cancelling_the_woken_waiter_wakes_the_next(store: Store) -> None:
    ids = await insert(store, *(a_job(gates=(ONE,)) for _ in range(3)))
    worker = await enlist(store)
    [job] = await drain(store, worker)
    await finish(store, Run(worker, job))
    await serve(store)
    await store.cancel_jobs([ids[1]], reason="not needed")  # it was woken, and had not started
    await serve(store)
    jobs = await drain(store, worker)
    assert [job.id for job in jobs] == [ids[2]], f"nobody waits for ever for a free slot: {jobs}"


async def check_an_unlimited_job_is_never_parked(store: Store) -> None:
    await insert(store, a_job(gates=(ONE,)), *(a_job() for _ in range(3)))
    assert len(await drain(store, await enlist(store))) == 4, "nothing here is over a limit"


async def check_a_replayed_job_takes_a_slot_again(store: Store) -> None:
    ids = await insert(store, a_job(gates=(ONE,)))
    worker = await enlist(store)
    [job] = await drain(store, worker)
    await apply(store, worker, Bury(job.id, job.token, "permanent", ERROR))
    await store.replay_jobs(ids)
    await drain(store, worker)
    [waiting] = await insert(store, a_job(gates=(ONE,)))
    await drain(store, worker)
    assert await state(store, waiting) is State.PARKED, "the replayed job holds the slot"


ELSEWHERE = Lane("elsewhere", LANE.priority)
PAUSED, RUNNING_AGAIN = QueueSettings(paused=True), QueueSettings()


async def _one_runs_and_two_wait(store: Store, worker: WorkerId) -> tuple[Run, JobId, JobId]:
    """The older of the waiters is in another queue than the others."""
    [first] = await insert(store, a_job(gates=(ONE,)))
    [job] = await drain(store, worker)
    assert job.id == first, "the limit has room for the first"
    older, younger = await insert(store, a_job(gates=(ONE,), queue=ELSEWHERE.queue), a_job(gates=(ONE,)))
    assert await drain(store, worker, ELSEWHERE, LANE) == [], "the limit is reached"
    return Run(worker, job), older, younger


async def check_a_slot_is_not_kept_for_a_paused_queue(store: Store) -> None:
    worker = await enlist(store)
    run, older, younger = await _one_runs_and_two_wait(store, worker)
    await store.set_queue(ELSEWHERE.queue, PAUSED)
    await finish(store, run)
    await serve(store)
    assert await states(store, older, younger) == [State.READY, State.READY], "nobody waits for a paused queue"
    [job] = await drain(store, worker, ELSEWHERE, LANE)
    assert job.id == younger, "who can run has the slot"
    await store.set_queue(ELSEWHERE.queue, RUNNING_AGAIN)
    [latest] = await insert(store, a_job(gates=(ONE,)))
    assert await drain(store, worker, LANE, ELSEWHERE) == [], "and the others wait for it"
    await finish(store, Run(worker, job))
    await serve(store)
    [job] = await drain(store, worker, LANE, ELSEWHERE)
    assert job.id == older, "which had to wait is still the oldest"
    await finish(store, Run(worker, job))
    await serve(store)
    [job] = await drain(store, worker, LANE, ELSEWHERE)
    assert job.id == latest, "all had their turn"


async def check_pausing_a_queue_hands_on_the_slots_kept_for_it(store: Store) -> None:
    worker = await enlist(store)
    run, older, younger = await _one_runs_and_two_wait(store, worker)
    await finish(store, run)
    await serve(store)
    assert await states(store, older, younger) == [State.READY, State.PARKED], "the slot is kept for the oldest"
    await store.set_queue(ELSEWHERE.queue, PAUSED, only=("paused",))
    await serve(store)
    [job] = await drain(store, worker, ELSEWHERE, LANE)
    assert job.id == younger, "until its queue is paused"
    await store.set_queue(ELSEWHERE.queue, RUNNING_AGAIN, only=("paused",))
    assert await drain(store, worker, ELSEWHERE, LANE) == [], "the limit holds"
    swept = await store.sweep(limit=PLENTY)
    assert swept == Swept(0, 0, 0, 0, 0), f"nothing is left to put right: {swept}"
    await finish(store, Run(worker, job))
    await serve(store)
    [job] = await drain(store, worker, ELSEWHERE, LANE)
    assert job.id == older, "and then it is its turn"


async def check_a_slot_is_not_kept_for_a_queue_without_a_worker(store: Store) -> None:
    worker, other = a_worker(queues=(LANE.queue,)), a_worker(queues=(LANE.queue, ELSEWHERE.queue))
    for each in (worker, other):
        await store.register_worker(each, lease_s=LONG_S)
    run, older, younger = await _one_runs_and_two_wait(store, other.id)
    await store.settle_jobs(other.id, [HandBack(run.id, run.token, "stopping")])
    await serve(store)
    assert await state(store, older) is State.READY, "the slot is kept for the oldest"
    await store.hand_back_worker(other.id, cause=Cause.HANDED_BACK, why="stopped")
    assert await drain(store, worker.id) == [], "while its worker was there"
    await store.sweep(limit=PLENTY)
    await serve(store)
    [job] = await drain(store, worker.id)
    assert job.id == run.id, "the oldest whose queue has a worker has it now"
    await finish(store, Run(worker.id, job))
    await serve(store)
    [job] = await drain(store, worker.id)
    assert job.id == younger, "and from then on without a sweep"
    again = a_worker(queues=(ELSEWHERE.queue,))
    await store.register_worker(again, lease_s=LONG_S)
    assert await drain(store, again.id, ELSEWHERE) == [], "the limit holds"
    await finish(store, Run(worker.id, job))
    await serve(store)
    [job] = await drain(store, again.id, ELSEWHERE)
    assert job.id == older, "and whoever waited for a worker has his turn"
