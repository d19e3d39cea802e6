"""A pause holds from its answer on: it waits for a claim that has begun before it and waits for somebody's gate."""

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
def test_nothing_is_started_after_a_pause_was_answered_by_a_claim_that_began_before(
    postgres_tables: PostgresSchema, say: Say, ruled: bool, gates: tuple[SlotGate, ...]
) -> None:
    async def scenario() -> None:
        one, other = (PostgresStore(postgres_tables.url, schema=postgres_tables.schema) for _ in range(2))
        await one.open()
        await other.open()
        worker = await enlist(one)
        ids = await insert(one, *(a_job(gates=gates, tenant="acme") for _ in range(2)))
        if ruled:
            await one.set_limit("wide", size=4, pace=None, by="me")
        with psycopg.connect(postgres_tables.url) as side:
            gate = f"{postgres_tables.schema}.gate"
            side.execute(f"INSERT INTO {gate} (kind, key) VALUES ('limit', 'k')")  # type: ignore[call-overload]
            side.commit()
            side.execute(f"SELECT 1 FROM {gate} WHERE key = 'k' FOR NO KEY UPDATE")  # type: ignore[call-overload]
            claiming = asyncio.ensure_future(one.claim_jobs(worker, {LANE: 1}, deadline_s=60))
            await _until_somebody_waits(postgres_tables, "tuple", "transactionid")
            saying = asyncio.ensure_future(say(other))
            await _until_somebody_waits(postgres_tables, "advisory")
            side.rollback()
        assert [job.id for job in (await claiming).jobs] == ids[:1]
        await saying
        assert await claim(one, worker) == []
        assert await state(one, ids[1]) in (State.READY, State.PARKED)
        await other.set_paused(task=TASK, tenant="acme", paused=False, by="me")
        await other.set_queue(QUEUE, QueueSettings(), by="me")
        await other.serve_gates(limit=10)
        [job] = await claim(one, worker)
        assert job.id == ids[1]
        await one.close()
        await other.close()

    asyncio.run(asyncio.wait_for(scenario(), 30))


async def _until_somebody_waits(place: PostgresSchema, *events: str) -> None:
    with psycopg.connect(place.url, autocommit=True) as connection:
        query = (
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' "
            "AND wait_event = ANY (%s) LIMIT 1"
        )
        while connection.execute(query, [list(events)]).fetchone() is None:
            await asyncio.sleep(0.01)
