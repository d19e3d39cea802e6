"""A process that stops in the middle of a transaction, holding what others wait for."""

from __future__ import annotations

import asyncio

import asyncpg
from tests.postgres.fixtures import PostgresSchema

from holdfast.config import Config
from holdfast.core.cause import Cause
from holdfast.core.gates import SlotGate
from holdfast.stores.postgres import PostgresStore
from holdfast.testing.contracts.arrange import a_job, claim, enlist, insert


def test_enqueues_go_on_while_every_other_verb_waits_for_a_limit(postgres_tables: PostgresSchema) -> None:
    async def scenario() -> None:
        store = PostgresStore(postgres_tables.url, schema=postgres_tables.schema)
        await store.open()
        workers = [await enlist(store), await enlist(store)]
        for worker in workers:
            await insert(store, a_job(gates=(SlotGate("k", 2),)))
            assert await claim(store, worker)
        await insert(store, a_job(gates=(SlotGate("k", 2),)))
        assert await claim(store, worker) == []
        stalled = await asyncpg.connect(postgres_tables.url)
        async with stalled.transaction():
            gate = f"{postgres_tables.schema}.gate"
            await stalled.fetch(f"SELECT true FROM {gate} WHERE kind = 'limit' AND key = 'k' FOR NO KEY UPDATE")
            waiting = [
                asyncio.create_task(store.hand_back_worker(worker, cause=Cause.WORKER_LOST, why="gone"))
                for worker in workers
            ]
            query = (
                "SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted "
                f"AND pid IN (SELECT pid FROM pg_locks WHERE relation = '{gate}'::regclass)"
            )
            while await stalled.fetchval(query) < len(workers):
                await asyncio.sleep(0.01)
            await insert(store, a_job(queue="another"))
            assert not any(task.done() for task in waiting)
        assert await asyncio.gather(*waiting) == [1, 1]
        await stalled.close()
        await store.close()

    asyncio.run(scenario())


def test_a_stalled_transaction_is_ended_sooner_than_its_lease(postgres_tables: PostgresSchema) -> None:
    async def scenario() -> float:
        store = PostgresStore(postgres_tables.url, schema=postgres_tables.schema)
        await store.open()
        try:
            async with store._engine.claims.connection() as connection:
                query = "SELECT setting::float8 / 1000 FROM pg_settings WHERE name = $1"
                return float(await connection.fetchval(query, "idle_in_transaction_session_timeout"))
        finally:
            await store.close()

    assert 0 < asyncio.run(scenario()) < Config().lease_s


def test_the_server_compiles_none_of_our_statements(postgres_tables: PostgresSchema) -> None:
    """One that reads a small table looks very dear to it, as reading whole tables is dissuaded from: a drain of two
    seconds took more than a minute on a server that can compile (those of Debian can, that of the wheel cannot)."""

    async def scenario() -> list[str]:
        store = PostgresStore(postgres_tables.url, schema=postgres_tables.schema)
        await store.open()
        try:
            found = []
            for line in (store._engine.claims, store._engine.settlements, store._engine.verbs, store._engine.reports):
                async with line.connection() as connection:
                    found.append(str(await connection.fetchval("SHOW jit")))
            return found
        finally:
            await store.close()

    assert asyncio.run(scenario()) == ["off"] * 4
