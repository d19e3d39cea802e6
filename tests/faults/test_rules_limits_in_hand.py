"""Rule 7 for limits: what keeps the cluster in order waits for nobody who has one in hand, and holds one at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from tests.campaign.child import until
from tests.faults.pair import Pair, pair
from tests.faults.trial import PATIENCE_S

from holdfast.core.gates import SlotGate
from holdfast.core.state import State
from holdfast.runtime.failpoints import arm, release, wait_hit
from holdfast.stores.base import Swept
from holdfast.testing.contracts.arrange import (
    LONG_S,
    PLENTY,
    Run,
    a_job,
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
