"""Migrations: several processes at once, somebody else's lock, a schema that is newer than the program."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import asyncpg
import pytest
from tests.postgres.fixtures import PostgresSchema

from holdfast.core.errors import StoreBroken, StoreUnavailable
from holdfast.stores.postgres import PostgresStore, migrating
from holdfast.stores.postgres.statements import migrations

_MIGRATE = """
import asyncio, sys
from holdfast.stores.postgres import PostgresStore
async def main():
    store = PostgresStore(sys.argv[1], schema=sys.argv[2])
    sys.stdin.readline()
    print(len(await store.migrate()))
    await store.close()
asyncio.run(main())
"""


def test_four_processes_migrate_at_once_and_each_step_is_applied_once(postgres_schema: PostgresSchema) -> None:
    command = [sys.executable, "-c", _MIGRATE, postgres_schema.url, postgres_schema.schema]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [process.communicate(timeout=60)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    assert sum(map(int, answers)) == len(migrations(postgres_schema.schema))
    asyncio.run(_opens(postgres_schema))


async def _opens(place: PostgresSchema) -> None:
    store = PostgresStore(place.url, schema=place.schema)
    await store.open()
    await store.close()


def test_a_migration_that_cannot_have_its_turn_says_why_and_changes_nothing(
    postgres_schema: PostgresSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrating, "_TURN_TIMEOUT", "10ms")
    asyncio.run(_without_turn(postgres_schema))


async def _without_turn(place: PostgresSchema) -> None:
    holder = await asyncpg.connect(place.url)
    store = PostgresStore(place.url, schema=place.schema)
    try:
        await holder.fetchval("SELECT pg_advisory_lock(hashtextextended($1, 0))", f"holdfast {place.schema}")
        with pytest.raises(StoreUnavailable, match=r"a lock that somebody holds.*changed nothing: try again"):
            await store.migrate()
        assert (await store.status()).schema == 0
    finally:
        await holder.close()
        await store.close()


def test_the_plan_is_what_a_migration_runs(postgres_schema: PostgresSchema) -> None:
    asyncio.run(_by_hand(postgres_schema))


async def _by_hand(place: PostgresSchema) -> None:
    store = PostgresStore(place.url, schema=place.schema)
    connection = await asyncpg.connect(place.url)
    try:
        with pytest.raises(StoreBroken, match="has no tables yet: run `holdfast migrate`"):
            await store.open()
        await connection.execute(await store.migration_plan())
        assert await store.migration_plan() == ""
        assert await store.migrate() == []
        await store.open()
    finally:
        await connection.close()
        await store.close()


def test_a_newer_schema_is_worked_on_where_it_says_so(postgres_schema: PostgresSchema) -> None:
    asyncio.run(_newer(postgres_schema))


async def _newer(place: PostgresSchema) -> None:
    known = migrations(place.schema)[-1][0]
    store = PostgresStore(place.url, schema=place.schema)
    await store.migrate()
    await store.close()
    connection = await asyncpg.connect(place.url)
    try:
        await connection.execute(
            f"INSERT INTO {place.schema}.migration (version, oldest, name) VALUES ($1, $2, 'x')", known + 1, known
        )
        await _opens(place)
        await connection.execute(
            f"INSERT INTO {place.schema}.migration (version, oldest, name) VALUES ($1, $1, 'y')", known + 2
        )
        with pytest.raises(StoreBroken, match="upgrade the holdfast package"):
            await _opens(place)
    finally:
        await connection.close()


def test_a_step_says_which_programs_it_is_for() -> None:
    silent, outspoken = migrating.steps("holdfast")[3:5]
    assert "-- oldest:" not in silent.sql
    assert f"VALUES (4, 4, '{silent.name}')" in silent.sql, "who says nothing is for programs that know it"
    assert "-- oldest: 4\n" in outspoken.sql
    assert f"VALUES (5, 4, '{outspoken.name}')" in outspoken.sql
