"""The rules where somebody's transaction stays open in the middle of ours: what only a server with many writers has."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from tests.campaign.child import until
from tests.faults.pair import Pair, pair
from tests.faults.trial import PATIENCE_S

from holdfast.core.cause import Cause
from holdfast.core.errors import StoreUnavailable
from holdfast.core.gates import SlotGate
from holdfast.core.job import KeyClaim
from holdfast.core.settlement import Bury, HandBack, Succeed, Verdict
from holdfast.core.state import State
from holdfast.core.unique import UniqueClaim
from holdfast.runtime.failpoints import arm, release, wait_hit
from holdfast.stores.base import CancelAnswer, Existing
from holdfast.testing.contracts.arrange import (
    ERROR,
    LONG_S,
    PLENTY,
    a_job,
    claim,
    enlist,
    finish,
    insert,
    lose,
    resume,
    start,
    state,
    states,
)


def _in_a_pair(directory: Path, play: Callable[[Pair], Awaitable[None]]) -> None:
    async def run() -> None:
        async with pair(directory) as stores:
            await play(stores)

    asyncio.run(run())


@contextmanager
def held(stores: Pair, table: str, job_id: UUID) -> Iterator[None]:
    """A job's row is locked by a transaction that stays open, as a user's may that finishes the job in it."""
    with psycopg.connect(stores.where.url) as side:
        side.execute(f"SELECT 1 FROM {stores.where.schema}.{table} WHERE job_id = %s FOR UPDATE", [job_id])
        yield
        side.rollback()


def test_rule_1_a_worker_is_not_reaped_in_the_middle_of_its_claim(postgres_place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        [job_id] = await insert(one, a_job())
        worker = await enlist(one)
        arm("claim_jobs.inside", "hang")
        claiming = asyncio.ensure_future(claim(one, worker))
        await wait_hit("claim_jobs.inside")
        await other.renew_worker(worker, lease_s=0, held_for_s=LONG_S)
        assert (await other.reap_workers(limit=PLENTY)).workers == ()  # its row is held by the claim: next time
        release("claim_jobs.inside")
        [job] = await claiming
        assert job.id == job_id
        reaped = await other.reap_workers(limit=PLENTY)
        assert (reaped.workers, reaped.returned) == ((worker,), 1)
        assert await one.settle_jobs(worker, [Succeed(job.id, job.token, None)]) == [Verdict.LOST]
        await finish(other, await resume(other, job_id))

    _in_a_pair(postgres_place, play)


def test_rule_7_a_lease_that_is_held_elsewhere_is_reaped_when_it_is_let_go(postgres_place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        worker = await enlist(one)
        busy, idle = await start(one, worker=worker), await start(one, worker=worker)
        with held(stores, "active", busy.id):
            await asyncio.wait_for(lose(other, worker), PATIENCE_S)  # waits for nobody
            assert await state(other, idle.id) is State.READY
            assert await state(other, busy.id) is State.RUNNING
        assert (await other.reap_workers(limit=PLENTY)).returned == 1
        await finish(other, await resume(other, busy.id))  # at its old place: before the other
        await finish(other, await resume(other, idle.id))

    _in_a_pair(postgres_place, play)


def test_rule_7_a_lease_that_is_held_elsewhere_is_handed_back_when_it_is_let_go(postgres_place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        run = await start(one)
        with held(stores, "active", run.id):
            handing = other.hand_back_worker(run.worker, cause=Cause.HANDED_BACK, why="stopped")
            assert await asyncio.wait_for(handing, PATIENCE_S) == 0
        assert (await other.reap_workers(limit=PLENTY)).returned == 1
        await finish(other, await resume(other, run.id))

    _in_a_pair(postgres_place, play)


@pytest.mark.parametrize(("table", "answer"), [("ready", CancelAnswer.CANCELLED), ("active", CancelAnswer.REQUESTED)])
def test_rule_7_a_job_that_is_held_elsewhere_is_cancelled_when_it_is_let_go(
    table: str, answer: CancelAnswer, postgres_place: Path
) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        job_id = (await start(one)).id if table == "active" else (await insert(one, a_job()))[0]
        with held(stores, table, job_id), pytest.raises(StoreUnavailable, match="try again"):
            await asyncio.wait_for(other.cancel_jobs([job_id], reason="asked"), PATIENCE_S)
        assert await other.cancel_jobs([job_id], reason="asked") == [answer]

    _in_a_pair(postgres_place, play)


def test_a_job_that_is_held_elsewhere_holds_up_no_other(postgres_place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        first, second = await insert(one, a_job(), a_job())
        worker = await enlist(other)
        with held(stores, "ready", first):
            assert [job.id for job in await asyncio.wait_for(claim(other, worker), PATIENCE_S)] == [second]
        assert [job.id for job in await claim(other, worker)] == [first]

    _in_a_pair(postgres_place, play)


def test_a_job_that_came_back_below_the_floor_is_found_by_the_same_claim(postgres_place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        first, second = await insert(one, a_job(), a_job())
        worker, elsewhere = await enlist(one), await enlist(other)
        [job] = await claim(other, elsewhere, 1)
        assert [job.id for job in await claim(one, worker, 1)] == [second]  # the floor is behind it now
        await other.settle_jobs(elsewhere, [HandBack(job.id, job.token, "stopped")])
        assert [job.id for job in await claim(one, worker)] == [first]

    _in_a_pair(postgres_place, play)


def test_a_run_that_ends_while_somebody_begins_to_wait_for_it_releases_him(postgres_place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        run = await start(one)
        arm("insert_jobs.inside", "hang")
        inserting = asyncio.ensure_future(insert(other, a_job(waits_for=(run.id,), queue="after")))
        await wait_hit("insert_jobs.inside")
        ending = asyncio.ensure_future(finish(one, run))  # waits for the insert, which holds the run's row
        await asyncio.sleep(0)
        release("insert_jobs.inside")
        [follower] = await inserting
        await ending
        assert await state(one, follower) is State.READY

    _in_a_pair(postgres_place, play)


def test_rule_4_a_member_that_dies_twice_arrives_once(postgres_place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        # Something hangs on the member itself, so that each of its ends is looked at closely.
        first, second = await start(one, gates=(SlotGate("one", 1),)), await start(one)
        [follower] = await insert(other, a_job(waits_for=(first.id, second.id), queue="after"))
        for run in (first, None):
            again = run or await resume(one, first.id)
            await one.settle_jobs(again.worker, [Bury(again.id, again.token, "permanent", ERROR)])
            assert await one.replay_jobs([first.id]) == 1
            assert await state(other, follower) is State.BLOCKED
        await finish(one, second)
        assert await state(other, follower) is State.READY

    _in_a_pair(postgres_place, play)


def test_rule_11_a_slot_is_counted_before_its_claim_has_committed(postgres_place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        ids = await insert(one, *(a_job(gates=(SlotGate("one", 1),)) for _ in range(2)))
        worker, elsewhere = await enlist(one), await enlist(other)
        arm("claim_jobs.inside", "hang", skip=1)  # the ordinary claim, which passes them over, comes first
        claiming = asyncio.ensure_future(claim(one, worker, 1))
        await wait_hit("claim_jobs.inside")
        racing = asyncio.ensure_future(claim(other, elsewhere))
        waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        is_over = lambda: racing.done() or stores.where.glance().query(waiting)  # noqa: E731
        await until(is_over, within_s=PATIENCE_S, what="the other claim to wait for the limit")
        release("claim_jobs.inside")
        assert [job.id for job in await claiming] == ids[:1]
        assert await racing == []
        assert await state(other, ids[1]) is State.PARKED

    _in_a_pair(postgres_place, play)


def test_rule_6_a_unique_key_that_somebody_else_is_just_taking_is_waited_for_and_read_again(
    postgres_place: Path,
) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        first, second = a_job(unique=UniqueClaim("u")), a_job(unique=UniqueClaim("u"))
        arm("insert_jobs.inside", "hang")
        inserting = asyncio.ensure_future(insert(one, first))
        await wait_hit("insert_jobs.inside")
        racing = asyncio.ensure_future(other.insert_jobs([second]))
        waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        is_over = lambda: racing.done() or stores.where.glance().query(waiting)  # noqa: E731
        await until(is_over, within_s=PATIENCE_S, what="the other insert to wait for the key")
        release("insert_jobs.inside")
        await inserting
        assert await racing == [Existing(first.id)]
        assert await other.job_infos([second.id]) == [None]

    _in_a_pair(postgres_place, play)


def test_rule_6_a_key_that_somebody_else_is_just_taking_is_waited_for_and_read_again(postgres_place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        key = KeyClaim("k", b"request", LONG_S)
        first, second = a_job(key=key), a_job(key=key)
        arm("insert_jobs.inside", "hang")
        inserting = asyncio.ensure_future(insert(one, first))
        await wait_hit("insert_jobs.inside")
        racing = asyncio.ensure_future(other.insert_jobs([second]))
        waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        is_over = lambda: racing.done() or stores.where.glance().query(waiting)  # noqa: E731
        await until(is_over, within_s=PATIENCE_S, what="the other insert to wait for the key")
        release("insert_jobs.inside")
        await inserting
        assert await racing == [Existing(first.id)]
        assert await states(one, second.id) == [None]

    _in_a_pair(postgres_place, play)
