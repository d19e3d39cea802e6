"""Closed queues: one that drains accepts nothing; and who waits at a gate counts into a queue's depth."""

from __future__ import annotations

from holdfast.core.backpressure import Watermarks
from holdfast.core.gates import SlotGate
from holdfast.core.queue import QueueInfo, QueueSettings
from holdfast.core.settlement import Retry
from holdfast.core.state import State
from holdfast.stores.base import Full, Inserted, Store, Withheld
from holdfast.testing.contracts.arrange import (
    ERROR,
    LANE,
    PLENTY,
    QUEUE,
    TASK,
    Run,
    a_job,
    apply,
    claim,
    drain,
    due,
    enlist,
    finish,
    insert,
    serve,
    state,
    states,
)

DRAINING = QueueSettings(draining=True)
HIGH, LOW = 4, 2
ONE = SlotGate("printer", 1)


async def check_a_draining_queue_accepts_nothing(store: Store) -> None:
    [there] = await insert(store, a_job())
    await store.set_queue(QUEUE, DRAINING, by="me")
    refused, other = a_job(), a_job(queue="other")
    answers = await store.insert_jobs([refused, other])
    assert isinstance(answers[0], Full), f"got {answers}"
    assert (answers[0].queue, answers[0].draining) == (QUEUE, True), f"to wait is of no use: {answers}"
    assert isinstance(answers[1], Inserted), f"another queue is another matter: {answers}"
    assert await states(store, refused.id) == [None], "a refused job is not in the store"
    [queue] = [each for each in await store.list_queues() if each.name == QUEUE]
    assert not queue.accepting, f"it says so: {queue}"
    assert queue.settings.draining, f"it says why: {queue}"
    [again] = await store.insert_jobs([a_job(id=there)])
    assert isinstance(again, Inserted), f"what is there must not be denied: {again}"
    await store.set_queue(QUEUE, QueueSettings(), by="me")
    await insert(store, a_job())


async def check_all_or_nothing_with_a_draining_queue(store: Store) -> None:
    await store.set_queue(QUEUE, DRAINING, by="me")
    other, refused = a_job(queue="other"), a_job()
    answers = await store.insert_jobs([other, refused], whole=True)
    assert answers[0] == Withheld(), f"got {answers}"
    assert isinstance(answers[1], Full), f"got {answers}"
    assert await states(store, other.id, refused.id) == [None, None]


async def check_what_a_draining_queue_has_goes_on(store: Store) -> None:
    ids = await insert(store, a_job(), a_job(run_at=1.0), a_job())
    await store.set_queue(QUEUE, DRAINING, by="me")
    worker = await enlist(store)
    [job] = await claim(store, worker, 1)
    await apply(store, worker, Retry(job.id, job.token, 0, ERROR))
    follow_up = a_job()
    answers = await store.insert_jobs([follow_up], admit=False)
    assert answers == [Inserted(follow_up.id, State.READY)], f"follow-ups go in: {answers}"
    await due(store)
    got = {job.id for job in await drain(store, worker)}
    assert got == {*ids, follow_up.id}, f"retries and what was scheduled as well: {got}"


async def check_draining_is_one_setting_of_many(store: Store) -> None:
    await store.set_queue(QUEUE, QueueSettings(weight=3.0), by="me")
    await store.set_queue(QUEUE, DRAINING, only=("draining",), by="me")
    found = (await store.queue_settings())[QUEUE]
    assert (found.draining, found.weight) == (True, 3.0), f"got {found}"


# ---------------------------------------------------------------- depth


async def _queue(store: Store) -> QueueInfo:
    [found] = [each for each in await store.list_queues() if each.name == QUEUE]
    return found


async def _one_runs_and_others_wait(store: Store) -> Run:
    """Of a queue with marks: one job runs, and as many as the high mark wait at their gate."""
    await store.set_queue(QUEUE, QueueSettings(watermarks=Watermarks(high=HIGH, low=LOW)), by="me")
    await insert(store, *(a_job(gates=(ONE,)) for _ in range(HIGH - 1)))
    worker = await enlist(store)
    [job] = await drain(store, worker)
    await insert(store, *(a_job(gates=(ONE,)) for _ in range(2)))
    assert await drain(store, worker) == [], "the limit is reached"
    found = await _queue(store)
    assert (found.ready, found.parked, found.running) == (0, HIGH, 1), f"got {found}"
    return Run(worker, job)


async def check_who_waits_at_a_gate_counts_into_the_depth(store: Store) -> None:
    run = await _one_runs_and_others_wait(store)
    [answer] = await store.insert_jobs([a_job()])
    assert isinstance(answer, Full), f"a backlog is one wherever it waits: {answer}"
    assert answer.depth == HIGH, f"got {answer}"
    worker = run.worker
    for left in (HIGH - 1, HIGH - 2):
        await finish(store, run)
        await serve(store)
        [answer] = await store.insert_jobs([a_job()])
        assert isinstance(answer, Full), f"{left} wait, one of them is ready: {answer}"
        [job] = await drain(store, worker)
        run = Run(worker, job)
    await insert(store, a_job())
    found = await _queue(store)
    assert (found.ready, found.parked, found.accepting) == (1, LOW, True), f"down to the low mark: {found}"


async def check_whatever_takes_waiters_away_opens_the_queue(store: Store) -> None:
    await _one_runs_and_others_wait(store)
    await store.insert_jobs([a_job()])
    waiting = await store.purge_queue(QUEUE, reason="enough", limit=PLENTY)
    assert waiting == HIGH, f"parked jobs are purged as others: {waiting}"
    await insert(store, a_job())
    found = await _queue(store)
    assert (found.ready, found.parked, found.accepting) == (1, 0, True), f"got {found}"


async def check_a_paused_task_fills_its_queue(store: Store) -> None:
    await store.set_queue(QUEUE, QueueSettings(watermarks=Watermarks(high=HIGH, low=LOW)), by="me")
    await store.set_paused(task=TASK, paused=True, by="me")
    ids = await insert(store, *(a_job() for _ in range(HIGH)))
    worker = await enlist(store)
    assert await drain(store, worker) == []
    [answer] = await store.insert_jobs([a_job()])
    assert isinstance(answer, Full), f"nobody drains it: {answer}"
    await store.set_paused(task=TASK, paused=False, by="me")
    await serve(store)
    [answer] = await store.insert_jobs([a_job()])
    assert isinstance(answer, Full), f"ready instead of parked is as deep: {answer}"
    assert [job.id for job in await claim(store, worker, LANE.priority)] == ids
    await insert(store, a_job())


async def check_the_sweep_finds_nothing_to_put_right(store: Store) -> None:
    run = await _one_runs_and_others_wait(store)
    assert (await store.sweep(limit=PLENTY)).counters_fixed == 0, "counted as they went"
    await finish(store, run)
    await serve(store)
    assert await state(store, run.id) is State.SUCCEEDED
    assert (await store.sweep(limit=PLENTY)).counters_fixed == 0, "and as they came back"
    await store.fold_depths(limit=PLENTY)
    assert (await store.sweep(limit=PLENTY)).counters_fixed == 0
