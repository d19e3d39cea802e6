"""Replays and unique keys: no replay puts a second job of a key beside the one that is there."""

from __future__ import annotations

import asyncio
from typing import Any

from holdfast.core.job import JobId
from holdfast.core.settlement import Bury, Retry
from holdfast.core.state import LIVE, State
from holdfast.core.unique import EVER, Rekeyed, UniqueClaim, WhenTaken
from holdfast.stores.base import Inserted, Store, Taken
from holdfast.testing.contracts.arrange import (
    ERROR,
    LONG_S,
    Run,
    a_call,
    a_job,
    apply,
    claim,
    due,
    enlist,
    finish,
    insert,
    resume,
    start,
    state,
    states,
)

WAITING = frozenset({State.SCHEDULED})  # what a debounced call looks for


async def _dead(store: Store, *, key: str = "k", **claim: Any) -> JobId:
    run = await start(store, unique=UniqueClaim(key, **claim))
    await apply(store, run.worker, Bury(run.id, run.token, "permanent", ERROR))
    return run.id


async def _ask(store: Store, *, key: str = "k", **claim: Any) -> object:
    [answer] = await store.insert_jobs([a_job(unique=UniqueClaim(key, when_taken=WhenTaken.REJECT, **claim))])
    return answer


async def _live(store: Store, **claim: Any) -> JobId:
    [job_id] = await insert(store, a_job(unique=UniqueClaim("k", **claim)))
    return job_id


async def check_whose_key_another_has_stays_dead(store: Store) -> None:
    dead = await _dead(store)
    newer = await _live(store)
    replayed = await store.replay_jobs([dead])
    assert (replayed, replayed.in_the_way, replayed.kept_back) == (0, {dead: newer}, 1), f"{replayed.in_the_way}"
    assert await states(store, dead, newer) == [State.DEAD, State.READY]
    run = await resume(store, newer)
    assert (await store.replay_jobs([dead])).in_the_way == {dead: newer}, "while it runs"
    await apply(store, run.worker, Retry(run.id, run.token, LONG_S, ERROR))
    assert (await store.replay_jobs([dead])).in_the_way == {dead: newer}, "and while it waits to be run again"
    await store.cancel_jobs([newer], reason="not needed")
    replayed = await store.replay_jobs([dead])
    assert (replayed, replayed.in_the_way) == (1, {}), "the key is free"


async def check_a_replayed_job_has_its_key_again(store: Store) -> None:
    for number in range(2):  # it has kept the key, and: another has had it since
        dead = await _dead(store, key=f"{number}")
        if number:
            between = await start(store, unique=UniqueClaim("1"))
            await finish(store, between)
        assert await store.replay_jobs([dead]) == 1
        assert await _ask(store, key=f"{number}") == Taken(dead), "it lives again"
        run = await resume(store, dead)
        await apply(store, run.worker, Retry(run.id, run.token, 0.0, ERROR))
        assert await _ask(store, key=f"{number}") == Taken(dead), "a retry keeps its key"
        await due(store)
        await finish(store, await resume(store, dead, worker=run.worker))
        assert isinstance(await _ask(store, key=f"{number}"), Inserted), "until it has ended"
        await finish(store, await _next(store))


async def _next(store: Store) -> Run:
    worker = await enlist(store)
    [job] = await claim(store, worker, 1)
    return Run(worker, job)


async def check_of_several_dead_jobs_of_a_key_the_first_goes(store: Store) -> None:
    first, second, other = await _dead(store), await _dead(store), await _dead(store, key="other")
    replayed = await store.replay_jobs([second, first, other, second])
    assert (replayed, replayed.in_the_way) == (2, {first: second}), f"{replayed.in_the_way}"
    assert await states(store, first, second, other) == [State.DEAD, State.READY, State.READY]
    assert (await store.replay_jobs([first])).in_the_way == {first: second}


async def check_what_has_no_key_is_replayed_beside(store: Store) -> None:
    dead = await _dead(store)
    newer = await _live(store)
    run = await start(store, queue="elsewhere")
    await apply(store, run.worker, Bury(run.id, run.token, "permanent", ERROR))
    replayed = await store.replay_jobs([dead, run.id])
    assert (replayed, replayed.in_the_way) == (1, {dead: newer})
    assert await states(store, dead, run.id) == [State.DEAD, State.READY], "the others go on"


