"""Rule 7 for limits: what keeps the cluster in order waits for nobody who has one in hand, and holds one at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from tests.campaign.child import until
from tests.faults.pair import Pair, pair
from tests.faults.trial import PATIENCE_S

from holdfast.core.gates import SlotGate
from holdfast.core.job import JobId
from holdfast.core.settlement import Succeed, Verdict
from holdfast.core.state import State
from holdfast.runtime.failpoints import arm, release, wait_hit
from holdfast.stores.base import JobFilter, Store, Swept
from holdfast.testing.contracts.arrange import (
    LONG_S,
    PLENTY,
    Run,
    a_job,
    claim,
    drain,
    enlist,
    finish,
    insert,
    resume,
    start,
    state,
)

_LOCK = "SELECT true FROM {schema}.gate WHERE kind = 'limit' AND key = %s FOR NO KEY UPDATE NOWAIT"


def _in_a_pair(directory: Path, play: Callable[[Pair], Awaitable[None]]) -> None:
    async def run() -> None:
        async with pair(directory) as stores:
            await play(stores)

    asyncio.run(run())


@contextmanager
def in_hand(stores: Pair, key: str) -> Iterator[None]:
    """A process that has a limit in hand and is stopped there."""
    with psycopg.connect(stores.where.url) as side:
        lock = _LOCK.format(schema=stores.where.schema)
        assert side.execute(lock, [key]).fetchone() == (True,)  # type: ignore[call-overload]
        yield
        side.rollback()


def test_rule_7_a_reap_does_not_wait_for_a_limit_that_is_held_elsewhere(postgres_place: Path) -> None:
    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        run = await start(one, gates=(SlotGate("k", 1),))
        beside = await start(one, worker=run.worker)
        [waiting] = await insert(one, a_job(gates=(SlotGate("k", 1),)))
        assert await drain(one, run.worker) == []
        await other.renew_worker(run.worker, lease_s=0, held_for_s=LONG_S)
        with in_hand(stores, "k"):
            reaping = asyncio.ensure_future(other.reap_workers(limit=PLENTY))
            seen = "SELECT count(*) FROM ready HAVING count(*) = 2"
            is_back = lambda: stores.where.glance().query(seen)  # noqa: E731
            await until(is_back, within_s=PATIENCE_S, what="both jobs to be back while the limit is held")
            assert await state(one, waiting) is State.PARKED
        assert (await reaping).returned == 2
        await one.sweep(limit=PLENTY)  # the net, where the limit was held for longer than anybody waits
        assert await state(one, waiting) is State.READY
        worker = await enlist(one)
        runs = [Run(worker, job) for job in await drain(one, worker)]
        assert {each.id for each in runs} == {beside.id, waiting}
        for each in runs:
            await finish(one, each)
        await finish(one, await resume(one, run.id, worker=worker))

    _in_a_pair(postgres_place, play)


@pytest.mark.parametrize("way", ["short", "longer"])
def test_a_freed_slot_is_not_for_whoever_comes_before_the_oldest_is_let_go(way: str, postgres_place: Path) -> None:
    """The settlement has committed, and those who wait for its slot have not been looked after yet."""
    gates = (SlotGate("k", 1), SlotGate("wide", 100)) if way == "longer" else (SlotGate("k", 1),)

    async def play(stores: Pair) -> None:
        one, other, *_ = stores
        run = await start(one, gates=gates)
        [oldest] = await insert(one, a_job(gates=gates))
        assert await drain(one, run.worker) == []
        [newcomer] = await insert(one, a_job(gates=gates))
        arm("serve_gates.begin", "hang")
        settling = asyncio.ensure_future(finish(one, run))
        await wait_hit("serve_gates.begin")
        assert await drain(other, await enlist(other)) == [], "somebody has waited for longer"
        release("serve_gates.begin")
        await settling
        assert [await state(one, job_id) for job_id in (oldest, newcomer)] == [State.READY, State.PARKED]

    _in_a_pair(postgres_place, play)


def test_slots_of_the_same_limits_are_taken_in_any_order_without_a_deadlock(postgres_place: Path) -> None:
    """Batches that need the same keys, each in another order, claimed and settled by several processes at once."""
    keys = [SlotGate(f"key {number}", 3) for number in range(6)]
    many = 240

    async def work(store: Store) -> list[JobId]:
        worker, done = await enlist(store), list[JobId]()
        for _ in range(400):
            jobs = await claim(store, worker, 12)
            if jobs:
                verdicts = await store.settle_jobs(worker, [Succeed(job.id, job.token, None) for job in jobs])
                assert verdicts == [Verdict.APPLIED] * len(jobs)
                done += [job.id for job in jobs]
            elif not (await store.serve_gates(limit=PLENTY)).unparked and not await store.count_jobs(
                JobFilter(state=State.PARKED), most=1
            ):
                break
        return done

    async def play(stores: Pair) -> None:
        ids = await insert(
            stores.one, *(a_job(gates=(keys[n % 6], keys[(n * 5 + 1) % 6], keys[(n * 3 + 2) % 6])) for n in range(many))
        )
        before = stores.where.glance().query(
            "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        )
        found = await asyncio.gather(*(stores.in_a_thread(work) for _ in range(3)))
        assert sorted(job_id for each in found for job_id in each) == sorted(ids)
        after = stores.where.glance().query("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        assert after == before
        assert not any(await stores.one.sweep(limit=PLENTY))

    _in_a_pair(postgres_place, play)


async def _two_limits_in_disorder(stores: Pair) -> None:
    """Somebody waits for each although there is room, which nothing but a hand brings about."""
    for key in ("a", "b"):
        run = await start(stores.one, gates=(SlotGate(key, 1),))
        await insert(stores.one, a_job(gates=(SlotGate(key, 1),)))
        assert await drain(stores.one, run.worker) == []
    stores.by_hand("DELETE FROM slot")


def test_rule_7_a_sweep_passes_over_a_limit_that_is_held_elsewhere_and_comes_again(postgres_place: Path) -> None:
    async def play(stores: Pair) -> None:
        await _two_limits_in_disorder(stores)
        with in_hand(stores, "a"):
            swept = await asyncio.wait_for(stores.other.sweep(limit=PLENTY), PATIENCE_S)
            assert swept == Swept(0, 1, 0, 0, 0), "the other one is put right"
        assert await stores.other.sweep(limit=PLENTY) == Swept(0, 1, 0, 0, 0)
        assert not any(await stores.other.sweep(limit=PLENTY))

    _in_a_pair(postgres_place, play)


def test_rule_7_a_sweep_has_one_limit_in_hand_at_a_time(postgres_place: Path) -> None:
    async def play(stores: Pair) -> None:
        await _two_limits_in_disorder(stores)
        arm("sweep.inside", "hang", skip=3)  # tenants' tags, all else but the limits, then the first of these
        sweeping = asyncio.ensure_future(stores.other.sweep(limit=PLENTY))
        await wait_hit("sweep.inside")
        with in_hand(stores, "a"):  # the second is being swept, and the first is free again
            pass
        release("sweep.inside")
        assert await sweeping == Swept(0, 2, 0, 0, 0)

    _in_a_pair(postgres_place, play)
