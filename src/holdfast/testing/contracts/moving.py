"""Moving: waiting jobs are given another queue or priority, and can be told where they stand."""

from __future__ import annotations

from holdfast.core.backpressure import Watermarks
from holdfast.core.fairness import Lane
from holdfast.core.gates import Barrier, Place, SlotGate
from holdfast.core.queue import QueueSettings
from holdfast.core.state import State
from holdfast.stores.base import Full, Store
from holdfast.testing.contracts.arrange import (
    LANE,
    LONG_S,
    PLENTY,
    PRIORITY,
    QUEUE,
    Run,
    a_job,
    an_id,
    claim,
    drain,
    due,
    enlist,
    finish,
    info,
    insert,
    serve,
    start,
    state,
    states,
)

THERE = Lane("there", PRIORITY)
URGENT = Lane(QUEUE, 9)


async def check_ready_jobs_go_to_the_tail_in_the_order_given(store: Store) -> None:
    first, second, third = await insert(store, *(a_job() for _ in range(3)))
    [before] = await insert(store, a_job(queue=THERE.queue))
    assert await store.move_jobs([third, first], queue=THERE.queue, priority=None) == 2
    [after] = await insert(store, a_job(queue=THERE.queue))
    worker = await enlist(store)
    assert [job.id for job in await drain(store, worker)] == [second], "the others have gone"
    jobs = await drain(store, worker, THERE)
    assert [job.id for job in jobs] == [before, third, first, after], f"got {jobs}"
    assert {(job.queue, job.priority) for job in jobs} == {THERE}, "and say where they are"
    found = await info(store, first)
    assert (found.queue, found.priority) == THERE, f"got {found}"


async def check_another_priority_is_another_lane(store: Store) -> None:
    ids = await insert(store, a_job(), a_job())
    assert await store.move_jobs(ids[1:], queue=None, priority=9) == 1
    worker = await enlist(store)
    [job] = await drain(store, worker, URGENT)
    assert (job.id, job.priority) == (ids[1], 9), f"got {job}"
    [job] = await drain(store, worker)
    assert job.id == ids[0]


async def check_whatever_waits_is_moved_and_goes_on_waiting(store: Store) -> None:
    gate = SlotGate("printer", 1)
    run = await start(store, gates=(gate,))
    [parked] = await insert(store, a_job(gates=(gate,)))
    await drain(store, run.worker)
    [scheduled, blocked] = await insert(store, a_job(delay_s=LONG_S), a_job(waits_for=(run.id,)))
    waiting = [parked, scheduled, blocked]
    assert await store.move_jobs(waiting, queue=THERE.queue, priority=9) == 3
    assert await states(store, *waiting) == [State.PARKED, State.SCHEDULED, State.BLOCKED], "each where it was"
    for found in await store.job_infos(waiting):
        assert found is not None
        assert (found.queue, found.priority) == ("there", 9), f"got {found}"
    await finish(store, run)
    await serve(store)
    got = {job.id for job in await drain(store, run.worker, Lane("there", 9))}
    assert got == {parked, blocked}, f"and from there they run: {got}"


async def check_what_runs_or_has_ended_is_passed_over(store: Store) -> None:
    run = await start(store)
    ended = await start(store)
    await finish(store, ended)
    [ready] = await insert(store, a_job())
    ids = [run.id, an_id(), ended.id, ready]
    assert await store.move_jobs(ids, queue=THERE.queue, priority=None) == 1, "one of them waits"
    assert await state(store, run.id) is State.RUNNING
    assert (await info(store, run.id)).queue == QUEUE
    assert (await info(store, ended.id)).queue == QUEUE
    await finish(store, run)


async def check_a_due_time_is_kept(store: Store) -> None:
    [job_id] = await insert(store, a_job(run_at=2.0))
    await store.move_jobs([job_id], queue=THERE.queue, priority=None)
    await due(store)
    assert [job.id for job in await drain(store, await enlist(store), THERE)] == [job_id]


