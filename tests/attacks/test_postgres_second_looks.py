"""A claim of several parts: what one of them has leased is told of, whatever becomes of the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import psycopg
import pytest
from tests.integration.scene import scene
from tests.postgres.fixtures import PostgresSchema

from holdfast.core.errors import StoreUnavailable
from holdfast.core.fairness import Lane
from holdfast.core.gates import SlotGate
from holdfast.core.queue import QueueSettings
from holdfast.core.state import State
from holdfast.runtime.failpoints import arm, release, wait_hit
from holdfast.stores.postgres import PostgresStore
from holdfast.testing.contracts.arrange import (
    LANE,
    LONG_S,
    PRIORITY,
    Run,
    a_job,
    an_id,
    claim,
    enlist,
    finish,
    insert,
    start,
    state,
    states,
)

ONE, TWO, MANY = ((SlotGate("k", size),) for size in (1, 2, 100))
BESIDE = Lane("beside", PRIORITY)


@asynccontextmanager
async def _stores(place: PostgresSchema, count: int = 1) -> AsyncIterator[list[PostgresStore]]:
    stores = [PostgresStore(place.url, schema=place.schema) for _ in range(count)]
    for store in stores:
        await store.open()
    yield stores
    for store in stores:
        await store.close()


@scene
async def test_what_a_second_look_leases_of_those_that_the_first_one_passed_over_is_told_of(
    postgres_tables: PostgresSchema,
) -> None:
    """Where a lane brought as many as were asked for, the next look begins behind them, and a second one from the
    ground: until then slots may have been freed."""
    async with _stores(postgres_tables, 2) as (one, other):
        worker = await enlist(one)
        await insert(one, *(a_job(gates=TWO) for _ in range(2)))
        before = await claim(one, worker, 2)
        assert len(before) == 2
        [late] = await insert(one, a_job(gates=TWO))
        arm("claim_jobs.committed", "hang")  # after the first look
        claiming = asyncio.ensure_future(one.claim_jobs(worker, {LANE: 10}, deadline_s=60))
        await wait_hit("claim_jobs.committed")
        for job in before:
            await finish(other, Run(worker, job))
        release("claim_jobs.committed")
        found = await claiming
        assert [job.id for job in found.jobs] == [late]
        assert found.scanned == {LANE: 1}, "though it was looked at twice"
        held = (await one.renew_worker(worker, lease_s=LONG_S, held_for_s=0)).held
        assert [each.job_id for each in held] == [late]


@scene
async def test_jobs_without_a_limit_do_not_wait_for_one_that_is_in_somebodys_hand(
    postgres_tables: PostgresSchema,
) -> None:
    async with _stores(postgres_tables) as [store]:
        run = await start(store, gates=ONE)
        [waiting] = await insert(store, a_job(gates=ONE))
        assert await claim(store, run.worker) == []
        [behind] = await insert(store, a_job(gates=ONE))
        ordinary = await insert(store, *(a_job() for _ in range(3)))
        with psycopg.connect(postgres_tables.url) as side:
            gate = f"{postgres_tables.schema}.gate"
            side.execute(f"SELECT 1 FROM {gate} FOR NO KEY UPDATE")  # type: ignore[call-overload]  # a schema's name is in it
            found = await store.claim_jobs(run.worker, {LANE: 10}, deadline_s=1.0)
        assert [job.id for job in found.jobs] == ordinary
        assert await states(store, waiting, behind) == [State.PARKED, State.READY]


@scene
async def test_a_claim_that_leases_nothing_before_its_patience_is_out_says_so(postgres_tables: PostgresSchema) -> None:
    async with _stores(postgres_tables) as [store]:
        run = await start(store, gates=ONE)
        await insert(store, a_job(gates=ONE))
        assert await claim(store, run.worker) == []
        await insert(store, a_job(gates=ONE))
        with psycopg.connect(postgres_tables.url) as side:
            gate = f"{postgres_tables.schema}.gate"
            side.execute(f"SELECT 1 FROM {gate} FOR NO KEY UPDATE")  # type: ignore[call-overload]  # a schema's name is in it
            with pytest.raises(StoreUnavailable):
                await store.claim_jobs(run.worker, {LANE: 10}, deadline_s=0.5)


@scene
async def test_jobs_without_a_limit_do_not_wait_for_a_number_that_is_in_somebodys_hand(
    postgres_tables: PostgresSchema,
) -> None:
    """A process that has taken the last slot of a limit is stopped in the middle of its claim."""
    async with _stores(postgres_tables) as [store]:
        run = await start(store, gates=(SlotGate("another", 1),))  # from now on more of that kind are expected
        ordinary = await insert(store, *(a_job(queue=BESIDE.queue) for _ in range(3)))
        [limited] = await insert(store, a_job(gates=ONE))
        stuck = await asyncpg.connect(postgres_tables.url)
        async with stuck.transaction():
            slot = f"INSERT INTO {postgres_tables.schema}.slot (job_id, kind, key, number) VALUES ($1, 'limit', 'k', 1)"
            await stuck.execute(slot, an_id())
            found = await store.claim_jobs(run.worker, {BESIDE: 5, LANE: 5}, deadline_s=2.5)
            assert [job.id for job in found.jobs] == ordinary
            assert await state(store, limited) is State.READY
            await stuck.execute(f"DELETE FROM {postgres_tables.schema}.slot WHERE key = 'k'")
        await stuck.close()
        assert [job.id for job in await claim(store, run.worker)] == [limited]


@pytest.mark.parametrize("last", [1, 2], ids=["alone", "beside a lonely one"])
@scene
async def test_limited_jobs_are_claimed_beside_a_queue_that_is_paused(
    postgres_tables: PostgresSchema, last: int
) -> None:
    """Nobody begins anew for it, nor waits until nothing else runs for a job of it that must run alone."""
    async with _stores(postgres_tables) as [store]:
        run = await start(store, gates=MANY)  # from now on more of that kind are expected
        ids = await insert(store, *(a_job(gates=MANY) for _ in range(4)))
        [paused] = await insert(store, a_job(queue=BESIDE.queue))
        if last == 2:
            with psycopg.connect(postgres_tables.url, autocommit=True) as side:
                ready = f"UPDATE {postgres_tables.schema}.ready SET losses = 2 WHERE queue = %s"
                side.execute(ready, [BESIDE.queue])  # type: ignore[call-overload]  # a schema's name is in it
        await store.set_queue(BESIDE.queue, QueueSettings(paused=True), by="me")
        for job_id in ids:
            found = await store.claim_jobs(run.worker, {LANE: 1, BESIDE: 1}, deadline_s=60)
            assert [job.id for job in found.jobs] == [job_id]
            assert not found.lonely
        assert await state(store, paused) is State.READY
