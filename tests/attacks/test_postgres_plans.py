"""Plans that were made while the tables were empty, and are kept when they no longer are."""

from __future__ import annotations

import asyncio

import pytest
from tests.postgres.fixtures import PostgresSchema

from holdfast.stores.postgres import PostgresStore

BY_ID = (
    *("insert_jobs.attach", "insert_jobs.not_ended", "waiting.leave_all", "end_jobs.drop_slots", "serving.unpark"),
    *("moving.ready", "moving.parked"),
)


@pytest.mark.parametrize("statement", BY_ID)
def test_jobs_are_found_by_id_whatever_was_there_when_the_plan_was_made(
    postgres_tables: PostgresSchema, statement: str
) -> None:
    async def scenario() -> str:
        store = PostgresStore(postgres_tables.url, schema=postgres_tables.schema)
        await store.open()
        engine = store._engine
        try:
            async with engine.verbs.connection() as connection:
                await connection.execute("SET plan_cache_mode = force_generic_plan")
                await connection.execute(f"PREPARE kept (uuid[]) AS {engine.sql[statement]}")
                others = ", NULL" if "$2" in engine.sql[statement] else ""
                return "\n".join(row[0] for row in await connection.fetch(f"EXPLAIN EXECUTE kept ('{{}}'{others})"))
        finally:
            await store.close()

    plan = asyncio.run(scenario())
    assert "Index" in plan
    assert "Seq Scan" not in plan, plan
