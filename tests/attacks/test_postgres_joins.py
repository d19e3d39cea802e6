"""Joins that end while their members do, in transactions that do not see each other."""

from __future__ import annotations

import asyncio

import psycopg
from tests.postgres.fixtures import PostgresSchema

from holdfast.core.settlement import Succeed
from holdfast.stores.postgres import PostgresStore, end
from holdfast.testing.contracts.arrange import a_job, apply, claim, enlist, insert


def test_a_member_that_ends_while_its_join_is_cancelled_leaves_no_arrival(postgres_tables: PostgresSchema) -> None:
    async def scenario() -> None:
        first = PostgresStore(postgres_tables.url, schema=postgres_tables.schema)
        second = PostgresStore(postgres_tables.url, schema=postgres_tables.schema)
        await first.open()
        await second.open()
        worker = await enlist(first)
        [member] = await insert(first, a_job())
        [join] = await insert(first, a_job(waits_for=(member,)))
        [run] = await claim(first, worker)
        arrived, cancelled = asyncio.Event(), asyncio.Event()
        count_arrivals = end.count_arrivals

        async def pausing(*args: object) -> int:
            end.count_arrivals = count_arrivals  # only the first of them waits
            arrived.set()
            await cancelled.wait()
            return await count_arrivals(*args)  # type: ignore[arg-type]

        end.count_arrivals = pausing  # type: ignore[assignment]
        try:
            settling = asyncio.create_task(apply(first, worker, Succeed(run.id, run.token, None)))
            await arrived.wait()
            await second.cancel_jobs([join], reason="no longer wanted")
            cancelled.set()
            await settling
        finally:
            end.count_arrivals = count_arrivals
        await first.close()
        await second.close()

    asyncio.run(scenario())
    with psycopg.connect(postgres_tables.url) as connection:
        for table in ("arrival", "member", "blocked"):
            query = f"SELECT count(*) FROM {postgres_tables.schema}.{table}"
            assert connection.execute(query).fetchone() == (0,), table  # type: ignore[call-overload]
