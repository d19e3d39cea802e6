"""Replays of jobs with unique keys in the middle of calls with these keys, and of each other: never do two live."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.campaign.child import until
from tests.faults.pair import Pair, pair
from tests.faults.trial import PATIENCE_S

from holdfast.core.errors import KeyHeld
from holdfast.core.job import JobId, NewJob
from holdfast.core.settlement import Bury
from holdfast.core.state import State
from holdfast.core.unique import UniqueClaim, WhenTaken
from holdfast.runtime.failpoints import arm, release, wait_hit
from holdfast.stores.base import Inserted, Store, Taken
from holdfast.stores.postgres import unique
from holdfast.testing.contracts.arrange import ERROR, a_job, apply, start, states

_WAITING = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


def _in_a_pair(directory: Path, play: Callable[[Pair], Awaitable[None]]) -> None:
    async def run() -> None:
        async with pair(directory) as stores:
            await play(stores)

    asyncio.run(run())


async def _dead(store: Store, key: str = "u") -> JobId:
    run = await start(store, unique=UniqueClaim(key))
    await apply(store, run.worker, Bury(run.id, run.token, "permanent", ERROR))
    return run.id


def _call(when_taken: WhenTaken = WhenTaken.REJECT) -> NewJob:
    return a_job(unique=UniqueClaim("u", when_taken=when_taken))


async def _waits(stores: Pair, racing: asyncio.Future[Any]) -> None:
    is_over = lambda: racing.done() or stores.where.glance().query(_WAITING)  # noqa: E731
    await until(is_over, within_s=PATIENCE_S, what="the other to wait for the key")


class _Looked:
    """Holds up whoever has looked who has a key, before he takes it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.has = asyncio.Event()
        self.may_go_on = asyncio.Event()
        self.times = 0
        self._read = unique.read_keys
        monkeypatch.setattr(unique, "read_keys", self._held_up)

    async def _held_up(self, *args: Any) -> Any:
        found = await self._read(*args)
        self.times += 1
        if self.times == 1:
            self.has.set()
            await self.may_go_on.wait()
        return found


