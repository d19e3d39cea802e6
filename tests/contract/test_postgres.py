"""The conformance suite on PostgreSQL."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any, cast

import pytest
from tests.postgres.fixtures import PostgresSchema

from holdfast.stores.base import Store
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


class Alternating:
    """Two stores on the same tables, as two processes have them; each call goes to the next one."""

    def __init__(self, *stores: PostgresStore) -> None:
        self._next = itertools.cycle(stores)

    def __getattr__(self, name: str) -> Any:
        return getattr(next(self._next), name)


#: Where one process can get in another's way; the others hold as well, which would be the same twice.
SHARED = ("keys", "watermarks", "claim", "races", "cancel", "joins", "limits", "reap", "hints")


@pytest.mark.parametrize(
    "check", [pytest.param(check, id=name) for name, check in CHECKS.items() if name.startswith(SHARED)]
)
def test_two_processes_keep_the_contract_together(check: Check, postgres_tables: PostgresSchema) -> None:
    asyncio.run(_run_on_two(check, postgres_tables))


async def _run_on_two(check: Check, place: PostgresSchema) -> None:
    stores = [PostgresStore(place.url, schema=place.schema) for _ in range(2)]
    for store in stores:
        await store.open()
    try:
        await check(cast(Store, Alternating(*stores)))
    finally:
        for store in stores:
            await store.close()
