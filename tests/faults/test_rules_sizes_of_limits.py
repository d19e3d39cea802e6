"""Rule 11 where the size of a limit changes, or is told in several ways: whoever takes slots of it at once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.faults.pair import Pair
from tests.faults.racing import expect_limited_jobs, in_a_pair, run_by_a_larger_size, waits_or_is_done

from holdfast.core.fairness import Lane
from holdfast.core.gates import SlotGate
from holdfast.core.job import JobId
from holdfast.core.state import State
from holdfast.runtime.failpoints import arm, release, wait_hit
from holdfast.stores.postgres import passing
from holdfast.stores.postgres.transaction import Tx
from holdfast.testing.contracts.arrange import LANE, PRIORITY, a_job, claim, enlist, finish, insert, state, states

#: Of so many numbers two who guess seldom guess the same, which would have one wait for the other anyway.
SIZE = 40
LIMIT = (SlotGate("k", SIZE),)
TWO, TEN = (SlotGate("k", 2),), (SlotGate("k", 10),)
BESIDE = Lane("beside", PRIORITY)

#: Passed over first, then claimed by themselves; or at the head of their lane, at once.
by_both_ways = pytest.mark.parametrize("passed_over", [True, False], ids=["passed over", "at the head"])


def _running(stores: Pair, key: str = "k") -> int:
    query = "SELECT count(*) FROM slot s JOIN active a USING (job_id) WHERE s.key = ?"
    [(count,)] = stores.where.glance().query(query, key)
    return int(count)


@by_both_ways
def test_who_take_at_once_beside_slots_of_a_larger_size_do_not_exceed_the_limit(
    passed_over: bool, postgres_place: Path
) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        worker, another = await enlist(one), await enlist(other)
        before = await run_by_a_larger_size(stores, worker, SIZE - 1)
        if not passed_over:
            await expect_limited_jobs(stores, worker)
        await insert(one, *(a_job(gates=LIMIT) for _ in range(2)))
        arm("claim_jobs.inside", "hang", skip=int(passed_over))
        first = asyncio.ensure_future(claim(one, worker, 1))
        await wait_hit("claim_jobs.inside")
        second = asyncio.ensure_future(claim(other, another, 1))
        await waits_or_is_done(stores, second)
        release("claim_jobs.inside")
        assert len([*await first, *await second]) == 1, "there was room for one"
        assert _running(stores) == SIZE
        for run in before[:2]:
            await finish(one, run)
        assert len(await claim(other, another)) == 1, "the other one's turn has come"

    in_a_pair(postgres_place, play)


@by_both_ways
def test_who_takes_beside_slots_of_a_larger_size_waits_for_those_who_did_not_see_them(
    passed_over: bool, postgres_place: Path
) -> None:
    """Of all that is committed he is the last who finds room; and somebody has taken that, and not committed."""

    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        worker, another = await enlist(one), await enlist(other)
        ids = await insert(one, *(a_job(gates=LIMIT, queue=BESIDE.queue) for _ in range(2)))
        if not passed_over:
            await expect_limited_jobs(stores, worker)
        arm("claim_jobs.inside", "hang", skip=int(passed_over))
        first = asyncio.ensure_future(claim(one, worker, 1, lane=BESIDE))
        await wait_hit("claim_jobs.inside")
        stores.by_hand(
            f"INSERT INTO slot (job_id, kind, key, number) SELECT gen_random_uuid(), 'limit', 'k', {SIZE} + n "
            f"FROM generate_series(1, {SIZE} - 1) AS n"
        )
        second = asyncio.ensure_future(claim(other, another, 1, lane=BESIDE))
        await waits_or_is_done(stores, second)
        release("claim_jobs.inside")
        assert [job.id for job in await first] == ids[:1], "it was there before"
        assert await second == [], "and whoever came then sees it"

    in_a_pair(postgres_place, play)


def test_several_sizes_of_one_limit_in_a_claim_each_count_for_their_own_jobs(postgres_place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, *_ = stores
        worker = await enlist(one)
        await insert(one, a_job(gates=TWO))
        assert len(await claim(one, worker)) == 1
        ids = await insert(one, a_job(gates=TWO), a_job(gates=TEN))
        assert [job.id for job in await claim(one, worker)] == ids, "the second of two, and the third of ten"

    in_a_pair(postgres_place, play)


def test_a_larger_size_in_the_same_claim_lets_none_of_a_smaller_one_through(postgres_place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, *_ = stores
        worker = await enlist(one)
        await insert(one, *(a_job(gates=TWO) for _ in range(2)))
        assert len(await claim(one, worker)) == 2
        large, small = await insert(one, a_job(gates=TEN), a_job(gates=TWO))
        assert [job.id for job in await claim(one, worker)] == [large]
        assert await state(one, small) is State.PARKED

    in_a_pair(postgres_place, play)


def test_who_is_judged_beside_one_of_a_larger_size_is_judged_again_when_somebody_came_before_him(
    postgres_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both were found to have room; until that is written down, another one has taken the last slot of the smaller."""

    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        worker, another = await enlist(one), await enlist(other)
        await insert(one, a_job(gates=TWO))
        assert len(await claim(one, worker)) == 1
        small, large = await insert(one, a_job(gates=TWO), a_job(gates=TEN))
        [late] = await insert(one, a_job(gates=TWO, queue=BESIDE.queue))
        one._limited = other._limited = False  # type: ignore[attr-defined]  # else they look at all lanes alike
        write, quicker = passing._write, list[JobId]()

        async def slowly(tx: Tx, *args: object) -> object:
            monkeypatch.setattr(passing, "_write", write)
            quicker.extend(job.id for job in await claim(other, another, lane=BESIDE))
            return await write(tx, *args)  # type: ignore[arg-type]  # a schema's name is in it

        monkeypatch.setattr(passing, "_write", slowly)
        jobs = await claim(one, worker)
        assert quicker == [late]
        assert small not in {job.id for job in jobs}, "two of that size run"
        assert await state(one, small) is State.PARKED
        assert await states(one, late, large) == [State.RUNNING] * 2

    in_a_pair(postgres_place, play)


