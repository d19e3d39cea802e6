"""Cancelling: what waits ends at once, what runs is flagged; a success that comes first wins."""

from __future__ import annotations

from holdfast.core.cause import Cause
from holdfast.core.settlement import (
    UNKNOWN_TASK,
    Bury,
    Cancel,
    HandBack,
    Park,
    Retry,
    Settlement,
    Snooze,
    Succeed,
    Verdict,
)
from holdfast.core.state import State
from holdfast.stores.base import CancelAnswer, CancelRequest, Store
from holdfast.testing.contracts.arrange import (
    ERROR,
    LONG_S,
    TASK,
    Run,
    a_job,
    an_id,
    apply,
    claim,
    drain,
    due,
    enlist,
    finish,
    info,
    insert,
    settle,
    start,
    states,
)

WHY = "not needed any more"


async def _asked(store: Store) -> Run:
    """A running job that somebody asked to cancel."""
    run = await start(store)
    answers = await store.cancel_jobs([run.id], reason=WHY)
    assert answers == [CancelAnswer.REQUESTED], f"got {answers}"
    return run


async def _ended_cancelled(store: Store, run: Run) -> None:
    found = await info(store, run.id)
    assert (found.state, found.reason) == (State.CANCELLED, WHY), f"got {found}"
    assert found.ended_at is not None, f"got {found}"
    await due(store)
    assert await drain(store, await enlist(store)) == [], "a cancelled job never runs again"
    assert (await store.endings([run.id]))[run.id] is not None, "waiters are told of the ending"


async def check_waiting_jobs_end_at_once(store: Store) -> None:
    parked = await start(store)
    await apply(store, parked.worker, Park(parked.id, parked.token, UNKNOWN_TASK, TASK))
    retrying = await start(store)
    await apply(store, retrying.worker, Retry(retrying.id, retrying.token, 0, ERROR))
    blocked = a_job(waits_for=(parked.id,))
    waiting = await insert(store, a_job(), a_job(delay_s=LONG_S), blocked)
    ids = [parked.id, retrying.id, *reversed(waiting)]
    answers = await store.cancel_jobs(ids, reason=WHY)
    assert answers == [CancelAnswer.CANCELLED] * 5, f"got {answers}"
    for found in await store.job_infos(ids):
        assert found is not None, "a cancelled job is kept"
        assert (found.state, found.reason) == (State.CANCELLED, WHY), f"got {found}"
    await due(store)
    await store.unpark_jobs(reason=UNKNOWN_TASK, keys=[TASK])
    assert await drain(store, await enlist(store)) == [], "a cancelled job never runs"


async def check_every_answer_in_order(store: Store) -> None:
    worker = await enlist(store)
    done = await start(store, worker=worker)
    await finish(store, done)
    buried = await start(store, worker=worker)
    await apply(store, worker, Bury(buried.id, buried.token, "permanent", ERROR))
    running = await start(store, worker=worker)
    [ready] = await insert(store, a_job())
    ids = [ready, an_id(), running.id, done.id, buried.id]
    answers = await store.cancel_jobs(ids, reason=WHY)
    assert answers == [
        CancelAnswer.CANCELLED,
        CancelAnswer.MISSING,
        CancelAnswer.REQUESTED,
        CancelAnswer.ENDED,
        CancelAnswer.ENDED,
    ], f"got {answers}"
    found = await states(store, ready, running.id, done.id, buried.id)
    assert found == [State.CANCELLED, State.RUNNING, State.SUCCEEDED, State.DEAD], f"got {found}"


async def check_cancelling_twice(store: Store) -> None:
    [ready] = await insert(store, a_job())
    await store.cancel_jobs([ready], reason=WHY)
    answers = await store.cancel_jobs([ready], reason="again")
    assert answers == [CancelAnswer.ENDED], f"got {answers}"
    assert (await info(store, ready)).reason == WHY, "the first word counts"
    assert await store.cancel_jobs([], reason=WHY) == [], "nothing asked, nothing answered"


async def check_the_worker_of_a_running_job_is_told(store: Store) -> None:
    run = await _asked(store)
    other = await start(store)
    requests = await store.cancel_requests(run.worker)
    assert requests == [CancelRequest(run.id, run.token, WHY)], f"got {requests}"
    assert await store.cancel_requests(other.worker) == [], "others are not concerned"
    found = await info(store, run.id)
    assert (found.state, found.cancel_requested) == (State.RUNNING, True), f"got {found}"
    await apply(store, run.worker, Cancel(run.id, run.token, WHY))
    assert await store.cancel_requests(run.worker) == [], "it was honoured"
    await _ended_cancelled(store, run)


async def check_success_that_comes_first_wins(store: Store) -> None:
    run = await _asked(store)
    await apply(store, run.worker, Succeed(run.id, run.token, b'"done"'))
    found = await info(store, run.id)
    assert (found.state, found.result) == (State.SUCCEEDED, "done"), f"got {found}"


async def check_death_stays_death(store: Store) -> None:
    run = await _asked(store)
    await apply(store, run.worker, Bury(run.id, run.token, "permanent", ERROR))
    found = await info(store, run.id)
    assert (found.state, found.reason) == (State.DEAD, "permanent"), f"got {found}"


async def _becomes_cancelled(store: Store, run: Run, settlement: Settlement) -> None:
    await apply(store, run.worker, settlement)
    await _ended_cancelled(store, run)
    verdicts = await settle(store, run.worker, settlement)
    assert verdicts == [Verdict.ALREADY], f"a repeat is told apart here, too: {verdicts}"


async def check_a_retry_becomes_cancelled(store: Store) -> None:
    run = await _asked(store)
    await _becomes_cancelled(store, run, Retry(run.id, run.token, 0, ERROR))


async def check_a_snooze_becomes_cancelled(store: Store) -> None:
    run = await _asked(store)
    await _becomes_cancelled(store, run, Snooze(run.id, run.token, 0, ERROR))


async def check_a_hand_back_becomes_cancelled(store: Store) -> None:
    run = await _asked(store)
    await _becomes_cancelled(store, run, HandBack(run.id, run.token, "drained"))


async def check_a_park_becomes_cancelled(store: Store) -> None:
    run = await _asked(store)
    await _becomes_cancelled(store, run, Park(run.id, run.token, UNKNOWN_TASK, TASK))


async def check_a_removed_workers_job_becomes_cancelled(store: Store) -> None:
    run = await _asked(store)
    await store.hand_back_worker(run.worker, cause=Cause.WORKER_LOST, why="killed")
    await _ended_cancelled(store, run)


async def check_a_request_does_not_outlive_its_job(store: Store) -> None:
    run = await _asked(store)
    await apply(store, run.worker, Bury(run.id, run.token, "permanent", ERROR))
    await store.replay_jobs([run.id])
    [again] = await claim(store, run.worker)
    assert await store.cancel_requests(run.worker) == [], "a replay is a new chapter"
    await apply(store, run.worker, Retry(again.id, again.token, LONG_S, ERROR))
    assert await states(store, run.id) == [State.SCHEDULED], "the old request is settled"
