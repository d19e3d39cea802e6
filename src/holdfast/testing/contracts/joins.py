"""Jobs that wait for others: released once, when the last of them has ended, by whatever ending."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from holdfast.core.fairness import Lane
from holdfast.core.job import NewJob
from holdfast.core.loss import ALONE_FROM, MAX_CRASHES
from holdfast.core.settlement import Bury, Cancel, Park, Retry, Snooze, Succeed, Verdict
from holdfast.core.state import State
from holdfast.stores.base import CancelAnswer, Inserted, Store
from holdfast.testing.contracts.arrange import (
    ERROR,
    LONG_S,
    PLENTY,
    PRIORITY,
    Run,
    a_job,
    an_id,
    apply,
    claim,
    drain,
    due,
    enlist,
    finish,
    insert,
    lose,
    resume,
    settle,
    start,
    state,
    states,
)

AFTER = Lane("after", PRIORITY)


def _follower(*members: object, **overrides: Any) -> NewJob:
    """A job in a queue of its own that waits for others."""
    return a_job(queue=AFTER.queue, waits_for=members, **overrides)


async def _succeed(store: Store, run: Run) -> None:
    await apply(store, run.worker, Succeed(run.id, run.token, None))


async def _bury(store: Store, run: Run) -> None:
    await apply(store, run.worker, Bury(run.id, run.token, "permanent", ERROR))


async def _honour_cancel(store: Store, run: Run) -> None:
    await apply(store, run.worker, Cancel(run.id, run.token, "asked to"))


async def _cancel_on_retry(store: Store, run: Run) -> None:
    await store.cancel_jobs([run.id], reason="not needed")
    await apply(store, run.worker, Retry(run.id, run.token, 0, ERROR))


async def _cancel_while_waiting(store: Store, run: Run) -> None:
    await apply(store, run.worker, Retry(run.id, run.token, LONG_S, ERROR))
    await store.cancel_jobs([run.id], reason="not needed")


async def _cancel_on_reap(store: Store, run: Run) -> None:
    await store.cancel_jobs([run.id], reason="not needed")
    await lose(store, run.worker)


async def _purge(store: Store, run: Run) -> None:
    await apply(store, run.worker, Retry(run.id, run.token, LONG_S, ERROR))
    await store.purge_queue(run.job.queue, reason="emptied", limit=1)


async def _poison(store: Store, run: Run) -> None:
    for _ in range(ALONE_FROM + MAX_CRASHES - 1):
        await lose(store, run.worker)
        run = await resume(store, run.id)
    await lose(store, run.worker)


ENDINGS: list[Callable[[Store, Run], Awaitable[None]]] = [
    _succeed,
    _bury,
    _honour_cancel,
    _cancel_on_retry,
    _cancel_while_waiting,
    _cancel_on_reap,
    _purge,
    _poison,
]


async def check_every_ending_releases(store: Store) -> None:
    for end in ENDINGS:
        run = await start(store)
        follower = _follower(run.id)
        answers = await store.insert_jobs([follower])
        assert answers == [Inserted(follower.id, State.BLOCKED)], f"got {answers}"
        assert await claim(store, await enlist(store), lane=AFTER) == [], "a blocked job is not claimed"
        await end(store, run)
        found = await state(store, follower.id)
        assert found is State.READY, f"after {end.__name__} the follower is {found}"
        await drain(store, await enlist(store), AFTER)


async def check_an_expired_job_releases(store: Store) -> None:
    late = a_job(delay_s=LONG_S, expires_at=1.0)
    follower = _follower(late.id)
    await insert(store, late, follower)
    await store.expire_jobs(limit=PLENTY)
    found = await state(store, follower.id)
    assert found is State.READY, f"an expired job has ended; the follower is {found}"


async def check_an_expired_job_releases_when_a_claim_finds_it(store: Store) -> None:
    late = a_job(expires_at=1.0)
    follower = _follower(late.id)
    await insert(store, late, follower)
    await drain(store, await enlist(store))
    await store.expire_jobs(limit=PLENTY)
    found = await state(store, follower.id)
    assert found is State.READY, f"an expired job has ended; the follower is {found}"


async def check_only_the_last_of_several_releases(store: Store) -> None:
    runs = [await start(store) for _ in range(len(ENDINGS))]
    follower = _follower(*(run.id for run in runs))
    await insert(store, follower)
    for end, run in zip(ENDINGS, runs, strict=True):
        found = await state(store, follower.id)
        assert found is State.BLOCKED, f"before {end.__name__} the follower is {found}"
        await end(store, run)
    assert await state(store, follower.id) is State.READY, "all have ended"
    await due(store)
    assert len(await drain(store, await enlist(store), AFTER)) == 1, "it is released once"


async def check_a_run_that_does_not_end_its_job_releases_nothing(store: Store) -> None:
    run = await start(store)
    follower = _follower(run.id)
    await insert(store, follower)
    await apply(store, run.worker, Retry(run.id, run.token, 0, ERROR))
    await due(store)
    run = await resume(store, run.id, worker=run.worker)
    await apply(store, run.worker, Snooze(run.id, run.token, 0, ERROR))
    await due(store)
    run = await resume(store, run.id, worker=run.worker)
    await apply(store, run.worker, Park(run.id, run.token, "asleep", "bed"))
    await store.unpark_jobs(reason="asleep", keys=["bed"])
    run = await resume(store, run.id, worker=run.worker)
    await lose(store, run.worker)
    run = await resume(store, run.id)
    assert await state(store, follower.id) is State.BLOCKED, "the job has not ended yet"
    await finish(store, run)
    assert await state(store, follower.id) is State.READY, "now it has"


async def check_the_last_two_may_end_in_one_batch(store: Store) -> None:
    worker = await enlist(store)
    ids = await insert(store, a_job(), a_job(), a_job())
    follower = _follower(*ids)
    await insert(store, follower)
    first, second, third = await claim(store, worker)
    await apply(store, worker, Succeed(first.id, first.token, None))
    await apply(store, worker, Succeed(second.id, second.token, None), Bury(third.id, third.token, "permanent", ERROR))
    assert await state(store, follower.id) is State.READY, "both count"


async def check_the_last_two_may_end_at_the_same_time(store: Store) -> None:
    for _ in range(10):
        runs = [await start(store) for _ in range(3)]
        follower = _follower(*(run.id for run in runs))
        await insert(store, follower)
        await asyncio.gather(*(_succeed(store, run) for run in runs))
        found = await state(store, follower.id)
        assert found is State.READY, f"whoever comes last releases; the follower is {found}"
        await drain(store, await enlist(store), AFTER)


async def check_a_member_that_ends_twice_counts_once(store: Store) -> None:
    twice, other = await start(store), await start(store)
    follower = _follower(twice.id, other.id)
    await insert(store, follower)
    await _bury(store, twice)
    await store.replay_jobs([twice.id])
    again = await resume(store, twice.id)
    await finish(store, again)
    assert await state(store, follower.id) is State.BLOCKED, "the other one has not ended"
    await finish(store, other)
    assert await state(store, follower.id) is State.READY, "now it has"


async def check_a_settlement_sent_twice_counts_once(store: Store) -> None:
    one, other = await start(store), await start(store)
    follower = _follower(one.id, other.id)
    await insert(store, follower)
    success = Succeed(one.id, one.token, None)
    verdicts = await settle(store, one.worker, success, success)
    verdicts += await settle(store, one.worker, success)
    assert verdicts == [Verdict.APPLIED, Verdict.ALREADY, Verdict.ALREADY], f"got {verdicts}"
    assert await state(store, follower.id) is State.BLOCKED, "one member has arrived, once"


async def check_the_same_member_named_twice_counts_once(store: Store) -> None:
    one, other = await start(store), await start(store)
    follower = _follower(one.id, one.id, other.id)
    await insert(store, follower)
    await finish(store, one)
    assert await state(store, follower.id) is State.BLOCKED, "the other one has not ended"
    await finish(store, other)
    assert await state(store, follower.id) is State.READY, "all have ended"


async def check_waiting_for_what_has_ended_is_not_waiting(store: Store) -> None:
    done, buried = await start(store), await start(store)
    await finish(store, done)
    await _bury(store, buried)
    [cancelled] = await insert(store, a_job())
    await store.cancel_jobs([cancelled], reason="not needed")
    follower = _follower(done.id, buried.id, cancelled)
    answers = await store.insert_jobs([follower])
    assert answers == [Inserted(follower.id, State.READY)], f"got {answers}"


async def check_waiting_for_ended_and_living_jobs(store: Store) -> None:
    done, running = await start(store), await start(store)
    await finish(store, done)
    follower = _follower(done.id, running.id)
    await insert(store, follower)
    assert await state(store, follower.id) is State.BLOCKED, "one still runs"
    await finish(store, running)
    assert await state(store, follower.id) is State.READY, "all have ended"


async def check_a_job_may_wait_for_one_of_its_own_batch(store: Store) -> None:
    first = a_job()
    second = _follower(first.id)
    third = _follower(first.id, second.id)
    answers = await store.insert_jobs([first, second, third])
    assert answers == [
        Inserted(first.id, State.READY),
        Inserted(second.id, State.BLOCKED),
        Inserted(third.id, State.BLOCKED),
    ], f"got {answers}"
    await finish(store, await resume(store, first.id))
    await finish(store, await resume(store, second.id, lane=AFTER))
    await finish(store, await resume(store, third.id, lane=AFTER))


async def check_many_may_wait_for_one(store: Store) -> None:
    run = await start(store)
    followers = [_follower(run.id) for _ in range(20)]
    await insert(store, *followers)
    await finish(store, run)
    got = {job.id for job in await drain(store, await enlist(store), AFTER)}
    assert got == {job.id for job in followers}, f"all are released: {got}"


async def check_a_cancelled_follower_stays_cancelled(store: Store) -> None:
    run = await start(store)
    follower = _follower(run.id)
    last = _follower(follower.id)
    await insert(store, follower, last)
    answers = await store.cancel_jobs([follower.id], reason="not needed")
    assert answers == [CancelAnswer.CANCELLED], f"got {answers}"
    assert await state(store, last.id) is State.READY, "its ending releases those that wait for it"
    await finish(store, run)
    assert await state(store, follower.id) is State.CANCELLED, "an ending is final"


async def check_repeating_the_insert_of_a_follower_changes_nothing(store: Store) -> None:
    run, other = await start(store), await start(store)
    follower = _follower(run.id, other.id)
    await insert(store, follower)
    await finish(store, run)
    await store.insert_jobs([follower])
    assert await state(store, follower.id) is State.BLOCKED, "one still runs"
    await finish(store, other)
    assert await state(store, follower.id) is State.READY, "all have ended"
    await drain(store, await enlist(store), AFTER)
    await store.insert_jobs([follower])
    assert await state(store, follower.id) is State.RUNNING, "it has moved on"


async def check_nobody_waits_for_an_unknown_job_for_ever(store: Store) -> None:
    follower = _follower(an_id())
    await insert(store, follower)
    found = await state(store, follower.id)
    assert found is State.READY, f"what is not in the store has been pruned, and so has ended; got {found}"


async def check_a_follower_keeps_its_own_time(store: Store) -> None:
    first = await start(store)
    late, soon = a_job(waits_for=(first.id,), delay_s=LONG_S), a_job(waits_for=(first.id,), delay_s=0)
    await insert(store, late, soon)
    await finish(store, first)
    assert await states(store, late.id, soon.id) == [State.SCHEDULED, State.READY], "its delay counts as well"
