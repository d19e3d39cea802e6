"""Time: due jobs are promoted, others wait."""

from __future__ import annotations

from holdfast.core.settlement import Retry, Snooze
from holdfast.core.state import State
from holdfast.stores.base import Promotion, Store
from holdfast.testing.contracts.arrange import (
    ERROR,
    LONG_S,
    PLENTY,
    a_job,
    apply,
    claim,
    drain,
    due,
    enlist,
    insert,
    start,
    state,
    states,
)


async def check_nothing_is_scheduled(store: Store) -> None:
    promotion = await store.promote_jobs(limit=PLENTY)
    assert promotion == Promotion(0, None), f"got {promotion}"
    await insert(store, a_job())
    assert await store.promote_jobs(limit=PLENTY) == Promotion(0, None), "a ready job is not scheduled"


async def check_promoting_tells_when_the_next_is_due(store: Store) -> None:
    await insert(store, a_job(delay_s=2 * LONG_S), a_job(delay_s=LONG_S))
    promotion = await store.promote_jobs(limit=PLENTY)
    assert promotion.promoted == 0, f"nothing is due: {promotion}"
    assert promotion.next_due_in_s is not None, f"got {promotion}"
    assert LONG_S / 2 < promotion.next_due_in_s <= LONG_S, f"got {promotion}"


async def check_a_past_time_is_now(store: Store) -> None:
    now = await store.now()
    ids = await insert(store, a_job(run_at=now - LONG_S), a_job(run_at=1.0), a_job(delay_s=0))
    await due(store)
    got = {job.id for job in await drain(store, await enlist(store))}
    assert got == set(ids), f"what is due is claimed: {got}"


async def check_a_retry_is_promoted_when_due(store: Store) -> None:
    run = await start(store)
    await apply(store, run.worker, Retry(run.id, run.token, 0, ERROR))
    await due(store)
    assert await state(store, run.id) is State.READY, "its time has come"
    [again] = await claim(store, run.worker)
    assert again.attempt == 2, f"got {again}"


async def check_what_is_not_due_stays(store: Store) -> None:
    worker = await enlist(store)
    retrying = await start(store, worker=worker)
    await apply(store, worker, Retry(retrying.id, retrying.token, LONG_S, ERROR))
    snoozing = await start(store, worker=worker)
    await apply(store, worker, Snooze(snoozing.id, snoozing.token, LONG_S, ERROR))
    [delayed] = await insert(store, a_job(delay_s=LONG_S))
    assert await due(store) == 0, "nothing is due"
    found = await states(store, retrying.id, snoozing.id, delayed)
    assert found == [State.SCHEDULED] * 3, f"got {found}"


async def check_promoting_is_bounded_and_tells_of_the_rest(store: Store) -> None:
    worker = await enlist(store)
    ids = await insert(store, *(a_job() for _ in range(5)))
    jobs = await claim(store, worker)
    await apply(store, worker, *(Retry(job.id, job.token, 0, ERROR) for job in jobs))
    waiting = (await states(store, *ids)).count(State.SCHEDULED)
    while waiting:
        promotion = await store.promote_jobs(limit=2)
        assert promotion.promoted == min(2, waiting), f"{promotion} of {waiting} due jobs"
        waiting -= promotion.promoted
        if waiting:
            assert promotion.next_due_in_s is not None, f"more are due: {promotion}"
            assert promotion.next_due_in_s <= 0, f"more are due now: {promotion}"
        else:
            assert promotion.next_due_in_s is None, f"no more are scheduled: {promotion}"
    assert await states(store, *ids) == [State.READY] * 5, "all are ready"