@by_both_ways
def test_operators_wait_for_whoever_takes_slots(passed_over: bool, postgres_place: Path) -> None:
    """Else a limit that was lowered is exceeded by what is not committed, of which whoever comes next sees nothing."""

    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        worker, another = await enlist(one), await enlist(other)
        if not passed_over:
            await expect_limited_jobs(stores, worker)
        ids = await insert(one, *(a_job(gates=LIMIT) for _ in range(3)))
        arm("claim_jobs.inside", "hang", skip=int(passed_over))
        first = asyncio.ensure_future(claim(one, worker, 2))
        await wait_hit("claim_jobs.inside")
        saying = asyncio.ensure_future(other.set_limit("k", size=1, pace=None, by="me"))
        await waits_or_is_done(stores, saying)
        assert not saying.done()
        release("claim_jobs.inside")
        assert [job.id for job in await first] == ids[:2], "it was there before"
        await saying
        assert await claim(other, another) == [], "and who comes now sees them"

    in_a_pair(postgres_place, play)


def test_operators_wait_for_whoever_is_judged_by_a_size_that_they_take_back(postgres_place: Path) -> None:
    """Else whoever comes next, by no rule at all, holds no gate and sees nothing of what is not committed."""

    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        worker, another = await enlist(one), await enlist(other)
        await one.set_limit("k", size=SIZE, pace=None, by="me")
        ids = await insert(one, *(a_job(gates=TWO) for _ in range(9)))
        arm("claim_jobs.inside", "hang", skip=2)  # passed over, then the short way: both have done nothing
        first = asyncio.ensure_future(claim(one, worker, 5))
        await wait_hit("claim_jobs.inside")
        saying = asyncio.ensure_future(other.set_limit("k", size=None, pace=None, by="me"))
        await waits_or_is_done(stores, saying)
        assert not saying.done()
        release("claim_jobs.inside")
        assert [job.id for job in await first] == ids[:5]
        await saying
        assert await claim(other, another) == []
        assert _running(stores) == 5

    in_a_pair(postgres_place, play)


def test_operators_wait_for_whoever_claims_a_job_that_must_run_alone(postgres_place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        worker, another = await enlist(one), await enlist(other)
        await one.set_limit("k", size=SIZE, pace=None, by="me")
        lonely, late = await insert(one, *(a_job(gates=TWO) for _ in range(2)))
        stores.by_hand(f"UPDATE ready SET losses = 2 WHERE job_id = '{lonely}'")
        arm("claim_jobs.inside", "hang")
        first = asyncio.ensure_future(one.claim_jobs(worker, {LANE: 1}, deadline_s=60, alone=True))
        await wait_hit("claim_jobs.inside")
        saying = asyncio.ensure_future(other.set_limit("k", size=1, pace=None, by="me"))
        await waits_or_is_done(stores, saying)
        assert not saying.done()
        release("claim_jobs.inside")
        assert [job.id for job in (await first).jobs] == [lonely]
        await saying
        assert await claim(other, another) == []
        assert await state(one, late) is State.PARKED

    in_a_pair(postgres_place, play)
