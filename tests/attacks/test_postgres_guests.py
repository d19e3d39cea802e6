"""Users' connections that were taught to answer in their own way: a job is never half there (P1, P6)."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import pytest
from tests.postgres.fixtures import PostgresSchema

from holdfast import Holdfast

CALLS: dict[str, dict[str, Any]] = {
    "plain": {},
    "delayed": {"delay": 60},
    "keyed": {"key": "k"},
    "expiring": {"expires": 60},
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("type_name", ["uuid", "timestamptz"])
def test_a_connection_that_answers_with_text_enqueues_as_any_other(
    postgres_tables: PostgresSchema, type_name: str, call: str
) -> None:
    async def scenario() -> None:
        hf = Holdfast(postgres_tables.url, schema=postgres_tables.schema)

        @hf.task
        async def work() -> None: ...

        async with hf:
            connection = await asyncpg.connect(postgres_tables.url)
            try:
                await connection.set_type_codec(type_name, encoder=str, decoder=str, schema="pg_catalog")
                async with connection.transaction():
                    job = await work.options(connection=connection, **CALLS[call]).enqueue()
            finally:
                await connection.close()
            expected = "scheduled" if call == "delayed" else "ready"
            assert (await hf.jobs.get(job.id)).state == expected

    asyncio.run(scenario())