@pytest.mark.parametrize("had_it_since", [False, True], ids=["its_own", "another_had_it"])
@pytest.mark.parametrize("when_taken", [WhenTaken.REJECT, WhenTaken.REPLACE])
def test_a_call_that_saw_a_dead_job_takes_no_key_from_one_that_lives_again(
    when_taken: WhenTaken, had_it_since: bool, postgres_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        dead = await _dead(one)
        if had_it_since:
            await _dead(one)
        looked = _Looked(monkeypatch)
        call = _call(when_taken)
        calling = asyncio.ensure_future(other.insert_jobs([call]))
        await looked.has.wait()
        assert await one.replay_jobs([dead]) == 1
        looked.may_go_on.set()
        if when_taken is WhenTaken.REJECT:
            assert await calling == [Taken(dead)]
            assert await states(one, dead, call.id) == [State.READY, None]
        else:
            assert await calling == [Inserted(call.id, State.READY)]
            assert await states(one, dead, call.id) == [State.CANCELLED, State.READY]
        assert looked.times == 2

    _in_a_pair(postgres_place, play)


def test_a_call_waits_for_a_replay_that_is_under_way(postgres_place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        dead = await _dead(one)
        arm("replay_jobs.inside", "hang")
        replaying = asyncio.ensure_future(one.replay_jobs([dead]))
        await wait_hit("replay_jobs.inside")
        call = _call()
        calling = asyncio.ensure_future(other.insert_jobs([call]))
        await _waits(stores, calling)
        release("replay_jobs.inside")
        assert await replaying == 1
        assert await calling == [Taken(dead)]

    _in_a_pair(postgres_place, play)


def test_a_replay_waits_for_a_call_that_is_under_way(postgres_place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        dead = await _dead(one)
        call = _call()
        arm("insert_jobs.inside", "hang")
        calling = asyncio.ensure_future(other.insert_jobs([call]))
        await wait_hit("insert_jobs.inside")
        replaying = asyncio.ensure_future(one.replay_jobs([dead]))
        await _waits(stores, replaying)
        release("insert_jobs.inside")
        assert await calling == [Inserted(call.id, State.READY)]
        replayed = await replaying
        assert (replayed, replayed.in_the_way) == (0, {dead: call.id})
        assert await states(one, dead, call.id) == [State.DEAD, State.READY]

    _in_a_pair(postgres_place, play)


@pytest.mark.parametrize("same", [True, False], ids=["of_one_job", "of_two"])
def test_of_two_replays_at_once_one_is_done(same: bool, postgres_place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        first, second = await _dead(one), await _dead(one)
        arm("replay_jobs.inside", "hang")
        replaying = asyncio.ensure_future(one.replay_jobs([first]))
        await wait_hit("replay_jobs.inside")
        racing = asyncio.ensure_future(other.replay_jobs([first if same else second]))
        await _waits(stores, racing)
        release("replay_jobs.inside")
        assert await replaying == 1
        lost = await racing
        assert (lost, lost.in_the_way) == (0, {} if same else {second: first})
        assert await states(one, first, second) == [State.READY, State.DEAD]

    _in_a_pair(postgres_place, play)


def test_a_key_whose_row_is_not_there_is_held_by_the_replay_as_well(postgres_place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        dead = await _dead(one)
        newer = await _dead(one)
        assert await one.purge_dead([newer]) == 1
        arm("replay_jobs.inside", "hang")
        replaying = asyncio.ensure_future(one.replay_jobs([dead]))
        await wait_hit("replay_jobs.inside")
        call = _call()
        calling = asyncio.ensure_future(other.insert_jobs([call]))
        await _waits(stores, calling)
        release("replay_jobs.inside")
        assert await replaying == 1
        assert await calling == [Taken(dead)]

    _in_a_pair(postgres_place, play)


def test_batches_with_the_same_keys_in_another_order_do_not_wait_for_each_other_in_a_circle(
    postgres_place: Path,
) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        batches = [[await _dead(one, f"{key}") for key in range(20)] for _ in range(2)]
        for _ in range(5):
            done = await asyncio.gather(one.replay_jobs(batches[0]), other.replay_jobs(batches[1][::-1]))
            assert sum(done) == 20
            for batch in batches:
                for job_id in batch:
                    await one.cancel_jobs([job_id], reason="again")
            batches = [[await _dead(one, f"{key}") for key in range(20)] for _ in range(2)]

    _in_a_pair(postgres_place, play)


def test_a_replay_does_not_wait_long_for_a_transaction_of_a_user(postgres_place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, *_ = stores
        dead = await _dead(one)
        with psycopg.connect(stores.where.url) as side:
            side.execute(f"SELECT 1 FROM {stores.where.schema}.unique_key WHERE key = 'u' FOR UPDATE")
            with pytest.raises(KeyHeld, match=r"none of them was replayed"):
                await one.replay_jobs([dead])
            side.rollback()
        assert await states(one, dead) == [State.DEAD]
        assert await one.replay_jobs([dead]) == 1

    _in_a_pair(postgres_place, play)


def test_a_job_of_a_program_of_before_keeps_its_key(postgres_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which has not written down with the job what was said of being unique."""

    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        dead = await _dead(one)
        stores.by_hand("UPDATE job SET unique_claim = NULL")
        looked = _Looked(monkeypatch)
        calling = asyncio.ensure_future(other.insert_jobs([_call()]))
        await looked.has.wait()
        assert await one.replay_jobs([dead]) == 1
        looked.may_go_on.set()
        assert await calling == [Taken(dead)]

    _in_a_pair(postgres_place, play)


def test_of_a_crowd_of_stores_that_call_and_replay_one_job_lives(place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, *_ = stores
        for _ in range(5):
            dead = [await _dead(one) for _ in range(4)]
            calls = [_call() for _ in range(4)]

            def replay(job_id: JobId) -> Callable[[Store], Awaitable[Any]]:
                return lambda store: store.replay_jobs([job_id])

            def call(job: NewJob) -> Callable[[Store], Awaitable[Any]]:
                return lambda store: store.insert_jobs([job])

            acts = [act for pair_ in zip(map(replay, dead), map(call, calls), strict=True) for act in pair_]
            await asyncio.gather(*(stores.in_a_thread(act) for act in acts))
            ids = [*dead, *(job.id for job in calls)]
            found = await states(one, *ids)
            [live] = [each for each, at in zip(ids, found, strict=True) if at is State.READY]
            await one.cancel_jobs([live], reason="again")

    _in_a_pair(place, play)
