"""Scenarios on both stores, with their clocks moved by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from tests.postgres.clock import stopped_clock

from holdfast.runtime.clock import ManualClock
from holdfast.stores.base import Store
from holdfast.stores.postgres import PostgresStore
from holdfast.stores.sqlite import SqliteStore

Scenario = Callable[[Store, ManualClock], Awaitable[None]]
Played = Callable[[Scenario], None]


@contextmanager
def on_sqlite(_: pytest.FixtureRequest) -> Iterator[tuple[Store, ManualClock]]:
    clock = ManualClock()
    yield SqliteStore(":memory:", clock=clock), clock


@contextmanager
def on_postgres(request: pytest.FixtureRequest) -> Iterator[tuple[Store, ManualClock]]:
    place = request.getfixturevalue("postgres_tables")
    with stopped_clock(place) as clock:
        yield PostgresStore(place.url, schema=place.schema), clock


@pytest.fixture(params=[on_sqlite, on_postgres])
def play(request: pytest.FixtureRequest) -> Iterator[Played]:
    opened: AbstractContextManager[tuple[Store, ManualClock]] = request.param(request)
    with opened as (store, clock):

        async def within_the_store(scenario: Scenario) -> None:
            await store.open()
            try:
                await scenario(store, clock)
            finally:
                await store.close()

        yield lambda scenario: asyncio.run(within_the_store(scenario))
