"""Backpressure: a queue closes at its high watermark and opens at its low one."""

from __future__ import annotations

from holdfast.core.backpressure import AgeMarks, Watermarks
from holdfast.core.fairness import Lane
from holdfast.core.gates import SlotGate
from holdfast.core.queue import QueueSettings
from holdfast.core.state import State
from holdfast.stores.base import Full, Inserted, Store, Withheld
from holdfast.testing.contracts.arrange import (
    LANE,
    LONG_S,
    PLENTY,
    QUEUE,
    a_job,
    claim,
    drain,
    due,
    enlist,
    insert,
    start,
    states,
)

HIGH, LOW = 4, 2


async def _bound(store: Store, queue: str = QUEUE) -> None:
    await store.set_queue(queue, QueueSettings(watermarks=Watermarks(high=HIGH, low=LOW)))


async def _fill(store: Store) -> None:
    """Up to the high mark, and past the refusal that closes the queue."""
    await _bound(store)
    await insert(store, *(a_job() for _ in range(HIGH)))
    refused = a_job()
    answers = await store.insert_jobs([refused])
    assert answers == [Full(QUEUE, depth=HIGH, high=HIGH, low=LOW)], f"got {answers}"
    assert await states(store, refused.id) == [None], "a refused job is not in the store"


async def check_a_queue_is_full_at_its_high_mark(store: Store) -> None:
    await _fill(store)
    [queue] = [queue for queue in await store.list_queues() if queue.name == QUEUE]
    assert not queue.accepting, f"a closed queue says so: {queue}"
    assert queue.ready == HIGH, f"got {queue}"


async def check_a_full_queue_says_how_much_of_it_is_parked(store: Store) -> None:
    await _bound(store)
    gates = (SlotGate("one", 1),)
    run = await start(store, gates=gates)
    await insert(store, *(a_job(gates=gates) for _ in range(HIGH - 1)))
    assert await claim(store, run.worker) == [], "they wait at their limit"
    await insert(store, a_job())
    [answer] = await store.insert_jobs([a_job()])
    assert answer == Full(QUEUE, depth=HIGH, high=HIGH, low=LOW, parked=HIGH - 1), f"got {answer}"


async def check_a_closed_queue_opens_only_at_its_low_mark(store: Store) -> None:
    await _fill(store)
    worker = await enlist(store)
    await claim(store, worker, HIGH - LOW - 1)
    [answer] = await store.insert_jobs([a_job()])
    assert isinstance(answer, Full), f"between the marks a closed queue stays closed: {answer}"
    await claim(store, worker, 1)
    await insert(store, a_job())
    await insert(store, a_job())  # between the marks an open queue stays open


async def check_cancelling_opens_a_queue_as_claiming_does(store: Store) -> None:
    await _fill(store)
    waiting = await store.purge_queue(QUEUE, reason="enough", limit=HIGH - LOW)
    assert waiting == HIGH - LOW, f"got {waiting}"
    await insert(store, a_job())


async def check_a_batch_is_admitted_whole_below_the_high_mark(store: Store) -> None:
    await _bound(store)
    await insert(store, a_job())
    await insert(store, *(a_job() for _ in range(HIGH * 3)))


async def check_unadmitted_inserts_pass(store: Store) -> None:
    await _fill(store)
    job = a_job()
    answers = await store.insert_jobs([job], admit=False)
    assert answers == [Inserted(job.id, State.READY)], f"follow-ups do not wait: {answers}"


async def check_each_queue_of_a_batch_is_judged_by_itself(store: Store) -> None:
    await _fill(store)
    await _bound(store, "other")
    here, there = a_job(), a_job(queue="other")
    answers = await store.insert_jobs([here, there])
    assert isinstance(answers[0], Full), f"got {answers}"
    assert answers[1] == Inserted(there.id, State.READY), f"got {answers}"


async def check_whole_with_a_full_queue_inserts_nothing(store: Store) -> None:
    await _fill(store)
    here, there = a_job(), a_job(queue="other")
    answers = await store.insert_jobs([there, here], whole=True)
    assert answers[0] == Withheld(), f"got {answers}"
    assert isinstance(answers[1], Full), f"got {answers}"
    assert await states(store, here.id, there.id) == [None, None], "all or nothing"


async def check_a_repeat_is_answered_by_a_full_queue(store: Store) -> None:
    await _bound(store)
    jobs = [a_job() for _ in range(HIGH)]
    await insert(store, *jobs)
    await store.insert_jobs([a_job()])
    [answer] = await store.insert_jobs(jobs[:1])
    assert isinstance(answer, Inserted), f"its job is in the store, which must not be denied: {answer}"
    assert answer.repeated, f"got {answer}"


