"""Rules 1 to 6 of the store, each with the interleaving that once broke it: leases, claims, endings, cancels, keys.

What comes in between comes between two transactions here; on PostgreSQL, where it can also come between two
statements, `test_rules_between_statements` has that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest
from tests.faults.pair import Pair, meanwhile, pair

from holdfast.core.errors import LeaseLost, StoreUnavailable
from holdfast.core.job import KeyClaim
from holdfast.core.settlement import Bury, Cancel, HandBack, Retry, Succeed, Verdict
from holdfast.core.state import State
from holdfast.runtime.failpoints import arm, armed, release, wait_hit
from holdfast.stores.base import CancelAnswer, Conflict, Existing, HeldJob, Inserted, Store
from holdfast.testing.contracts.arrange import (
    ERROR,
    LANE,
    LONG_S,
    PLENTY,
    Run,
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


# ---------------------------------------------------------------- 1: a worker's row guards all that it does


def test_rule_1_a_worker_reaped_before_its_claim_begins_claims_nothing(place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        run = await start(one)
        [waiting] = await insert(one, a_job())
        meanwhile("claim_jobs", lambda: lose(other, run.worker))
        with pytest.raises(LeaseLost):
            await claim(one, run.worker)
        assert await states(one, run.id, waiting) == [State.READY, State.READY]

    _in_a_pair(place, play)


def test_rule_1_a_reaped_worker_writes_nothing_and_is_not_revived(place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        run = await start(one)
        meanwhile("settle_jobs", lambda: lose(other, run.worker))
        assert await one.settle_jobs(run.worker, [Succeed(run.id, run.token, None)]) == [Verdict.LOST]
        assert not await one.record_progress(run.worker, run.id, run.token, done=1, total=None, stage=None)
        with pytest.raises(LeaseLost):
            await one.renew_worker(run.worker, lease_s=LONG_S, held_for_s=0)
        assert await one.list_workers() == []
        assert await state(one, run.id) is State.READY

    _in_a_pair(place, play)


def test_rule_1_a_lease_that_has_run_out_is_good_for_nothing_though_nobody_reaped_it(place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, _, clock, _ = stores
        worker = await enlist(one, lease_s=10)
        [waiting] = await insert(one, a_job())
        clock.advance(10)
        with pytest.raises(LeaseLost):
            await claim(one, worker)
        assert await state(one, waiting) is State.READY

    _in_a_pair(place, play)


def test_rule_1_a_lease_without_its_worker_is_reaped_as_well(place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        run = await start(one)
        stores.by_hand("DELETE FROM worker")
        assert (await other.reap_workers(limit=PLENTY)).returned == 1
        await finish(other, await resume(other, run.id))

    _in_a_pair(place, play)


# ---------------------------------------------------------------- 2: a claim whose answer was lost


def test_rule_2_a_renewal_tells_of_leases_whose_claim_was_never_answered(place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, _, clock, _ = stores
        [job_id] = await insert(one, a_job())
        worker = await enlist(one)
        with armed("claim_jobs.committed", "fail"), pytest.raises(StoreUnavailable, match="lost"):
            await claim(one, worker)
        clock.advance(5)
        assert (await one.renew_worker(worker, lease_s=LONG_S, held_for_s=6)).held == []  # too young to be missed
        [held] = (await one.renew_worker(worker, lease_s=LONG_S, held_for_s=5)).held
        assert isinstance(held, HeldJob)
        assert held.job_id == job_id

    _in_a_pair(place, play)


def test_rule_2_a_claim_that_nobody_waits_for_any_more_is_not_made(tmp_path: Path) -> None:
    """Where requests stand in line for one writer."""

    async def play(stores: Pair) -> None:
        one, _, clock, _ = stores
        [job_id] = await insert(one, a_job())
        worker = await enlist(one)
        arm("purge_queue.inside", "hang")
        busy = asyncio.ensure_future(one.purge_queue("none", reason="", limit=1))  # keeps the writer busy
        await wait_hit("purge_queue.inside")
        late = asyncio.ensure_future(one.claim_jobs(worker, {LANE: 1}, deadline_s=1.0))
        await asyncio.sleep(0)
        clock.advance(2)
        release("purge_queue.inside")
        await busy
        with pytest.raises(StoreUnavailable, match="deadline"):
            await late
        assert await state(one, job_id) is State.READY

    _in_a_pair(tmp_path, play)


def test_rule_2_a_job_without_a_body_ends_and_is_seen(place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, *_ = stores
        [job_id] = await insert(one, a_job())
        stores.by_hand("DELETE FROM job")
        assert await claim(one, await enlist(one)) == []
        [found] = await one.job_infos([job_id])
        assert found is not None
        assert (found.state, found.reason) == (State.DEAD, "body_missing")

    _in_a_pair(place, play)


# ---------------------------------------------------------------- 3: settle answers per id


def test_rule_3_one_flush_may_bring_every_verdict(place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        stale = await start(one)
        await lose(other, stale.worker)
        second = await resume(other, stale.id)
        worker = await enlist(one)
        fresh, known, retried = [await start(one, worker=worker) for _ in range(3)]
        lost_answer = [Succeed(known.id, known.token, b"1"), Retry(retried.id, retried.token, 9.0, ERROR)]
        with armed("settle_jobs.committed", "fail"), pytest.raises(StoreUnavailable, match="lost"):
            await one.settle_jobs(worker, lost_answer)
        flush = [lost_answer[0], Succeed(fresh.id, fresh.token, None), Succeed(stale.id, stale.token, None)]
        verdicts = await one.settle_jobs(worker, [*flush, lost_answer[1]])
        assert verdicts == [Verdict.ALREADY, Verdict.APPLIED, Verdict.LOST, Verdict.ALREADY]
        await finish(other, second)
        found = await states(one, stale.id, fresh.id, known.id, retried.id)
        assert found == [State.SUCCEEDED] * 3 + [State.SCHEDULED]

    _in_a_pair(place, play)


def test_rule_3_another_workers_token_does_not_settle(place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        run, thief = await start(one), await enlist(other)
        for settlement in (Succeed(run.id, run.token, None), HandBack(run.id, run.token, "no")):
            assert await other.settle_jobs(thief, [settlement]) == [Verdict.LOST]
        assert await state(one, run.id) is State.RUNNING

    _in_a_pair(place, play)


# ---------------------------------------------------------------- 4: one routine ends every job


async def _succeed(store: Store, run: Run) -> None:
    await finish(store, run)


async def _bury(store: Store, run: Run) -> None:
    await store.settle_jobs(run.worker, [Bury(run.id, run.token, "permanent", ERROR)])


async def _honour_a_cancellation(store: Store, run: Run) -> None:
    await store.cancel_jobs([run.id], reason="asked")
    await store.settle_jobs(run.worker, [Cancel(run.id, run.token, "asked")])


async def _hand_back_the_cancelled(store: Store, run: Run) -> None:
    await store.cancel_jobs([run.id], reason="asked")
    await store.settle_jobs(run.worker, [HandBack(run.id, run.token, "drained")])


async def _reap_the_cancelled(store: Store, run: Run) -> None:
    await store.cancel_jobs([run.id], reason="asked")
    await lose(store, run.worker)


async def _cancel_what_waits(store: Store, run: Run) -> None:
    await store.settle_jobs(run.worker, [HandBack(run.id, run.token, "drained")])
    assert await store.cancel_jobs([run.id], reason="asked") == [CancelAnswer.CANCELLED]


async def _purge(store: Store, run: Run) -> None:
    await store.settle_jobs(run.worker, [HandBack(run.id, run.token, "drained")])
    assert await store.purge_queue(LANE.queue, reason="asked", limit=1) == 1


async def _poison(store: Store, run: Run) -> None:
    await lose(store, run.worker)
    while await state(store, run.id) is State.READY:
        run = await resume(store, run.id)
        await lose(store, run.worker)


@pytest.mark.parametrize(
    "end",
    [
        _succeed,
        _bury,
        _honour_a_cancellation,
        _hand_back_the_cancelled,
        _reap_the_cancelled,
        _cancel_what_waits,
        _purge,
        _poison,
    ],
)
def test_rule_4_every_ending_releases_who_waits_for_it(
    end: Callable[[Store, Run], Awaitable[None]], place: Path
) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        run = await start(one)
        [follower] = await insert(other, a_job(waits_for=(run.id,), queue="followers"))
        assert await state(other, follower) is State.BLOCKED
        await end(one, run)
        assert (await state(one, run.id)).ended
        assert await state(other, follower) is State.READY
        swept = await other.sweep(limit=PLENTY)
        assert not any(swept), f"nothing may be left for the sweep: {swept}"

    _in_a_pair(place, play)


# ---------------------------------------------------------------- 5: cancel finds the job wherever it moves


def test_rule_5_a_job_claimed_while_it_is_being_cancelled_is_asked_to_stop(place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        [job_id] = await insert(one, a_job())
        worker = await enlist(other)
        claimed = meanwhile("cancel_jobs", lambda: claim(other, worker))
        assert await one.cancel_jobs([job_id], reason="asked") == [CancelAnswer.REQUESTED]
        [[job]] = claimed
        [request] = await other.cancel_requests(worker)
        assert (request.job_id, request.token, request.reason) == (job_id, job.token, "asked")
        assert await other.settle_jobs(worker, [Retry(job_id, job.token, 0, ERROR)]) == [Verdict.APPLIED]
        assert await state(one, job_id) is State.CANCELLED

    _in_a_pair(place, play)


def test_rule_5_a_job_cancelled_while_it_is_being_claimed_never_runs(place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        [job_id] = await insert(one, a_job())
        worker = await enlist(one)
        answers = meanwhile("claim_jobs", lambda: other.cancel_jobs([job_id], reason="asked"))
        assert await claim(one, worker) == []
        assert answers == [[CancelAnswer.CANCELLED]]
        assert await state(one, job_id) is State.CANCELLED

    _in_a_pair(place, play)


def test_rule_5_a_success_that_came_first_wins(place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        requested, late = await start(one), await start(one)
        assert await other.cancel_jobs([requested.id], reason="asked") == [CancelAnswer.REQUESTED]
        await finish(one, requested)
        meanwhile("cancel_jobs", lambda: finish(one, late))
        assert await other.cancel_jobs([requested.id, late.id], reason="asked") == [CancelAnswer.ENDED] * 2
        assert await states(one, requested.id, late.id) == [State.SUCCEEDED] * 2

    _in_a_pair(place, play)


# ---------------------------------------------------------------- 6: one key, one job


def test_rule_6_a_key_taken_while_another_asks_for_it_has_one_job(place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        key = KeyClaim("k", b"request", LONG_S)
        first, second = a_job(key=key), a_job(key=key)
        meanwhile("insert_jobs", lambda: insert(other, first))
        third = a_job(key=key._replace(fingerprint=b"another request"))
        assert await one.insert_jobs([second, third]) == [Existing(first.id), Conflict(first.id)]
        assert await states(one, first.id, second.id, third.id) == [State.READY, None, None]

    _in_a_pair(place, play)


def test_rule_6_two_crowds_that_use_the_same_keys_agree_on_every_job(place: Path) -> None:
    keys = [KeyClaim(f"k{n}", b"request", LONG_S) for n in range(60)]

    async def ask(store: Store, mine: list[KeyClaim]) -> dict[str, object]:
        jobs = [a_job(key=key) for key in mine]
        answers = await asyncio.gather(*(store.insert_jobs([job]) for job in jobs))
        assert all(isinstance(answer, Inserted | Existing) for [answer] in answers)
        return {key.key: answer.job_id for key, [answer] in zip(mine, answers, strict=True)}

    async def play(stores: Pair) -> None:
        crowds = [stores.in_a_thread(partial(ask, mine=mine)) for mine in (keys, keys[::-1])]
        told = await asyncio.gather(*crowds)
        assert told[0] == told[1]
        assert len(await claim(stores.one, await enlist(stores.one))) == len(keys)

    _in_a_pair(place, play)