async def check_depths_follow(store: Store) -> None:
    for queue in (QUEUE, THERE.queue):
        await store.set_queue(queue, QueueSettings(watermarks=Watermarks(high=3, low=1)), by="me")
    gate = SlotGate("printer", 1)
    run = await start(store, gates=(gate,))
    [parked] = await insert(store, a_job(gates=(gate,)))
    await drain(store, run.worker)
    ready = await insert(store, a_job(), a_job())
    assert isinstance((await store.insert_jobs([a_job()]))[0], Full), "three wait here"
    await store.move_jobs([parked, *ready], queue=THERE.queue, priority=None)
    await insert(store, a_job())
    assert isinstance((await store.insert_jobs([a_job(queue=THERE.queue)]))[0], Full), "three wait there"
    counts = {each.name: (each.ready, each.parked) for each in await store.list_queues()}
    assert counts == {QUEUE: (1, 0), THERE.queue: (2, 1)}, f"got {counts}"
    await store.fold_depths(limit=PLENTY)
    assert (await store.sweep(limit=PLENTY)).counters_fixed == 0, "they were counted as they went"


async def check_whoever_is_moved_gives_up_its_turn(store: Store) -> None:
    gate = SlotGate("printer", 1)
    run = await start(store, gates=(gate,))
    kept, other = await insert(store, a_job(gates=(gate,)), a_job(gates=(gate,)))
    await drain(store, run.worker)
    await finish(store, run)
    await serve(store)
    assert await states(store, kept, other) == [State.READY, State.PARKED], "the slot is kept for the first"
    await store.move_jobs([kept], queue=THERE.queue, priority=None)
    await serve(store)
    [job] = await drain(store, run.worker, THERE, LANE)
    assert job.id == other, "it stands at the tail, so the slot is for the next"
    await finish(store, Run(run.worker, job))
    await serve(store)
    assert [job.id for job in await drain(store, run.worker, THERE, LANE)] == [kept], "until its turn comes again"


async def check_moving_nothing_and_moving_to_where_it_is(store: Store) -> None:
    assert await store.move_jobs([], queue=THERE.queue, priority=None) == 0
    ids = await insert(store, a_job(), a_job())
    moved = await store.move_jobs(ids[:1], queue=QUEUE, priority=PRIORITY)
    assert moved == 0, f"it is there already: a repeated call is the same as one: {moved}"
    got = [job.id for job in await drain(store, await enlist(store))]
    assert got == ids, f"each at its place: {got}"


async def check_tenants_share_where_they_are_moved_to(store: Store) -> None:
    await insert(store, *(a_job(tenant="a", queue=THERE.queue) for _ in range(4)))
    moved = await insert(store, *(a_job(tenant="b") for _ in range(2)))
    await store.move_jobs(moved, queue=THERE.queue, priority=None)
    got = [job.tenant for job in await claim(store, await enlist(store), 4, lane=THERE)]
    assert got.count("b") == 2, f"as new ones would: {got}"


# ---------------------------------------------------------------- positions


async def check_a_ready_job_can_be_told_its_position(store: Store) -> None:
    before = await store.now()
    ids = await insert(store, *(a_job() for _ in range(4)))
    await insert(store, *(a_job(priority=9) for _ in range(3)))
    for number, job_id in enumerate(ids):
        found = await store.position(job_id)
        assert found is not None, f"{job_id} is ready"
        assert found.ahead == number, f"those before it in its lane: {found}"
        assert abs(found.entered_at.timestamp() - before) < 60, f"got {found}"
    run = Run(worker := await enlist(store), (await claim(store, worker, 1))[0])
    assert await store.position(run.id) is None, "it runs"
    found = await store.position(ids[3])
    assert found is not None
    assert found.ahead == 2, f"one less: {found}"
    [later] = await insert(store, a_job(delay_s=LONG_S))
    assert await store.position(later) is None, "it waits for its time"
    assert await store.position(an_id()) is None, "there is no such job"


