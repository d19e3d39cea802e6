"""The dead letters: replayed with a fresh budget and all history, edited, purged, and never by themselves."""

from __future__ import annotations

from holdfast.core.cause import Cause
from holdfast.core.settlement import Bury, Retry, Verdict
from holdfast.core.state import State
from holdfast.stores.base import Store
from holdfast.testing.contracts.arrange import (
    ERROR,
    PLENTY,
    Run,
    a_call,
    a_job,
    an_id,
    apply,
    due,
    finish,
    info,
    insert,
    resume,
    settle,
    start,
    state,
    states,
)


async def _dead(store: Store) -> Run:
    run = await start(store)
    await apply(store, run.worker, Bury(run.id, run.token, "permanent", ERROR))
    return run


async def check_a_replayed_job_has_a_fresh_budget_and_its_history(store: Store) -> None:
    run = await start(store, max_attempts=2)
    await apply(store, run.worker, Retry(run.id, run.token, 0, ERROR))
    await due(store)
    run = await resume(store, run.id, worker=run.worker)
    await apply(store, run.worker, Bury(run.id, run.token, "exhausted", ERROR))
    assert await store.replay_jobs([run.id]) == 1, "it was dead"
    found = await info(store, run.id)
    assert (found.state, found.attempt) == (State.READY, 0), f"got {found}"
    assert found.ended_at is None, f"it lives: {found}"
    again = await resume(store, run.id)
    assert again.job.attempt == 1, f"a fresh budget: {again.job}"
    assert again.token > run.token, "tokens grow over replays, too"
    causes = [attempt.cause for attempt in (await info(store, run.id)).attempts]
    assert causes == [Cause.RETRY, Cause.REPLAY], f"the last run before a replay says so: {causes}"
    await finish(store, again, b"1")
    assert await state(store, run.id) is State.SUCCEEDED, "and this time it works"


async def check_only_dead_jobs_are_replayed(store: Store) -> None:
    dead = await _dead(store)
    done = await start(store)
    await finish(store, done)
    running = await start(store)
    [ready] = await insert(store, a_job())
    ids = [done.id, running.id, ready, an_id(), dead.id, dead.id]
    count = await store.replay_jobs(ids)
    assert count == 1, f"those not dead are passed over: {count}"
    found = await states(store, done.id, running.id, ready, dead.id)
    assert found == [State.SUCCEEDED, State.RUNNING, State.READY, State.READY], f"got {found}"
    assert await store.replay_jobs([dead.id]) == 0, "it is not dead any more"
    assert await store.replay_jobs([]) == 0, "nothing asked, nothing done"


async def check_a_replayed_job_has_no_ending(store: Store) -> None:
    run = await _dead(store)
    await store.replay_jobs([run.id])
    assert await store.endings([run.id]) == {}, "live jobs are left out"


async def check_a_settlement_of_the_old_chapter_does_not_touch_the_new_one(store: Store) -> None:
    run = await _dead(store)
    await store.replay_jobs([run.id])
    verdicts = await settle(store, run.worker, Bury(run.id, run.token, "permanent", ERROR))
    assert verdicts == [Verdict.ALREADY], f"it was on record: {verdicts}"
    assert await state(store, run.id) is State.READY, "the replay stands"


async def check_a_dead_job_can_be_edited(store: Store) -> None:
    run = await _dead(store)
    assert await store.edit_dead(run.id, payload=a_call("better")) is True, "it is dead"
    await store.replay_jobs([run.id])
    again = await resume(store, run.id)
    assert again.job.payload == a_call("better"), f"got {again.job}"


async def check_only_dead_jobs_are_edited(store: Store) -> None:
    [ready] = await insert(store, a_job(payload=a_call("good")))
    assert await store.edit_dead(ready, payload=a_call("worse")) is False, "it is not dead"
    assert await store.edit_dead(an_id(), payload=a_call()) is False, "there is no such job"
    run = await resume(store, ready)
    assert run.job.payload == a_call("good"), f"got {run.job}"


async def check_purging_removes_dead_jobs_only(store: Store) -> None:
    dead, kept = await _dead(store), await _dead(store)
    [ready] = await insert(store, a_job())
    count = await store.purge_dead([dead.id, ready, an_id()])
    assert count == 1, f"got {count}"
    found = await states(store, dead.id, kept.id, ready)
    assert found == [None, State.DEAD, State.READY], f"got {found}"
    assert await store.endings([dead.id]) == {dead.id: None}, "there is no such job any more"
    assert await store.replay_jobs([dead.id]) == 0, "and it does not come back"


async def check_nothing_leaves_the_dead_by_itself(store: Store) -> None:
    run = await _dead(store)
    await store.prune_jobs(keep_succeeded_s=0, keep_cancelled_s=0, limit=PLENTY)
    await store.sweep(limit=PLENTY)
    await store.expire_jobs(limit=PLENTY)
    await due(store)
    assert await state(store, run.id) is State.DEAD, "only a person's word moves it"
