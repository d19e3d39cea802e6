"""Windows of unique keys and the pruning of jobs, on both stores, with their clocks moved by hand."""

from __future__ import annotations

import pytest
from tests.contract.by_hand import Played

from holdfast.core.job import JobId, NewJob
from holdfast.core.once_options import Throttle, Unique
from holdfast.core.settlement import Bury
from holdfast.core.state import State
from holdfast.core.unique import UniqueClaim, WhenTaken
from holdfast.runtime.clock import ManualClock
from holdfast.stores.base import Existing, Inserted, Store, Taken
from holdfast.testing.contracts.arrange import ERROR, PLENTY, a_job, apply, finish, insert, start, states

DAY_S = 86_400.0
#: The usual windows, longer than jobs are kept.
THROTTLE = Throttle(every=30 * DAY_S).claim._replace(key="k")
UNIQUE = Unique(for_=30 * DAY_S).claim._replace(key="k")


def a_call(claim: UniqueClaim) -> NewJob:
    return a_job(unique=claim)


async def prune(store: Store, *job_ids: JobId) -> None:
    """All of these, and nobody else; and all keys go that may."""
    assert await store.prune_jobs(keep_succeeded_s=DAY_S, keep_cancelled_s=DAY_S, limit=PLENTY) == len(job_ids)
    assert set(await states(store, *job_ids)) <= {None}
    await store.sweep(limit=PLENTY)


@pytest.mark.parametrize(("claim", "answer"), [(THROTTLE, Existing), (UNIQUE, Taken)])
def test_a_window_outlasts_the_job_that_succeeded_and_was_pruned(
    play: Played, claim: UniqueClaim, answer: type[Existing] | type[Taken]
) -> None:
    async def scenario(store: Store, clock: ManualClock) -> None:
        run = await start(store, unique=claim)
        await finish(store, run)
        clock.advance(2 * DAY_S)
        await prune(store, run.id)
        assert await store.insert_jobs([a_call(claim)]) == [answer(run.id)]
        clock.advance(27.9 * DAY_S)
        assert await store.insert_jobs([a_call(claim)]) == [answer(run.id)]
        clock.advance(0.2 * DAY_S)
        second = a_call(claim)
        assert await store.insert_jobs([second]) == [Inserted(second.id, State.READY)], "the window is over"
        assert await store.insert_jobs([a_call(claim)]) == [answer(second.id)], "and has begun anew"

    play(scenario)


def test_a_key_of_a_window_that_is_over_goes_with_the_next_sweep(play: Played) -> None:
    async def scenario(store: Store, clock: ManualClock) -> None:
        run = await start(store, unique=THROTTLE)
        await finish(store, run)
        clock.advance(2 * DAY_S)
        await prune(store, run.id)
        clock.advance(30 * DAY_S)
        assert (await store.sweep(limit=PLENTY)).keys_dropped == 1

    play(scenario)


def test_of_a_pruned_job_that_was_cancelled_it_is_remembered_that_it_was(play: Played) -> None:
    async def scenario(store: Store, clock: ManualClock) -> None:
        calls = [a_call(THROTTLE), a_call(UNIQUE._replace(key="u"))]
        throttled, cancelled = await insert(store, *calls)
        await store.cancel_jobs([throttled, cancelled], reason="not needed")
        clock.advance(2 * DAY_S)
        await prune(store, throttled, cancelled)
        assert await store.insert_jobs([a_call(THROTTLE)]) == [Existing(throttled)], "the first call counts"
        second = a_call(UNIQUE._replace(key="u"))
        assert await store.insert_jobs([second]) == [Inserted(second.id, State.READY)], "cancelled, it does not count"

    play(scenario)


def test_who_was_pruned_is_in_nobodys_way_beyond_what_the_caller_says(play: Played) -> None:
    async def scenario(store: Store, clock: ManualClock) -> None:
        runs = [await start(store, unique=THROTTLE._replace(key=key)) for key in "ab"]
        for run in runs:
            await finish(store, run)
        clock.advance(2 * DAY_S)
        await prune(store, *(run.id for run in runs))
        for claim in (UniqueClaim("a"), UNIQUE._replace(key="b", when_taken=WhenTaken.REPLACE)):
            job = a_call(claim)
            assert await store.insert_jobs([job]) == [Inserted(job.id, State.READY)], f"{claim}"

    play(scenario)


def test_a_dead_letter_that_is_purged_gives_up_its_window(play: Played) -> None:
    async def scenario(store: Store, clock: ManualClock) -> None:
        run = await start(store, unique=THROTTLE)
        await apply(store, run.worker, Bury(run.id, run.token, "it failed", ERROR))
        clock.advance(2 * DAY_S)
        assert await store.insert_jobs([a_call(THROTTLE)]) == [Existing(run.id)]
        await store.purge_dead([run.id])
        second = a_call(THROTTLE)
        assert await store.insert_jobs([second]) == [Inserted(second.id, State.READY)], "a person has said so"

    play(scenario)
