"""Rule 11 without a gate in hand: who takes slots at once, and who begins to wait while they are being freed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.faults.pair import Pair, pair
from tests.faults.racing import waits_or_is_done

from holdfast.core.errors import LeaseLost
from holdfast.core.gates import SlotGate
from holdfast.core.settlement import Retry, Settlement, Succeed, Verdict
from holdfast.core.state import State
from holdfast.runtime.failpoints import arm, release, wait_hit
from holdfast.testing.contracts.arrange import (
    ERROR,
    LONG_S,
    PLENTY,
    Run,
    a_job,
    claim,
    enlist,
    finish,
    insert,
    start,
    state,
)

ONE = (SlotGate("k", 1),)
TWO = (SlotGate("k", 2),)


def _in_a_pair(directory: Path, play: Callable[[Pair], Awaitable[None]]) -> None:
    async def run() -> None:
        async with pair(directory) as stores:
            await play(stores)

    asyncio.run(run())


def _succeed(run: Run) -> Settlement:
    return Succeed(run.id, run.token, None)


def _retry(run: Run) -> Settlement:
    return Retry(run.id, run.token, LONG_S, ERROR)


@pytest.mark.parametrize("ending", [_succeed, _retry])
def test_whoever_comes_while_a_slot_is_being_freed_sees_it_free(
    ending: Callable[[Run], Settlement], postgres_place: Path
) -> None:
    """The settlement has deleted the slot and not committed: nobody would tell one who parks now."""

    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        run = await start(one, gates=ONE)
        [second] = await insert(one, a_job(gates=ONE))
        elsewhere = await enlist(other)
        arm("settle_jobs.inside", "hang")
        settling = asyncio.ensure_future(one.settle_jobs(run.worker, [ending(run)]))
        await wait_hit("settle_jobs.inside")
        racing = asyncio.ensure_future(claim(other, elsewhere))
        await waits_or_is_done(stores, racing)
        release("settle_jobs.inside")
        assert await settling == [Verdict.APPLIED]
        found = await racing or await claim(other, elsewhere)
        assert [job.id for job in found] == [second]

    _in_a_pair(postgres_place, play)


@pytest.mark.parametrize("ending", [_succeed, _retry])
@pytest.mark.parametrize("gates", [ONE, (*ONE, SlotGate("wide", 100))], ids=["one limit", "two"])
def test_a_slot_that_is_freed_while_somebody_begins_to_wait_is_for_him(
    gates: tuple[SlotGate, ...], ending: Callable[[Run], Settlement], postgres_place: Path
) -> None:
    """The claim has parked him and not committed: whoever frees the slot now does not see him yet."""

    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        run = await start(one, gates=ONE)
        [second] = await insert(one, a_job(gates=gates))
        elsewhere = await enlist(other)
        arm("claim_jobs.inside", "hang", skip=2)  # passed over, then the short way: both have done nothing
        claiming = asyncio.ensure_future(claim(other, elsewhere))
        await wait_hit("claim_jobs.inside")
        racing = asyncio.ensure_future(one.settle_jobs(run.worker, [ending(run)]))
        await waits_or_is_done(stores, racing)
        release("claim_jobs.inside")
        assert await racing == [Verdict.APPLIED]
        found = await claiming or await claim(other, elsewhere)
        assert [job.id for job in found] == [second]

    _in_a_pair(postgres_place, play)


def test_slots_that_were_taken_when_there_were_more_count_for_whoever_comes(postgres_place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, *_ = stores
        worker = await enlist(one)
        many = await insert(one, *(a_job(gates=(SlotGate("k", 50),)) for _ in range(20)))
        first, *_ = jobs = await claim(one, worker)
        assert [job.id for job in jobs] == many
        [late] = await insert(one, a_job(gates=(SlotGate("k", 20),)))
        assert await claim(one, worker) == []
        assert await state(one, late) is State.PARKED
        await finish(one, Run(worker, first))
        assert [job.id for job in await claim(one, worker)] == [late]

    _in_a_pair(postgres_place, play)


def test_a_slot_that_was_kept_for_a_job_is_the_one_it_runs_with(postgres_place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, *_ = stores
        worker = await enlist(one)
        await insert(one, *(a_job(gates=TWO) for _ in range(2)))
        a, b = await claim(one, worker)
        [c] = await insert(one, a_job(gates=TWO))
        assert await claim(one, worker) == []
        await finish(one, Run(worker, a))
        await finish(one, Run(worker, b))  # nobody waits any more: there is no gate that would have c judged
        [kept] = await claim(one, worker)
        d, e = await insert(one, *(a_job(gates=TWO) for _ in range(2)))
        assert kept.id == c
        assert [job.id for job in await claim(one, worker)] == [d]
        assert await state(one, e) is State.PARKED

    _in_a_pair(postgres_place, play)


def test_operators_wait_for_a_claim_that_takes_slots_by_what_was_said_before(postgres_place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        limit = (SlotGate("k", 50),)
        worker, another = await enlist(one), await enlist(other)
        ids = await insert(one, *(a_job(gates=limit) for _ in range(5)))
        arm("claim_jobs.inside", "hang", skip=1)  # first they are passed over
        claiming = asyncio.ensure_future(claim(one, worker, 4))
        await wait_hit("claim_jobs.inside")
        saying = asyncio.ensure_future(other.set_limit("k", size=1, pace=None, by="me"))
        await waits_or_is_done(stores, saying)
        assert not saying.done()
        release("claim_jobs.inside")
        assert [job.id for job in await claiming] == ids[:4], "it was there before"
        await saying
        assert await claim(other, another) == [], "and who comes now sees them"

    _in_a_pair(postgres_place, play)


def test_a_claim_of_limited_jobs_needs_a_valid_lease(postgres_place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        run = await start(one, gates=ONE)  # from now on more of that kind are expected
        [job_id] = await insert(one, a_job(gates=(SlotGate("another", 1),)))
        await other.renew_worker(run.worker, lease_s=0, held_for_s=LONG_S)
        with pytest.raises(LeaseLost):
            await claim(one, run.worker)
        assert await state(one, job_id) is State.READY

    _in_a_pair(postgres_place, play)


def test_a_worker_is_not_reaped_in_the_middle_of_a_claim_of_limited_jobs(postgres_place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        run = await start(one, gates=ONE)
        await finish(one, run)
        [job_id] = await insert(one, a_job(gates=ONE))
        arm("claim_jobs.inside", "hang")
        claiming = asyncio.ensure_future(claim(one, run.worker, 1))
        await wait_hit("claim_jobs.inside")
        await other.renew_worker(run.worker, lease_s=0, held_for_s=LONG_S)
        assert (await other.reap_workers(limit=PLENTY)).workers == ()  # its row is held by the claim: next time
        release("claim_jobs.inside")
        assert [job.id for job in await claiming] == [job_id]
        assert (await other.reap_workers(limit=PLENTY)).returned == 1
        assert [job.id for job in await claim(other, await enlist(other))] == [job_id]

    _in_a_pair(postgres_place, play)


@pytest.mark.parametrize("size", [40, 1_000_000])
def test_many_who_take_of_one_limit_at_once_all_get_theirs(size: int, postgres_place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        workers = [await enlist(one), await enlist(other)]
        ids = await insert(one, *(a_job(gates=(SlotGate("hot", size),)) for _ in range(40)))
        found: list[Run] = []

        async def take(number: int) -> None:
            store, worker = (one, other)[number], workers[number]
            while jobs := await claim(store, worker, 3):
                found.extend(Run(worker, job) for job in jobs)

        await asyncio.gather(take(0), take(1))
        assert sorted(run.id for run in found) == sorted(ids)
        numbers = stores.where.glance().query("SELECT count(DISTINCT number), max(number) <= 2 * 40 + 16 FROM slot")
        assert numbers == [(40, True)]
        for run in found:
            await finish(one, run)
        assert await one.gates() == []

    _in_a_pair(postgres_place, play)
