"""The sweep folds the tags that were given in users' transactions, and waits for nobody while it holds them."""

from __future__ import annotations

import asyncio

import asyncpg
from tests.postgres.fixtures import PostgresSchema

from holdfast.stores.postgres import PostgresStore
from holdfast.testing.contracts.arrange import PLENTY, QUEUE, a_job, insert

_WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name LIKE 'holdfast%'"


def test_a_producer_does_not_wait_for_a_sweep_that_waits_for_a_join(postgres_tables: PostgresSchema) -> None:
    async def scenario() -> None:
        store = PostgresStore(postgres_tables.url, schema=postgres_tables.schema)
        await store.open()
        looking, holding = [await asyncpg.connect(postgres_tables.url) for _ in range(2)]
        await holding.execute(f"SET search_path = {postgres_tables.schema}")
        [member] = await insert(store, a_job(queue="elsewhere"))
        [join] = await insert(store, a_job(queue="elsewhere", waits_for=(member,)))
        # Both as a user's transaction leaves them behind: an arrival that nobody has counted, and a tag in a note.
        await holding.execute("INSERT INTO arrival (join_id, job_id, counted) VALUES ($1, $2, false)", join, member)
        [noted] = await insert(store, a_job(tenant="a"))
        await holding.execute("INSERT INTO tenant_note VALUES (50000, $1, 5, $2, 'a')", noted, QUEUE)
        async with asyncio.timeout(30), asyncio.TaskGroup() as group, holding.transaction():
            await holding.execute("SELECT FROM blocked WHERE job_id = $1 FOR UPDATE", join)
            group.create_task(store.sweep(limit=PLENTY))
            while not await looking.fetchval(_WAITING):
                await asyncio.sleep(0)
            await asyncio.wait_for(insert(store, a_job(tenant="a")), 4)
        await looking.close()
        await holding.close()
        await store.close()

    asyncio.run(scenario())


def test_a_sweep_and_a_producer_do_not_wait_for_each_other(postgres_tables: PostgresSchema) -> None:
    """The producer had the tag of `b` and wanted to begin that of `a`; the sweep had begun `a` and waited for `b`."""

    async def scenario() -> None:
        store = PostgresStore(postgres_tables.url, schema=postgres_tables.schema)
        await store.open()
        looking, holding = [await asyncpg.connect(postgres_tables.url) for _ in range(2)]
        await holding.execute(f"SET search_path = {postgres_tables.schema}")
        await holding.execute("SET deadlock_timeout = '10ms'")  # it is this one that would hear of it
        [job] = await insert(store, a_job(tenant="b"))
        for tenant in "ab":
            await holding.execute("INSERT INTO tenant_note VALUES (50000, $1, 5, $2, $3)", job, QUEUE, tenant)
        async with asyncio.timeout(30), asyncio.TaskGroup() as group, holding.transaction():
            # The two halves of the function `give_tags`.
            await holding.execute("SELECT FROM tenant_tag WHERE tenant = 'b' FOR UPDATE")
            group.create_task(store.sweep(limit=PLENTY))
            while not await looking.fetchval(_WAITING):
                await asyncio.sleep(0)
            await holding.execute("INSERT INTO tenant_tag VALUES (1, $1, 5, $2, 'a')", job, QUEUE)
        rows = await holding.fetch("SELECT tenant, tag FROM tenant_tag ORDER BY tenant")
        assert [tuple(row) for row in rows] == [("a", 50000), ("b", 50000)]
        await looking.close()
        await holding.close()
        await store.close()

    asyncio.run(scenario())
