"""Users' connections, of whichever driver, made to look alike: what may be given to `connection=`, and how it is used.

No driver is imported here: whoever has a connection of one has imported it.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterator
from typing import Any, Protocol

from holdfast.core.errors import HoldfastError, InvalidOptions
from holdfast.stores.postgres.transaction import Fetches

# By module and name. SQLAlchemy's are only a way to one of the drivers' connections.
_ASYNCPG = (("asyncpg", "Connection"),)
_PSYCOPG_ASYNC = (("psycopg", "AsyncConnection"),)
_PSYCOPG = (("psycopg", "Connection"),)
_ALCHEMY_ASYNC_SESSION = (
    ("sqlalchemy.ext.asyncio", "AsyncSession"),
    ("sqlalchemy.ext.asyncio", "async_scoped_session"),
)
_ALCHEMY_ASYNC = (("sqlalchemy.ext.asyncio", "AsyncConnection"),)
_ALCHEMY_SESSION = (("sqlalchemy.orm", "Session"), ("sqlalchemy.orm", "scoped_session"))
_ALCHEMY = (("sqlalchemy", "Connection"),)
_AWAITED = _ASYNCPG + _PSYCOPG_ASYNC + _ALCHEMY_ASYNC_SESSION + _ALCHEMY_ASYNC
_BLOCKING = _PSYCOPG + _ALCHEMY_SESSION + _ALCHEMY


class Guest(Fetches, Protocol):
    """A user's connection inside a transaction. One that blocks never really waits in its coroutines."""

    async def execute(self, statement: str, /) -> object: ...


def check_kind(connection: object, *, blocking: bool) -> None:
    """InvalidOptions where this cannot be used from here; nothing is asked of the connection."""
    if _is(connection, _BLOCKING if blocking else _AWAITED):
        return
    kind = f"{type(connection).__module__}.{type(connection).__qualname__}"
    if _is(connection, _AWAITED):
        raise InvalidOptions(f"connection=: {kind} needs an event loop: use `await task.enqueue(…)` instead of `.sync`")
    if _is(connection, _BLOCKING):
        raise InvalidOptions(
            f"connection=: {kind} blocks, which an event loop must not: give it to `task.sync.enqueue(…)` or "
            "`hf.sync.enqueue_many(…)` in a thread, or use an async connection"
        )
    raise InvalidOptions(
        f"connection=: cannot use {kind}; it needs to be a connection of asyncpg or psycopg 3, or a Connection or "
        "Session of SQLAlchemy 2 on one of them (AsyncConnection or AsyncSession, except with `.sync`)"
    )


async def board(connection: Any) -> Guest:
    """The connection of a driver that is behind this one, in a transaction that has really begun."""
    driver = await _driver_connection(connection)
    guest: _Asyncpg | _PsycopgAsync | _Psycopg
    if _is(driver, _ASYNCPG):
        guest = _Asyncpg(driver)
    elif _is(driver, _PSYCOPG_ASYNC):
        guest = _PsycopgAsync(driver)
    elif _is(driver, _PSYCOPG):
        guest = _Psycopg(driver)
    else:
        raise InvalidOptions(
            f"connection=: its driver is {type(driver).__module__}; it needs to be asyncpg or psycopg 3, as in "
            "postgresql+asyncpg:// or postgresql+psycopg://"
        )
    if (wrong := guest.what_is_wrong()) is not None:
        raise InvalidOptions(f"connection=: {wrong}")
    return guest


@contextlib.asynccontextmanager
async def savepoint(guest: Guest) -> AsyncIterator[None]:
    """What goes wrong in here leaves the user's transaction as it was before, and as good."""
    await guest.execute("SAVEPOINT holdfast")
    try:
        yield
    except BaseException:
        with contextlib.suppress(Exception):  # the connection is gone: the first error says so
            await guest.execute("ROLLBACK TO SAVEPOINT holdfast")
            await guest.execute("RELEASE SAVEPOINT holdfast")
        raise
    await guest.execute("RELEASE SAVEPOINT holdfast")


async def _driver_connection(connection: Any) -> Any:
    """SQLAlchemy begins its transaction with its first statement, and knows of no other: so it gets one."""
    try:
        if _is(connection, _ALCHEMY_ASYNC_SESSION):
            connection = await connection.connection()
        if _is(connection, _ALCHEMY_ASYNC):
            await connection.exec_driver_sql("SELECT 1")
            return (await connection.get_raw_connection()).driver_connection
        if _is(connection, _ALCHEMY_SESSION):
            connection = connection.connection()
        if _is(connection, _ALCHEMY):
            connection.exec_driver_sql("SELECT 1")
            return connection.connection.driver_connection
    except HoldfastError:
        raise
    except Exception as error:
        raise InvalidOptions(f"connection=: SQLAlchemy cannot use it: {error}") from error
    return connection


def _is(connection: object, classes: tuple[tuple[str, str], ...]) -> bool:
    return any(isinstance(connection, getattr(sys.modules.get(module), name, ())) for module, name in classes)


class _Asyncpg:
    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.fetch = connection.fetch
        self.fetchval = connection.fetchval
        self.execute = connection.execute

    def what_is_wrong(self) -> str | None:
        if self._connection.is_closed():
            return "is closed"
        if not self._connection.is_in_transaction():
            return (
                "has no open transaction, so that there is nothing to enqueue in: open one, as in `async with "
                "connection.transaction():`, with an isolation level other than AUTOCOMMIT"
            )
        return None


def _psycopg_state(connection: Any) -> str | None:
    if connection.closed:
        return "is closed"
    status = connection.info.transaction_status.name
    if status == "INERROR":
        return "its transaction has failed before; roll it back first"
    if status == "IDLE" and connection.autocommit:
        return (
            "is in autocommit mode and has no open transaction, so that there is nothing to enqueue in: open one, as "
            "in `with connection.transaction():`, or take a connection without autocommit"
        )
    return None  # it begins by itself, with our first statement


class _PsycopgAsync:
    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._psycopg = sys.modules["psycopg"]

    def what_is_wrong(self) -> str | None:
        return _psycopg_state(self._connection)

    async def fetch(self, statement: str, /, *args: object) -> list[Any]:
        rows = self._psycopg.rows.tuple_row
        async with self._psycopg.AsyncRawCursor(self._connection, row_factory=rows) as cursor:
            await cursor.execute(statement, args or None)
            return list(await cursor.fetchall()) if cursor.description else []

    async def fetchval(self, statement: str, /, *args: object) -> Any:
        rows = await self.fetch(statement, *args)
        return rows[0][0] if rows else None

    async def execute(self, statement: str, /) -> object:
        return await self.fetch(statement)


class _Psycopg:
    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._psycopg = sys.modules["psycopg"]

    def what_is_wrong(self) -> str | None:
        return _psycopg_state(self._connection)

    async def fetch(self, statement: str, /, *args: object) -> list[Any]:
        with self._psycopg.RawCursor(self._connection, row_factory=self._psycopg.rows.tuple_row) as cursor:
            cursor.execute(statement, args or None)
            return list(cursor.fetchall()) if cursor.description else []

    async def fetchval(self, statement: str, /, *args: object) -> Any:
        rows = await self.fetch(statement, *args)
        return rows[0][0] if rows else None

    async def execute(self, statement: str, /) -> object:
        return await self.fetch(statement)