async def check_positions_know_of_tenants(store: Store) -> None:
    await insert(store, *(a_job(tenant="a") for _ in range(6)))
    [other] = await insert(store, a_job(tenant="b"))
    found = await store.position(other)
    assert found is not None
    assert found.ahead <= 1, f"the line is by tags: {found}"


# ---------------------------------------------------------------- circumstances

SINGLE = SlotGate("single", 1)
OTHER = SlotGate('other","single', 1)


async def check_a_parked_job_can_be_told_who_comes_first(store: Store) -> None:
    run = await start(store, gates=(SINGLE,))
    first = await start(store, worker=run.worker, gates=(OTHER,))
    ids = await insert(store, *(a_job(gates=(SINGLE,)) for _ in range(3)), a_job(gates=(OTHER,)))
    assert await drain(store, run.worker) == [], "they wait at their limits"
    found = [await store.circumstances(job_id) for job_id in (*ids, run.id)]
    ahead = [each and each.line_ahead for each in found]
    assert ahead == [0, 1, 2, 0, 0], f"those of the same line, of its own line, and of one that runs: {ahead}"
    await finish(store, run)
    await serve(store)
    found = [await store.circumstances(job_id) for job_id in ids[:3]]
    ahead = [each and each.line_ahead for each in found]
    assert ahead == [0, 0, 1], f"the first is ready, the others have moved up: {ahead}"
    holds = [each and each.holds for each in found]
    slot = Place(Barrier.LIMIT, SINGLE.key)
    assert holds == [{slot}, frozenset(), frozenset()], f"the slot is kept for it: {holds}"
    await finish(store, first)


async def check_a_parked_job_can_be_told_who_takes_turns_with_its_lane(store: Store) -> None:
    run = await start(store, gates=(SINGLE,))
    ids = []
    for lane in (LANE, Lane(LANE.queue, 9), Lane("before", 5), LANE):
        ids += await insert(store, a_job(gates=(SINGLE,), queue=lane.queue, priority=lane.priority))
        assert await drain(store, run.worker, lane) == [], "it waits at its limit"
    found = [await store.circumstances(job_id) for job_id in ids]
    lines = [each and (each.line_ahead, each.line_beside) for each in found]
    assert lines == [(0, 2), (0, 3), (0, 3), (1, 2)], f"those of its own lane, and those of others: {lines}"


async def check_runs_that_have_ended_lately_are_counted(store: Store) -> None:
    for _ in range(2):
        await finish(store, await start(store, gates=(SINGLE,)))
    worker = await enlist(store)
    others = await insert(store, *(a_job(priority=9) for _ in range(3)))
    jobs = await drain(store, worker, URGENT)
    assert [job.id for job in jobs] == others
    for job in jobs:
        await finish(store, Run(worker, job))
    await finish(store, await start(store, worker=worker, gates=(OTHER,)))
    unwanted = await insert(store, *(a_job(gates=(SINGLE,)) for _ in range(4)))
    await store.cancel_jobs(unwanted, reason="purged")
    await start(store, worker=worker, gates=(SINGLE,))
    [parked] = await insert(store, a_job(gates=(SINGLE,)))
    assert await drain(store, worker) == []
    found = await store.circumstances(parked)
    assert found is not None
    assert found.lately.of_lane == 3, f"of its queue and priority, without those that never ran: {found}"
    assert found.lately.of_limit == 2, f"of its limit: {found}"
    assert found.lately.stirred == 7, f"six have ended, one has begun: {found}"
    assert 0 < found.lately.over_s <= 60, f"got {found}"
    [ready] = await insert(store, a_job(gates=(SINGLE,)))
    found = await store.circumstances(ready)
    assert found is not None
    assert (found.lately.of_lane, found.lately.of_limit) == (3, 0), f"it is parked nowhere: {found}"