async def check_only_ready_jobs_count(store: Store) -> None:
    await _bound(store)
    await insert(store, *(a_job(delay_s=LONG_S) for _ in range(HIGH)))
    await insert(store, a_job())


async def check_returning_jobs_are_never_refused(store: Store) -> None:
    await _bound(store)
    ids = await insert(store, *(a_job(run_at=1.0) for _ in range(HIGH * 2)))
    await due(store)
    found = await states(store, *ids)
    assert found == [State.READY] * len(ids), f"what was accepted is made ready however full the queue is: {found}"


async def check_marks_can_be_raised(store: Store) -> None:
    await _fill(store)
    await store.set_queue(QUEUE, QueueSettings(watermarks=Watermarks(high=HIGH * 10, low=HIGH * 5)))
    await insert(store, a_job())


async def _bound_age(store: Store, high_s: float, low_s: float) -> None:
    await store.set_queue(QUEUE, QueueSettings(ages=AgeMarks(high_s=high_s, low_s=low_s)))


async def check_a_queue_is_full_when_its_oldest_job_is_too_old(store: Store) -> None:
    await _bound_age(store, LONG_S, 1.0)
    await insert(store, a_job(), a_job(priority=9))
    await insert(store, a_job())
    await _bound_age(store, 1e-9, 0.0)
    [answer] = await store.insert_jobs([a_job()])
    assert isinstance(answer, Full), f"its oldest job has waited longer than the high mark: {answer}"
    assert answer.age_s is not None, f"it says how long: {answer}"
    [queue] = await store.list_queues()
    assert not queue.accepting, f"got {queue}"
    await claim(store, await enlist(store), 2)
    [answer] = await store.insert_jobs([a_job()])
    assert isinstance(answer, Full), f"the head of another lane is as old: {answer}"


async def check_it_accepts_again_when_none_is_left(store: Store) -> None:
    await _bound_age(store, LONG_S, 0.0)
    await insert(store, a_job())
    await _bound_age(store, 1e-9, 0.0)
    await store.insert_jobs([a_job()])
    await claim(store, await enlist(store), 1)
    [queue] = await store.list_queues()
    assert queue.accepting, f"whoever drains it opens it: {queue}"
    await insert(store, a_job())


async def check_the_age_of_who_waits_at_a_gate_counts(store: Store) -> None:
    await _bound_age(store, LONG_S, 0.0)
    one = SlotGate("printer", 1)
    await insert(store, a_job(gates=(one,)), a_job(gates=(one,)), a_job(queue="other", gates=(one,)))
    await drain(store, await enlist(store), LANE, Lane("other", LANE.priority))
    found = {queue.name: (queue.ready, queue.parked) for queue in await store.list_queues()}
    assert found == {QUEUE: (0, 1), "other": (0, 1)}, f"the limit is reached, and nothing is ready: {found}"
    await _bound_age(store, 1e-9, 0.0)
    [answer] = await store.insert_jobs([a_job()])
    assert isinstance(answer, Full), f"its oldest job has waited longer than the high mark: {answer}"
    assert answer.age_s is not None, f"it says how long: {answer}"
    await store.purge_queue(QUEUE, reason="enough", limit=PLENTY)
    [queue] = [queue for queue in await store.list_queues() if queue.name == QUEUE]
    assert queue.accepting, f"whoever drains it opens it, and who waits in another queue is another matter: {queue}"
    await insert(store, a_job())


async def check_between_the_marks_of_age_it_stays_as_it_was(store: Store) -> None:
    await _bound_age(store, LONG_S, 0.0)
    await insert(store, a_job())
    await insert(store, a_job())  # open, and older than the low mark
    await _bound_age(store, 1e-9, 0.0)
    await store.insert_jobs([a_job()])
    await _bound_age(store, LONG_S, 0.0)
    [answer] = await store.insert_jobs([a_job()])
    assert isinstance(answer, Full), f"closed, and not yet down to the low mark: {answer}"
    await _bound_age(store, LONG_S, LONG_S / 2)
    await insert(store, a_job())


async def check_both_kinds_of_marks_hold(store: Store) -> None:
    ages = AgeMarks(high_s=LONG_S, low_s=LONG_S / 2)
    await store.set_queue(QUEUE, QueueSettings(watermarks=Watermarks(high=HIGH, low=LOW), ages=ages))
    await insert(store, *(a_job() for _ in range(HIGH)))
    [answer] = await store.insert_jobs([a_job()])
    assert isinstance(answer, Full), f"it is deep, though not old: {answer}"
