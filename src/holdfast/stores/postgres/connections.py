"""Connections, each for one purpose: opened when first needed, opened anew after it broke, one user at a time.

Not a pool that resets what it lends: a reset costs more than most of what is asked here.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import asyncpg

if TYPE_CHECKING:
    from asyncpg import Connection

#: How long a server may take to let us in, and to answer before we believe that the connection is dead: at all, and
#: where jobs wait for it.
CONNECT_S = 10.0
ANSWER_S = 60.0
PROMPT_S = 15.0

#: What holds locks and says nothing is ended by the server: a machine that lost its power, a process that was stopped.
_SETTINGS = {
    "default_transaction_isolation": "read committed",
    "idle_in_transaction_session_timeout": "30s",
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
}

# Accepted means on disk (P1), whatever is usual in this database; what is stricter stays.
_DURABLE = (
    "SELECT set_config('synchronous_commit', 'on', false) "
    "WHERE current_setting('synchronous_commit') IN ('off', 'local')"
)


class Doorway:
    """How connections to one server are made.

    `pooled`: there is a PgBouncer in transaction mode between us and the server, so nothing may outlive a
    transaction: no prepared statements, no settings of the session.
    """

    def __init__(self, url: str, *, pooled: bool) -> None:
        self._url = url
        self._pooled = pooled

    async def open(self, purpose: str, *, prompt: bool = False) -> Connection[Any]:
        """A new connection; what goes wrong is asyncpg's error. `prompt`: jobs wait for its answers."""
        connection = await asyncpg.connect(
            self._url,
            timeout=CONNECT_S,
            command_timeout=PROMPT_S if prompt else ANSWER_S,
            statement_cache_size=0 if self._pooled else 200,
            server_settings={"application_name": f"holdfast {purpose}"} | ({} if self._pooled else _SETTINGS),
        )
        if not self._pooled:
            try:
                await connection.execute(_DURABLE)
            except BaseException:
                connection.terminate()
                raise
        return connection


class NotConnected(Exception):
    """No connection came about, for the reason that is its cause: whatever was to be asked was not asked."""


class Line:
    """One connection, used by one caller at a time; belongs to the event loop that uses it first."""

    def __init__(self, doorway: Doorway, purpose: str, *, prompt: bool = False) -> None:
        self._doorway = doorway
        self._purpose = purpose
        self._prompt = prompt
        self._lock = asyncio.Lock()
        self._connection: Connection[Any] | None = None

    @contextlib.asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection[Any]]:
        """The connection, for as long as the block lasts; dropped when the block ends in doubt about it."""
        async with self._lock:
            connection = self._connection
            if connection is None or connection.is_closed():
                connection = self._connection = await self._open()
            try:
                yield connection
            except (asyncpg.InterfaceError, asyncpg.InternalClientError, OSError):
                self._drop()
                raise
            except Exception:
                if connection.is_closed() or connection.is_in_transaction():
                    self._drop()
                raise
            except BaseException:  # a caller that is cancelled: what the server does with the statement is open
                self._drop()
                raise

    async def _open(self) -> Connection[Any]:
        try:
            return await self._doorway.open(self._purpose, prompt=self._prompt)
        except Exception as error:
            raise NotConnected from error

    async def close(self) -> None:
        """Say goodbye; a server that does not listen is left."""
        connection, self._connection = self._connection, None
        if connection is not None and not connection.is_closed():
            try:
                await connection.close(timeout=1.0)
            except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError):
                connection.terminate()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()


class Lines:
    """A few lines for the same purpose; whoever comes takes the one that was used last."""

    def __init__(self, doorway: Doorway, purpose: str, *, count: int) -> None:
        self._free = [Line(doorway, purpose) for _ in range(count)]
        self._all = tuple(self._free)
        self._places = asyncio.Semaphore(count)

    @contextlib.asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection[Any]]:
        async with self._places:
            line = self._free.pop()
            try:
                async with line.connection() as connection:
                    yield connection
            finally:
                self._free.append(line)

    async def close(self) -> None:
        for line in self._all:
            await line.close()
