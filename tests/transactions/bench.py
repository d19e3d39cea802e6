"""An app on PostgreSQL whose users have transactions of their own, and a way to look past it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from tests.postgres.fixtures import PostgresSchema
from tests.transactions.desks import Desk, desk

from holdfast import Holdfast

PATIENCE_S = 20


class Bench:
    """The app has one task, `work`. `server_settings` hold for the connections of the app alone."""

    def __init__(self, place: PostgresSchema, *, server_settings: str = "", **settings: Any) -> None:
        self.place = place
        self.hf = Holdfast(place.url + server_settings, schema=place.schema, **settings)

        @self.hf.task(name="work")
        async def work(number: int) -> int:
            return number

        self.work = work

    def ask(self, query: str) -> Any:
        """One value, over a connection that has nothing to do with the app; `{schema}` is filled in."""
        with psycopg.connect(self.place.url, autocommit=True) as connection:
            row = connection.execute(query.format(schema=self.place.schema)).fetchone()  # type: ignore[call-overload]
        return row[0]

    def do(self, *statements: str) -> None:
        """The same for what gives no value."""
        with psycopg.connect(self.place.url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.format(schema=self.place.schema))  # type: ignore[call-overload]

    def count(self, table: str) -> int:
        """Rows that are committed."""
        return int(self.ask(f"SELECT count(*) FROM {{schema}}.{table}"))

    @asynccontextmanager
    async def at(self, kind: str, **options: Any) -> AsyncIterator[Desk]:
        """The app is open, and its user sits at a connection of this kind."""
        async with self.hf, desk(self.hf, kind, self.place.url, **options) as at:
            yield at


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    """To its end, or to that of our patience."""

    async def bounded() -> None:
        async with asyncio.timeout(2 * PATIENCE_S):
            await scenario()

    asyncio.run(bounded())
