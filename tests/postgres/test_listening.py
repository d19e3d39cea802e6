"""Only a process in which somebody wants to hear is woken by what others do."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest
from tests.postgres.fixtures import PostgresSchema

from holdfast import Holdfast
from holdfast.stores.base import Hint
from holdfast.stores.postgres import PostgresStore
from holdfast.testing.contracts.arrange import a_job

PATIENCE_S = 30.0


async def _last_said(side: asyncpg.Connection[asyncpg.Record]) -> list[str]:
    """The last statement of each connection for hints on this database."""
    rows = await side.fetch(
        "SELECT query FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1",
        "holdfast wakeups",
    )
    return [row["query"].split()[0] for row in rows if row["query"]]


def test_an_open_app_listens_only_once_somebody_wants_to_hear(postgres_tables: PostgresSchema) -> None:
    async def main() -> None:
        side = await asyncpg.connect(postgres_tables.url)
        other = PostgresStore(postgres_tables.url, schema=postgres_tables.schema)
        try:
            async with asyncio.timeout(PATIENCE_S), Holdfast(postgres_tables.url, schema=postgres_tables.schema) as hf:
                await hf.enqueue("nobody.knows")
                while await _last_said(side) != ["SELECT"]:  # it speaks
                    await asyncio.sleep(0.01)
                await other.open()
                heard = asyncio.Event()
                leave = other.subscribe(lambda hint: heard.set() if Hint.READY in hint else None)
                await heard.wait()  # it hears that it may have missed something
                heard.clear()
                await hf.enqueue("nobody.knows")
                await heard.wait()
                leave()
                assert sorted(await _last_said(side)) == ["LISTEN", "SELECT"]
        finally:
            await other.close()
            await side.close()

    asyncio.run(main())


@pytest.mark.parametrize("moment", ["before it is open", "after"])
def test_who_subscribes_hears(postgres_tables: PostgresSchema, moment: str) -> None:
    async def main() -> None:
        store, other = (PostgresStore(postgres_tables.url, schema=postgres_tables.schema) for _ in range(2))
        heard = asyncio.Event()
        async with asyncio.timeout(PATIENCE_S):
            if moment == "after":
                await store.open()
            store.subscribe(lambda hint: heard.set() if Hint.TIMER in hint else None)
            if moment != "after":
                await store.open()
            await other.open()
            await heard.wait()
            heard.clear()
            await other.insert_jobs([a_job(delay_s=3600.0)])
            await heard.wait()
        await store.close()
        await other.close()

    asyncio.run(main())
