"""The conformance suite on PostgreSQL."""

from __future__ import annotations

import asyncio

import pytest
from tests.postgres.fixtures import PostgresSchema

from holdfast.stores.postgres import PostgresStore
from holdfast.testing.contracts import CHECKS, Check


@pytest.mark.parametrize("check", [pytest.param(check, id=name) for name, check in CHECKS.items()])
def test_postgres_keeps_the_contract(check: Check, postgres_tables: PostgresSchema) -> None:
    asyncio.run(_run(check, postgres_tables))


async def _run(check: Check, place: PostgresSchema) -> None:
    store = PostgresStore(place.url, schema=place.schema)
    await store.open()
    try:
        await check(store)
    finally:
        await store.close()
