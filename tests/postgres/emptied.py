"""A schema with all tables, made once per test process and emptied for each test: cheaper than making it anew."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql
from tests.postgres.fixtures import Admin, PostgresSchema

from holdfast.stores.postgres import PostgresStore

EMPTY = """
DO $$ DECLARE name text; BEGIN
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = '{schema}' AND tablename != 'migration' LOOP
        EXECUTE format('DELETE FROM {schema}.%I', name);
    END LOOP;
END $$
"""


@pytest.fixture(scope="session")
def _tables(postgres_admin: Admin, _database_of_this_process: str) -> Iterator[PostgresSchema]:
    place = PostgresSchema(postgres_admin.url_of(_database_of_this_process), f"hf_{secrets.token_hex(6)}")
    asyncio.run(_migrate(place))
    yield place
    with psycopg.connect(place.url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(place.schema)))


@pytest.fixture
def postgres_tables(_tables: PostgresSchema) -> PostgresSchema:
    """The tables of a store with nothing in them. Whoever changes the tables themselves takes `postgres_schema`."""
    with psycopg.connect(_tables.url, autocommit=True) as connection:
        # A failed test may have left transactions open, which the next would wait for in vain.
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name LIKE 'holdfast%'"
        )
        empty(connection, _tables.schema)
    return _tables


def empty(connection: psycopg.Connection[Any], schema: str) -> None:
    """Nothing but the tables themselves is left."""
    connection.execute(EMPTY.format(schema=schema))  # type: ignore[call-overload]


async def _migrate(place: PostgresSchema) -> None:
    store = PostgresStore(place.url, schema=place.schema)
    await store.migrate()
    await store.close()
