"""A pause holds from its commit on, also for a claim that has begun before it and waits for somebody's gate."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import psycopg
import pytest
from tests.postgres.fixtures import PostgresSchema

from holdfast.core.gates import SlotGate
from holdfast.core.queue import QueueSettings
from holdfast.core.state import State
from holdfast.stores.postgres import PostgresStore
from holdfast.testing.contracts.arrange import LANE, QUEUE, TASK, a_job, claim, enlist, insert, state

SHORT = (SlotGate("k", 5),)
LONGER = (SlotGate("k", 5), SlotGate("wide", 5))

Say = Callable[[PostgresStore], Awaitable[None]]


async def _pause_task(store: PostgresStore) -> None:
    await store.set_paused(task=TASK, paused=True, by="me")


async def _pause_tenant(store: PostgresStore) -> None:
    await store.set_paused(tenant="acme", paused=True, by="me")


async def _pause_queue(store: PostgresStore) -> None:
    await store.set_queue(QUEUE, QueueSettings(paused=True), by="me")


@pytest.mark.parametrize("gates", [SHORT, LONGER], ids=["the short way", "the longer way"])
@pytest.mark.parametrize("ruled", [False, True], ids=["nothing said before", "something said before"])
@pytest.mark.parametrize("say", [_pause_task, _pause_tenant, _pause_queue])
def test_a_claim_that_waits_for_a_gate_starts_nothing_that_is_paused_meanwhile(
    postgres_tables: PostgresSchema, say: Say, ruled: bool, gates: tuple[SlotGate, ...]
) -> None:
    async def scenario() -> None:
        one, other = (PostgresStore(postgres_tables.url, schema=postgres_tables.schema) for _ in range(2))
        await one.open()
        await other.open()
        worker = await enlist(one)
        [job_id] = await insert(one, a_job(gates=gates, tenant="acme"))
        if ruled:
            await one.set_limit("wide", size=4, pace=None, by="me")
        with psycopg.connect(postgres_tables.url) as side:
            gate = f"{postgres_tables.schema}.gate"
            side.execute(f"INSERT INTO {gate} (kind, key) VALUES ('limit', 'k')")  # type: ignore[call-overload]
            side.commit()
            side.execute(f"SELECT 1 FROM {gate} WHERE key = 'k' FOR NO KEY UPDATE")  # type: ignore[call-overload]
            claiming = asyncio.ensure_future(one.claim_jobs(worker, {LANE: 1}, deadline_s=60))
            await _until_somebody_waits(postgres_tables)
            await say(other)
            side.rollback()
        assert (await claiming).jobs == []
        assert await state(one, job_id) in (State.READY, State.PARKED)
        await other.set_paused(task=TASK, tenant="acme", paused=False, by="me")
        await other.set_queue(QUEUE, QueueSettings(), by="me")
        await other.serve_gates(limit=10)
        [job] = await claim(one, worker)
        assert job.id == job_id
        await one.close()
        await other.close()

    asyncio.run(asyncio.wait_for(scenario(), 30))


async def _until_somebody_waits(place: PostgresSchema) -> None:
    with psycopg.connect(place.url, autocommit=True) as connection:
        query = (
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' "
            "AND wait_event IN ('tuple', 'transactionid') LIMIT 1"
        )
        while connection.execute(query).fetchone() is None:
            await asyncio.sleep(0.01)
