"""URLs of PostgreSQL that are hard to take apart: clear words, and never a piece of the password."""

from __future__ import annotations

import asyncio

import pytest
from tests.postgres.fixtures import PostgresSchema

from holdfast import ConfigError
from holdfast.stores.postgres import PostgresStore


@pytest.mark.parametrize("password", ["12/34", "12#34", "12?34", "ab/cd", "ab#cd", "ab[cd", "ab?cd"])
def test_a_password_that_was_not_encoded_is_not_told(password: str) -> None:
    with pytest.raises(ConfigError, match=r"%2F|65535") as refusal:
        PostgresStore(f"postgresql://user:{password}@127.0.0.1/db")
    words = str(refusal.value)
    assert not {"12", "34", "ab", "cd"} & set(words.replace("%", " ").split()), words
    assert "user:" not in words


def test_a_store_is_found_behind_a_host_that_does_not_answer(postgres_tables: PostgresSchema) -> None:
    async def scenario() -> None:
        url = postgres_tables.url.replace("@", "@127.0.0.1:1,")
        store = PostgresStore(url, schema=postgres_tables.schema)
        await store.open()
        await store.close()

    asyncio.run(scenario())
