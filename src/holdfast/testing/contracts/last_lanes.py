"""Gates that jobs of lanes of weight 0 share with others: those come last here as well, and keep nothing from them."""

from __future__ import annotations

from holdfast.core.fairness import Lane
from holdfast.core.gates import Barrier, Place, RateGate, SlotGate, WhenFull
from holdfast.core.job import JobId, WorkerId
from holdfast.core.queue import QueueSettings
from holdfast.core.rate import Pace
from holdfast.core.state import State
from holdfast.stores.base import Store
from holdfast.testing.contracts.arrange import (
    LANE,
    LONG_S,
    PLENTY,
    Run,
    a_job,
    claim,
    drain,
    finish,
    insert,
    serve,
    start,
    state,
    states,
)
from holdfast.testing.contracts.gates import nothing_is_left, use

LIMIT = SlotGate("bank", 1)
SWAP = SlotGate("document", 1, when_full=WhenFull.REPLACE)
AT_LIMIT = Place(Barrier.LIMIT, LIMIT.key)
LAST = Lane("backfill", 5)


async def _weigh(store: Store, queue: str, weight: float) -> None:
    await store.set_queue(queue, QueueSettings(weight=weight), only=("weight",))


async def _line(store: Store, run: Run, *lanes: Lane) -> list[JobId]:
    """Jobs that wait for the slot of that run, in this order."""
    ids = []
    for lane in lanes:
        ids += await insert(store, a_job(gates=(LIMIT,), queue=lane.queue, priority=lane.priority))
        assert await drain(store, run.worker, lane) == [], "the limit is full"
    return ids


async def check_whoever_comes_last_waits_behind_the_others(store: Store) -> None:
    await _weigh(store, LAST.queue, 0)
    run = await start(store, gates=(LIMIT,))
    last, other = await _line(store, run, LAST, LANE)
    await finish(store, run)
    await serve(store)
    assert await states(store, last, other) == [State.PARKED, State.READY], "the older one comes last"
    assert await use(store, AT_LIMIT) == (1, 1), "the slot is kept for the other"
    [job] = await claim(store, run.worker)
    assert job.id == other
    await finish(store, Run(run.worker, job))
    await serve(store)
    [job] = await claim(store, run.worker, lane=LAST)
    assert job.id == last, "what is left is for it"
    await finish(store, Run(run.worker, job))
    await nothing_is_left(store)


async def check_a_priority_comes_last_as_a_queue_does(store: Store) -> None:
    bulk = Lane(LANE.queue, 0)
    await store.set_queue(LANE.queue, QueueSettings(weights={"bulk": 0}), only=("weights",))
    run = await start(store, gates=(LIMIT,))
    last, other = await _line(store, run, bulk, LANE)
    await finish(store, run)
    await serve(store)
    assert await states(store, last, other) == [State.PARKED, State.READY], "of one queue, too"


async def check_nothing_is_kept_for_whoever_comes_last(store: Store) -> None:
    await _weigh(store, LAST.queue, 0)
    run = await start(store, gates=(LIMIT,))
    older, younger = await _line(store, run, LAST, LAST)
    await finish(store, run)
    await serve(store)
    assert await states(store, older, younger) == [State.READY, State.PARKED], "one for what is left, the older"
    assert await use(store, AT_LIMIT) == (0, 1), "and it may be taken meanwhile"
    [newcomer] = await insert(store, a_job(gates=(LIMIT,)))
    [job] = await claim(store, run.worker)
    assert job.id == newcomer, "by whoever does not come last"
    assert await drain(store, run.worker, LAST) == [], "so it waits again"
    assert await states(store, older, younger) == [State.PARKED] * 2
    await finish(store, Run(run.worker, job))
    await serve(store)
    [job] = await claim(store, run.worker, lane=LAST)
    assert job.id == older, "at its old place"


async def check_slots_that_were_kept_go_on_when_a_lane_is_put_last(store: Store) -> None:
    run = await start(store, gates=(LIMIT,))
    first, second = await _line(store, run, LAST, LANE)
    await finish(store, run)
    await serve(store)
    assert await states(store, first, second) == [State.READY, State.PARKED], "as long as both have their share"
    await _weigh(store, LAST.queue, 0)
    await serve(store)
    assert await state(store, second) is State.READY, "whoever comes last keeps nobody waiting"
    [job] = await claim(store, run.worker)
    assert job.id == second
    assert await drain(store, run.worker, LAST) == [], "the slot is taken"
    assert await use(store, AT_LIMIT) == (1, 1)