async def check_a_replay_replaces_nobody(store: Store) -> None:
    dead = await _dead(store, when_taken=WhenTaken.REPLACE)
    newer = await _live(store, when_taken=WhenTaken.REPLACE)
    assert (await store.replay_jobs([dead])).in_the_way == {dead: newer}, "the newer one is what was asked for last"
    assert await states(store, dead, newer) == [State.DEAD, State.READY]


async def check_a_replayed_job_can_be_replaced(store: Store) -> None:
    dead = await _dead(store)
    await store.replay_jobs([dead])
    newer = await _live(store, when_taken=WhenTaken.REPLACE)
    assert await states(store, dead, newer) == [State.CANCELLED, State.READY]


async def check_the_rule_of_the_dead_job_says_who_is_in_its_way(store: Store) -> None:
    dead = await _dead(store, states=LIVE | {State.SUCCEEDED}, for_s=LONG_S)
    run = await start(store, unique=UniqueClaim("k"))
    await finish(store, run)
    assert (await store.replay_jobs([dead])).in_the_way == {dead: run.id}, "once an hour, and it was done"
    past = await _dead(store, key="past", states=EVER, for_s=0.0)
    await start(store, unique=UniqueClaim("past"))
    assert await store.replay_jobs([past]) == 1, "the moment has passed"


async def check_a_window_is_counted_from_the_enqueueing_of_the_replayed_job(store: Store) -> None:
    dead = await _dead(store, for_s=0.0)
    assert await store.replay_jobs([dead]) == 1
    assert isinstance(await _ask(store, for_s=0.0), Inserted), "it holds nothing any more"


async def check_a_debounced_call_that_waits_is_in_the_way_of_an_older_one(store: Store) -> None:
    debounced: dict[str, Any] = {"states": WAITING, "when_taken": WhenTaken.REPLACE}
    dead = await _dead(store, **debounced)
    [newer] = await insert(store, a_job(unique=UniqueClaim("k", **debounced), delay_s=LONG_S))
    assert (await store.replay_jobs([dead])).in_the_way == {dead: newer}, "the last call counts"


async def check_of_a_crowd_of_replays_and_calls_one_has_the_key(store: Store) -> None:
    dead = [await _dead(store) for _ in range(4)]
    for _ in range(3):
        calls = [a_job(unique=UniqueClaim("k", when_taken=WhenTaken.REJECT)) for _ in range(4)]
        await asyncio.gather(
            *(store.replay_jobs([job_id]) for job_id in dead), *(store.insert_jobs([job]) for job in calls)
        )
        found = await states(store, *dead, *(job.id for job in calls))
        live = [at for at in found if at in LIVE]
        assert live == [State.READY], f"one at a time: {found}"
        run = await _next(store)
        await apply(store, run.worker, Bury(run.id, run.token, "permanent", ERROR))
        assert await state(store, run.id) is State.DEAD


async def check_an_edited_job_gives_its_key_up_for_that_of_its_new_arguments(store: Store) -> None:
    dead = await _dead(store)
    assert await store.edit_dead(dead, payload=a_call("new"), rekeyed=Rekeyed("other", "another"))
    assert await _ask(store, states=EVER) == Taken(dead), "it was not its key that is another now"
    assert await store.edit_dead(dead, payload=a_call("new"), rekeyed=Rekeyed("k", "new"))
    [newer] = await insert(store, a_job(unique=UniqueClaim("k", EVER)))
    await insert(store, a_job(unique=UniqueClaim("other")))
    assert await store.replay_jobs([dead]) == 1, "in nobody's way, and nobody in its"
    assert await states(store, dead, newer) == [State.READY, State.READY]
    assert await _ask(store, key="new") == Taken(dead)


async def check_an_edited_job_is_not_put_beside_one_with_its_new_arguments(store: Store) -> None:
    dead = await _dead(store)
    [there] = await insert(store, a_job(unique=UniqueClaim("new")))
    assert await store.edit_dead(dead, payload=a_call("new"), rekeyed=Rekeyed("k", "new"))
    assert (await store.replay_jobs([dead])).in_the_way == {dead: there}
    assert not await store.edit_dead(there, payload=a_call("k"), rekeyed=Rekeyed("new", "k")), "it is not dead"
    assert await _ask(store, key="new") == Taken(there)
