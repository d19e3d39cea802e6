"""Connections, each for one purpose: opened when first needed, opened anew after it broke, one user at a time.

Not a pool that resets what it lends: a reset costs more than most of what is asked here.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

import asyncpg

if TYPE_CHECKING:
    from asyncpg import Connection

#: How long a server may take to let us in, and to answer before we believe that the connection is dead: at all, and
#: where somebody waits for it.
CONNECT_S = 10.0
ANSWER_S = 60.0
PROMPT_S = 15.0
#: No transaction of ours takes so long, but for reports and migrations.
LONGEST_S = 30.0

_SETTINGS = {
    "default_transaction_isolation": "read committed",
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
}
#: Not where a user's code is at work. What holds locks and says nothing (a machine that lost its power, a process that
#: was stopped) is ended by the server, sooner than its lease: whoever reaps it may have to wait for these locks. And a
#: plan made while a table was empty is kept until that is analysed: by then it may have a million rows, which must
#: not be read one by one. Where a small table is read all the same, that makes its plan look so dear to the server that
#: it would compile it, for longer than anything of ours takes.
_OURS_ALONE = {"idle_in_transaction_session_timeout": "5s", "enable_seqscan": "off", "jit": "off"}

# Accepted means on disk (P1), whatever is usual in this database; what is stricter stays.
_DURABLE = (
    "SELECT set_config('synchronous_commit', 'on', false) "
    "WHERE current_setting('synchronous_commit') IN ('off', 'local')"
)

# Between preparing a statement and executing it the driver leaves the server in the middle of a round, which does not
# count as idle: a process that is stopped just then would keep its locks for as long as it is stopped.
_BOUNDED = (
    "SELECT set_config('transaction_timeout', '{longest_ms}', false) "
    "WHERE current_setting('server_version_num')::int >= 170000"
)

# All array types of our statements; those that they are made of are known anyway.
_TYPES = (
    "SELECT $1::bool[], $2::bytea[], $3::int2[], $4::int4[], $5::int8[], $6::float8[], $7::timestamptz[], $8::uuid[], "
    "$9::text[]"
)


class Kind(Enum):
    """What a connection is for, in terms of how long an answer may take."""

    ORDINARY = auto()
    PROMPT = auto()
    """Jobs wait for it, or those who enqueue them."""
    REPORTS = auto()
    """It holds no locks, so that it may take longer than a transaction that does."""
    USERS = auto()
    """Statements of the user's own, which may take their time."""

    @property
    def patience_s(self) -> float | None:
        return {Kind.ORDINARY: ANSWER_S, Kind.PROMPT: PROMPT_S, Kind.REPORTS: ANSWER_S}.get(self)

    @property
    def settings(self) -> str:
        """What a session of this kind begins with."""
        if self in (Kind.REPORTS, Kind.USERS):
            return _DURABLE
        return f"{_DURABLE}; {_BOUNDED.format(longest_ms=round(1000 * LONGEST_S))}"


class Doorway:
    """How connections to one server are made.

    `pooled`: there is a PgBouncer in transaction mode between us and the server, so nothing may outlive a
    transaction: no prepared statements, no settings of the session.
    """

    def __init__(self, url: str, *, pooled: bool) -> None:
        self._url = url
        self.pooled = pooled

    async def open(self, purpose: str, *, kind: Kind = Kind.ORDINARY) -> Connection[Any]:
        """A new connection; what goes wrong is asyncpg's error."""
        settings = {"application_name": f"holdfast {purpose}"}
        if not self.pooled:
            settings |= _SETTINGS if kind is Kind.USERS else _SETTINGS | _OURS_ALONE
        connecting = asyncio.ensure_future(
            asyncpg.connect(
                self._url,
                timeout=CONNECT_S,
                command_timeout=kind.patience_s,
                statement_cache_size=0 if self.pooled else 200,
                server_settings=settings,
            )
        )
        try:
            # Not cancelled amid it: asyncpg would leave an error behind that is logged as one that nobody has heard of.
            connection = await asyncio.shield(connecting)
        except asyncio.CancelledError:
            connecting.add_done_callback(_hang_up)
            raise
        try:
            await (_learn_types(connection) if self.pooled else connection.execute(kind.settings))
        except BaseException:
            connection.terminate()
            raise
        return connection


def _hang_up(connecting: asyncio.Future[Connection[Any]]) -> None:
    """Nobody waits for this connection any more."""
    if not connecting.cancelled() and connecting.exception() is None:
        connecting.result().terminate()


async def _learn_types(connection: Connection[Any]) -> None:
    """Before it meets a type for the first time asyncpg asks about it, and sets `jit` for the session meanwhile.

    In a transaction that is rolled back, so that the setting does not stay in a connection that others get.
    """
    learning = connection.transaction()
    await learning.start()
    await connection.fetch(_TYPES, *[None] * _TYPES.count("$"))
    await learning.rollback()


class NotConnected(Exception):
    """No connection came about, for the reason that is its cause: whatever was to be asked was not asked."""


class Line:
    """One connection, used by one caller at a time; belongs to the event loop that uses it first."""

    def __init__(self, doorway: Doorway, purpose: str, *, kind: Kind = Kind.ORDINARY) -> None:
        self._doorway = doorway
        self._purpose = purpose
        self._kind = kind
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
            return await self._doorway.open(self._purpose, kind=self._kind)
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

    def __init__(self, doorway: Doorway, purpose: str, *, count: int, kind: Kind = Kind.ORDINARY) -> None:
        self._free = [Line(doorway, purpose, kind=kind) for _ in range(count)]
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
