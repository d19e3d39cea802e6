"""Rule 2 for jobs whose body somebody deleted by hand, wherever they wait: each ends and is seen, none vanishes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.faults.pair import Pair, pair

from holdfast.core.fairness import Lane
from holdfast.core.gates import SlotGate
from holdfast.core.job import JobId
from holdfast.core.settlement import UNKNOWN_TASK, Bury, Park
from holdfast.core.state import State
from holdfast.testing.contracts.arrange import (
    ERROR,
    LANE,
    LONG_S,
    PLENTY,
    a_job,
    drain,
    due,
    enlist,
    finish,
    info,
    insert,
    start,
)

AFTER = Lane("after", LANE.priority)
FORGET = "DELETE FROM job WHERE queue = 'after'"


async def promoted(stores: Pair) -> JobId:
    [job_id, other] = await insert(stores.one, *(a_job(queue=queue, delay_s=0.01) for queue in ("after", LANE.queue)))
    stores.by_hand(FORGET)
    stores.clock.advance(1.0)
    await due(stores.one)
    [beside] = await drain(stores.one, await enlist(stores.one))
    assert beside.id == other, "its neighbour is promoted all the same"
    return job_id


async def unparked(stores: Pair) -> JobId:
    run = await start(stores.one, queue="after")
    await stores.one.settle_jobs(run.worker, [Park(run.id, run.token, UNKNOWN_TASK, "t")])
    stores.by_hand(FORGET)
    assert await stores.one.unpark_jobs(reason=UNKNOWN_TASK, keys=["t"]) == 1
    return run.id


async def unparked_from_a_limit(stores: Pair) -> JobId:
    limit = SlotGate("one", 1)
    run = await start(stores.one, gates=(limit,))
    waiting, other = await insert(stores.one, a_job(gates=(limit,), queue="after"), a_job(gates=(limit,)))
    assert await drain(stores.one, run.worker, AFTER, LANE) == []
    stores.by_hand(FORGET)
    await finish(stores.one, run)
    await drain(stores.one, run.worker, AFTER)
    [beside] = await drain(stores.one, run.worker)
    assert beside.id == other, "it keeps no slot from its neighbour"
    return waiting


async def replayed(stores: Pair) -> JobId:
    run = await start(stores.one, queue="after")
    await stores.one.settle_jobs(run.worker, [Bury(run.id, run.token, "permanent", ERROR)])
    stores.by_hand(FORGET)
    assert await stores.one.replay_jobs([run.id]) == 0, "there is nothing to run"
    return run.id


async def released(stores: Pair) -> JobId:
    run = await start(stores.one)
    [follower] = await insert(stores.one, a_job(waits_for=(run.id,), queue="after"))
    stores.by_hand(FORGET)
    await finish(stores.one, run)
    return follower


async def released_at_a_time(stores: Pair) -> JobId:
    run = await start(stores.one)
    [follower] = await insert(stores.one, a_job(waits_for=(run.id,), queue="after", delay_s=5.0))
    stores.by_hand(FORGET)
    await finish(stores.one, run)
    stores.clock.advance(6.0)
    await due(stores.one)
    return follower


WAYS = [promoted, unparked, unparked_from_a_limit, replayed, released, released_at_a_time]


async def name_tenants(stores: Pair) -> None:
    """From now on jobs in these queues get tags."""
    named = await insert(
        stores.one, *(a_job(queue=queue, tenant="a", delay_s=LONG_S) for queue in (AFTER.queue, LANE.queue))
    )
    await stores.one.cancel_jobs(named, reason="enough")


@pytest.mark.parametrize("tenants", [False, True], ids=["plain", "with tenants"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: str(way.__name__))
def test_rule_2_a_waiting_job_without_a_body_ends_and_is_seen(
    way: Callable[[Pair], Awaitable[JobId]], tenants: bool, place: Path
) -> None:
    async def run() -> None:
        async with pair(place) as stores:
            if tenants:
                await name_tenants(stores)
            job_id = await way(stores)
            worker = await enlist(stores.other)
            for lane in (AFTER, LANE, Lane("default", LANE.priority)):
                assert job_id not in [job.id for job in await drain(stores.other, worker, lane)]
            found = await info(stores.other, job_id)
            assert (found.state, found.reason) == (State.DEAD, "body_missing")
            assert found.error is not None
            assert not any(await stores.one.sweep(limit=PLENTY))

    asyncio.run(run())
