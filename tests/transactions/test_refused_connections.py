"""A connection that cannot be used is refused in a sentence, and what it was doing goes on."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from typing import Any

import asyncpg
import psycopg
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import create_async_engine
from tests.transactions.bench import Bench, run

from holdfast import Holdfast, InvalidOptions, StoreUnavailable


async def refused(bench: Bench, connection: Any, sentence: str, *, blocking: bool = False) -> None:
    task = bench.work.options(connection=connection)
    with pytest.raises(InvalidOptions, match=sentence):
        await (asyncio.to_thread(task.sync.enqueue, 1) if blocking else task.enqueue(1))


def test_without_an_open_transaction_there_is_nothing_to_enqueue_in(bench: Bench) -> None:
    async def scenario() -> None:
        async with bench.hf:
            raw = await asyncpg.connect(bench.place.url)
            await refused(bench, raw, r"no open transaction.*async with connection.transaction\(\)")
            await raw.close()
            async with await psycopg.AsyncConnection.connect(bench.place.url, autocommit=True) as awaited:
                await refused(bench, awaited, "autocommit mode and has no open transaction")
                async with awaited.transaction():
                    await bench.work.options(connection=awaited).enqueue(1)
            with psycopg.connect(bench.place.url, autocommit=True) as blocking:
                await refused(bench, blocking, "autocommit mode and has no open transaction", blocking=True)
                with blocking.transaction():
                    await asyncio.to_thread(bench.work.options(connection=blocking).sync.enqueue, 2)
            for driver in ("asyncpg", "psycopg"):
                dsn = bench.place.url.replace("sslmode", "ssl") if driver == "asyncpg" else bench.place.url
                engine = create_async_engine(
                    dsn.replace("postgresql", f"postgresql+{driver}", 1), isolation_level="AUTOCOMMIT"
                )
                async with engine.connect() as connection:
                    await refused(bench, connection, "no open transaction")
                await engine.dispose()
            assert bench.count("job") == 2

    run(scenario)


def test_a_closed_connection_is_refused(bench: Bench) -> None:
    async def scenario() -> None:
        async with bench.hf:
            raw = await asyncpg.connect(bench.place.url)
            await raw.close()
            await refused(bench, raw, "is closed")
            blocking = psycopg.connect(bench.place.url)
            blocking.close()
            await refused(bench, blocking, "is closed", blocking=True)
            engine = sqlalchemy.create_engine(bench.place.url.replace("postgresql", "postgresql+psycopg", 1))
            with engine.connect() as connection:
                pass
            await refused(bench, connection, "SQLAlchemy cannot use it", blocking=True)
            engine.dispose()

    run(scenario)


def test_what_blocks_is_for_sync_and_what_waits_is_not(bench: Bench) -> None:
    async def scenario() -> None:
        async with bench.hf:
            with psycopg.connect(bench.place.url) as blocking:
                await refused(bench, blocking, r"psycopg.Connection blocks.*task.sync.enqueue")
            raw = await asyncpg.connect(bench.place.url)
            async with raw.transaction():
                await refused(bench, raw, "needs an event loop", blocking=True)
            await raw.close()

    run(scenario)


def test_what_is_no_connection_is_refused_with_what_would_be(bench: Bench) -> None:
    async def scenario() -> None:
        async with bench.hf:
            with closing(sqlite3.connect(":memory:")) as other:
                await refused(bench, other, "cannot use sqlite3.Connection; it needs to be a connection of asyncpg")
            engine = sqlalchemy.create_engine("sqlite://", connect_args={"check_same_thread": False})
            with engine.connect() as connection:
                await refused(bench, connection, r"its driver is sqlite3; .*postgresql\+psycopg", blocking=True)
            engine.dispose()

    run(scenario)


def test_another_database_is_refused_with_or_without_a_store_in_it(bench: Bench, postgres_database: str) -> None:
    async def scenario() -> None:
        async with bench.hf:
            for _ in range(2):
                raw = await asyncpg.connect(postgres_database)
                async with raw.transaction():
                    await refused(bench, raw, "leads to")
                    assert await raw.fetchval("SELECT 1") == 1
                await raw.close()
                await Holdfast(postgres_database, schema=bench.place.schema).migrate()

    run(scenario)


def test_a_transaction_that_failed_or_may_not_write_is_refused(bench: Bench) -> None:
    async def scenario() -> None:
        async with bench.hf:
            raw = await asyncpg.connect(bench.place.url)
            await raw.execute("BEGIN")
            with pytest.raises(asyncpg.PostgresError):
                await raw.execute("SELECT 1 / 0")
            await refused(bench, raw, "has failed before; roll it back first")
            await raw.execute("ROLLBACK")
            async with raw.transaction(readonly=True):
                await refused(bench, raw, "read-only")
            await raw.close()
            with psycopg.connect(bench.place.url) as blocking:
                with pytest.raises(psycopg.Error):
                    blocking.execute("SELECT 1 / 0")
                await refused(bench, blocking, "has failed before; roll it back first", blocking=True)

    run(scenario)


def test_a_connection_that_breaks_is_not_a_job(bench: Bench) -> None:
    async def scenario() -> None:
        async with bench.hf:
            raw = await asyncpg.connect(bench.place.url)
            await raw.execute("BEGIN")
            with psycopg.connect(bench.place.url, autocommit=True) as admin:
                admin.execute("SELECT pg_terminate_backend(%s, 5000)", [raw.get_server_pid()])
            with pytest.raises((InvalidOptions, StoreUnavailable)):
                await bench.work.options(connection=raw).enqueue(1)
            raw.terminate()
            assert bench.count("job") == 0

    run(scenario)


def test_a_request_with_a_connection_of_its_own_is_refused_by_its_index(bench: Bench) -> None:
    async def scenario() -> None:
        async with bench.hf:
            raw = await asyncpg.connect(bench.place.url)
            async with raw.transaction():
                requests = [bench.work.request(0), bench.work.options(connection=raw).request(1)]
                with pytest.raises(InvalidOptions, match=r"item 1: .*enqueue_many\(…, connection=…\)"):
                    await bench.hf.enqueue_many(requests)
                assert len(await bench.hf.enqueue_many(requests, connection=raw)) == 2
            await raw.close()
            assert bench.count("job") == 2

    run(scenario)


def test_a_serialization_failure_comes_as_the_driver_says_it(bench: Bench) -> None:
    async def scenario() -> None:
        async with bench.hf:
            raw = await asyncpg.connect(bench.place.url)
            await raw.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            await raw.fetchval("SELECT 1")
            await bench.work.options(key="k").enqueue(1)  # which that snapshot does not see
            with pytest.raises(asyncpg.SerializationError):
                await bench.work.options(key="k", connection=raw).enqueue(1)
            await raw.close()
            assert bench.count("job") == 1

    run(scenario)


def test_sync_has_a_store_of_its_own_where_the_app_is_not_open(bench: Bench) -> None:
    with bench.hf.sync, psycopg.connect(bench.place.url) as blocking:
        job = bench.work.options(connection=blocking).sync.enqueue(1)
        assert bench.count("job") == 0
        blocking.commit()
        assert job.info().state == "ready"