async def check_whoever_comes_last_replaces_nobody_who_came_later(store: Store) -> None:
    await _weigh(store, LAST.queue, 0)
    older, worker = await _next_of(store, SWAP)
    [newer] = await insert(store, a_job(gates=(SWAP,)))
    jobs = await drain(store, worker)
    await serve(store)
    jobs += await claim(store, worker)
    assert [job.id for job in jobs] == [newer]
    assert await state(store, older) is State.CANCELLED, "the newer one went instead of it"
    assert await drain(store, worker, LAST) == []
    assert await store.cancel_requests(worker) == [], "and nobody goes instead of the newer one"


async def check_whoever_is_put_last_replaces_nobody_who_came_later(store: Store) -> None:
    older, worker = await _next_of(store, SWAP)
    await _weigh(store, LAST.queue, 0)
    await store.sweep(limit=PLENTY)
    assert await use(store, Place(Barrier.LIMIT, SWAP.key)) == (1, 0), "it has its slot still"
    [job] = await claim(store, worker, lane=LAST)
    assert job.id == older


async def check_whoever_comes_last_keeps_only_what_it_would_replace_for(store: Store) -> None:
    await _weigh(store, LAST.queue, 0)
    await _next_of(store, SWAP, LIMIT)
    assert await use(store, Place(Barrier.LIMIT, SWAP.key)) == (1, 0)
    assert await use(store, AT_LIMIT) == (0, 0), "others need not wait for its other limit"


async def check_whoever_is_put_last_keeps_only_what_it_would_replace_for(store: Store) -> None:
    await _next_of(store, SWAP, LIMIT)
    assert await use(store, AT_LIMIT) == (1, 0), "as long as it has its share"
    await _weigh(store, LAST.queue, 0)
    assert await use(store, AT_LIMIT) == (0, 0), "others need not wait for it"
    assert await use(store, Place(Barrier.LIMIT, SWAP.key)) == (1, 0)


async def _next_of(store: Store, *gates: SlotGate) -> tuple[JobId, WorkerId]:
    """A job of the queue that may come last has waited at the first of these, and is ready now."""
    run = await start(store, gates=gates[:1])
    [job_id] = await insert(store, a_job(gates=gates, queue=LAST.queue))
    assert await drain(store, run.worker, LAST) == [], "the first is asked to stop"
    await finish(store, run)
    await serve(store)
    assert await state(store, job_id) is State.READY
    return job_id, run.worker


async def check_who_does_not_come_last_any_more_has_its_place_again(store: Store) -> None:
    await _weigh(store, LAST.queue, 0)
    run = await start(store, gates=(LIMIT,))
    oldest, *others = await _line(store, run, LAST, LANE, LANE)
    await finish(store, run)
    await serve(store)
    assert await states(store, oldest, *others) == [State.PARKED, State.READY, State.PARKED], "it went behind them"
    await _weigh(store, LAST.queue, 1)
    [job] = await claim(store, run.worker)
    await finish(store, Run(run.worker, job))
    await serve(store)
    assert await states(store, oldest, others[1]) == [State.READY, State.PARKED], "the oldest is the first again"


async def check_who_is_moved_to_another_lane_has_its_place_again(store: Store) -> None:
    await _weigh(store, LAST.queue, 0)
    run = await start(store, gates=(LIMIT,))
    oldest, *others = await _line(store, run, LAST, LANE, LANE)
    await finish(store, run)
    await serve(store)
    assert await store.move_jobs([oldest], queue=LANE.queue, priority=None) == 1
    [job] = await claim(store, run.worker)
    await finish(store, Run(run.worker, job))
    await serve(store)
    assert await states(store, oldest, others[1]) == [State.READY, State.PARKED], "before those that came later"


async def check_a_great_many_who_come_last_are_passed_by(store: Store) -> None:
    await _weigh(store, LAST.queue, 0)
    run = await start(store, gates=(LIMIT,))
    crowd = await insert(store, *(a_job(gates=(LIMIT,), queue=LAST.queue) for _ in range(250)))
    assert await drain(store, run.worker, LAST) == []
    [other] = await _line(store, run, LANE)
    await finish(store, run)
    await serve(store)
    assert await state(store, other) is State.READY, "however many are older"
    assert set(await states(store, *crowd)) == {State.PARKED}, "and none of them is let go in vain"


async def check_tokens_are_first_for_those_who_do_not_come_last(store: Store) -> None:
    rate = RateGate("mail", Pace(1, LONG_S, 1))
    await _weigh(store, LAST.queue, 0)
    run = await start(store, gates=(rate,))
    [last] = await insert(store, a_job(gates=(rate,), queue=LAST.queue))
    [other] = await insert(store, a_job(gates=(rate,)))
    assert await drain(store, run.worker, LAST) == [], "no token"
    assert await drain(store, run.worker) == [], "nor is there one for it"
    await store.set_limit("mail", size=None, pace=Pace(1, LONG_S, 2), by="me")  # there is one
    await serve(store)
    assert await states(store, last, other) == [State.PARKED, State.READY], "the older one comes last"
