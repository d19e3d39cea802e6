"""What tests get from the fixtures is empty, their own, and gone afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql
from tests.postgres.fixtures import Admin, PostgresSchema

seen: list[PostgresSchema] = []


@pytest.mark.parametrize("turn", [1, 2])
def test_a_schema_is_new_for_every_test(postgres_schema: PostgresSchema, turn: int) -> None:
    with psycopg.connect(postgres_schema.url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(postgres_schema.schema)))
        for earlier in seen:
            found = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [earlier.schema]).fetchall()
            assert earlier.schema != postgres_schema.schema
            assert not found, "its schema went with the test"
    seen.append(postgres_schema)


@pytest.fixture
def abandoned() -> Iterator[list[psycopg.Connection[tuple[object, ...]]]]:
    """What is in it is closed when the fixtures that came after this one have ended."""
    left: list[psycopg.Connection[tuple[object, ...]]] = []
    yield left
    for connection in left:
        connection.close()


def test_a_transaction_left_open_does_not_hold_up_the_end_of_a_test(
    abandoned: list[psycopg.Connection[tuple[object, ...]]], postgres_schema: PostgresSchema
) -> None:
    connection = psycopg.connect(postgres_schema.url)
    abandoned.append(connection)
    connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(postgres_schema.schema)))


def test_a_database_is_empty(postgres_database: str, postgres_admin: Admin) -> None:
    with psycopg.connect(postgres_database) as connection:
        tables = connection.execute("SELECT 1 FROM pg_class WHERE relnamespace = 'public'::regnamespace").fetchall()
    assert tables == []
    assert postgres_database.startswith(postgres_admin.url.rpartition("/")[0])
