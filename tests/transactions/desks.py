"""A user at work on a connection of each kind that `connection=` takes, told apart by name only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import psycopg
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from holdfast import Holdfast, JobHandle

ASYNC_KINDS = (
    "asyncpg",
    "psycopg async",
    "asyncpg session",
    "asyncpg connection",
    "psycopg async session",
    "psycopg async connection",
)
BLOCKING_KINDS = ("psycopg", "psycopg session", "psycopg connection")
KINDS = ASYNC_KINDS + BLOCKING_KINDS


class Desk:
    """One connection with a transaction open on it."""

    def __init__(self, hf: Holdfast, connection: Any, *, blocking: bool) -> None:
        self.hf = hf
        self.connection = connection
        self._blocking = blocking
        self._alchemy = type(connection).__module__.startswith("sqlalchemy")

    async def enqueue(self, task: Any, *args: Any, **options: Any) -> Any:
        """In the open transaction; a handle."""
        chosen = task.options(connection=self.connection, **options)
        if self._blocking:
            return await asyncio.to_thread(chosen.sync.enqueue, *args)
        return await chosen.enqueue(*args)

    async def enqueue_many(self, requests: list[Any]) -> list[JobHandle[Any]]:
        if self._blocking:
            many: Callable[..., Any] = self.hf.sync.enqueue_many
            return await asyncio.to_thread(lambda: many(requests, connection=self.connection))
        return await self.hf.enqueue_many(requests, connection=self.connection)

    async def execute(self, statement: str) -> None:
        await self._do(self.connection.execute, sqlalchemy.text(statement) if self._alchemy else statement)

    async def value(self, statement: str) -> Any:
        if isinstance(self.connection, asyncpg.Connection):
            return await self.connection.fetchval(statement)
        result = await self._do(self.connection.execute, sqlalchemy.text(statement) if self._alchemy else statement)
        [row] = [await result.fetchone()] if isinstance(result, psycopg.AsyncCursor) else [result.fetchone()]
        return row[0]

    async def commit(self) -> None:
        await (self.execute("COMMIT") if isinstance(self.connection, asyncpg.Connection) else self._end("commit"))

    async def rollback(self) -> None:
        await (self.execute("ROLLBACK") if isinstance(self.connection, asyncpg.Connection) else self._end("rollback"))

    async def _end(self, how: str) -> None:
        await self._do(getattr(self.connection, how))

    async def _do(self, call: Callable[..., Any], *args: Any) -> Any:
        return await asyncio.to_thread(call, *args) if self._blocking else await call(*args)


@asynccontextmanager
async def desk(hf: Holdfast, kind: str, url: str, *, isolation: str | None = None) -> AsyncIterator[Desk]:
    """Of a kind; what is not committed by its end is rolled back."""
    dsn = url.replace("postgresql://", "")
    if kind == "asyncpg":
        raw = await asyncpg.connect(url)
        try:
            await raw.execute(f"BEGIN {f'ISOLATION LEVEL {isolation}' if isolation else ''}")
            yield Desk(hf, raw, blocking=False)
        finally:
            await raw.close()
    elif kind == "psycopg async":
        async with await psycopg.AsyncConnection.connect(url) as awaited:
            if isolation:
                await awaited.set_isolation_level(psycopg.IsolationLevel[isolation.replace(" ", "_")])
            yield Desk(hf, awaited, blocking=False)
            await awaited.rollback()
    elif kind == "psycopg":
        with psycopg.connect(url) as blocking:
            if isolation:
                blocking.set_isolation_level(psycopg.IsolationLevel[isolation.replace(" ", "_")])
            yield Desk(hf, blocking, blocking=True)
            blocking.rollback()
    else:
        driver = kind.partition(" ")[0]
        dsn = dsn.replace("sslmode=disable", "ssl=disable") if driver == "asyncpg" else dsn
        options: dict[str, Any] = {"poolclass": NullPool}
        if isolation:
            options["isolation_level"] = isolation
        if kind in ASYNC_KINDS:
            awaitable = create_async_engine(f"postgresql+{driver}://{dsn}", **options)
            opened = AsyncSession(awaitable) if kind.endswith("session") else awaitable.connect()
            async with opened as connection:
                yield Desk(hf, connection, blocking=False)
            await awaitable.dispose()
        else:
            engine = sqlalchemy.create_engine(f"postgresql+{driver}://{dsn}", **options)
            with Session(engine) if kind.endswith("session") else engine.connect() as used:
                yield Desk(hf, used, blocking=True)
            engine.dispose()
