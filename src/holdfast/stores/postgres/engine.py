"""Runs verbs on connections: one transaction each, failures translated, hints told after the commit.

Duties:
1. A verb is a transaction of its own, or a single statement that is one by itself.
2. What was rolled back for certain (deadlock, serialization) is repeated here, alone if it has to be; everything else
   is the caller's.
3. The three moments of every verb, for tests.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.core.errors import HoldfastError, NotOpen
from holdfast.runtime.failpoints import FailpointHit, afailpoint, is_armed
from holdfast.stores.moments import answer_lost, struck
from holdfast.stores.postgres.connections import Doorway, Kind, Line, Lines
from holdfast.stores.postgres.errors import DRIVER_ERRORS, is_rolled_back, is_to_be_alone, translate
from holdfast.stores.postgres.insert import Refused
from holdfast.stores.postgres.statements import statements
from holdfast.stores.postgres.transaction import Tx

if TYPE_CHECKING:
    from asyncpg import Connection, Record

T = TypeVar("T")

_TRIES = 5
_NO_TIME = datetime.fromtimestamp(0, UTC)
_REPORTS, _VERBS, _TRANSACTIONS = 2, 2, 10


class Engine:
    """The connections of one open store, and the way in which verbs use them.

    Claims, settlements and inserts have a connection each, and so have whatever may wait for a lock (`keyed`) and what
    every insert begins with (`gates`); everything else shares a few. Which are opened depends on what the process does:
    a producer needs few of them.
    """

    def __init__(self, url: str, *, schema: str, pooled: bool, place: str, tell: Callable[[Tx], None]) -> None:
        self.sql = statements(schema)
        self.tenanted: set[str] = set()
        """Queues with tenants, as far as this process knows."""
        self.place = place
        self._tell = tell
        self._pid = os.getpid()
        self._open = True
        self.doorway = Doorway(url, pooled=pooled)
        self.inserts = Line(self.doorway, "insert", kind=Kind.PROMPT)
        self.keyed = Line(self.doorway, "insert keyed", kind=Kind.PROMPT)
        self.gates = Line(self.doorway, "gates")
        self.claims = Line(self.doorway, "claim", kind=Kind.PROMPT)
        self.settlements = Line(self.doorway, "settle", kind=Kind.PROMPT)
        self.verbs = Lines(self.doorway, "verbs", count=_VERBS)
        self.reports = Lines(self.doorway, "reports", count=_REPORTS, kind=Kind.REPORTS)
        self.transactions = Lines(self.doorway, "transaction", count=_TRANSACTIONS, kind=Kind.USERS)
        """For the effects of runs that finish inside a transaction."""

    async def close(self) -> None:
        self._open = False
        alone = (self.inserts, self.keyed, self.gates, self.claims, self.settlements)
        for line in (*alone, self.verbs, self.reports, self.transactions):
            await line.close()

    async def transact(
        self,
        verb: str,
        line: Line | Lines,
        operation: Callable[[Tx], Awaitable[T]],
        *,
        timed: bool = True,
    ) -> tuple[T, Tx]:
        """Run a verb of several statements as one transaction; also what is to be done after it (`drained`, `freed`).

        `timed=False`: the verb finds out the time by itself, which saves a question.
        """
        self.check_open()
        await self._begin(verb)
        alone = False
        for more in range(_TRIES - 1, -1, -1):
            try:
                async with line.connection() as connection, connection.transaction(isolation="read_committed"):
                    if alone:  # first of all, while we hold nothing that others may wait for
                        await connection.fetch(self.sql["rules.by_myself"])
                    tx = await self._tx(connection, timed=timed)
                    tx.is_last_try = not more
                    result = await operation(tx)
                    await tx.close_verb()
                    await afailpoint(f"{verb}.inside")
                break
            except FailpointHit as hit:
                raise struck(hit) from hit
            except (HoldfastError, Refused):
                raise
            except DRIVER_ERRORS as error:
                if more and is_rolled_back(error):
                    alone = alone or is_to_be_alone(error)
                    continue
                raise translate(error, self.place) from error
        await self._committed(verb)
        self._tell(tx)
        return result, tx

    async def call(self, verb: str, line: Line | Lines, statement: str, *args: object) -> list[Record]:
        """Run a verb that is one statement."""
        self.check_open()
        await self._begin(verb)
        for more in range(_TRIES - 1, -1, -1):
            try:
                async with line.connection() as connection:
                    if not is_armed(f"{verb}.inside"):
                        rows = await connection.fetch(self.sql[statement], *args)
                    else:  # the moment between execution and commit exists only where we commit ourselves
                        async with connection.transaction(isolation="read_committed"):
                            rows = await connection.fetch(self.sql[statement], *args)
                            await afailpoint(f"{verb}.inside")
                break
            except FailpointHit as hit:
                raise struck(hit) from hit
            except DRIVER_ERRORS as error:
                if more and is_rolled_back(error):
                    continue
                raise translate(error, self.place) from error
        await self._committed(verb)
        return rows

    @contextlib.asynccontextmanager
    async def aside(self) -> AsyncIterator[Connection[Any]]:
        """A connection for what is done before the store is open, or beside its verbs."""
        with self.translated():
            async with self.verbs.connection() as connection:
                yield connection

    async def query(self, statement: str, *args: object, line: Line | None = None) -> list[Record]:
        """One statement outside of the verbs."""
        self.check_open()
        with self.translated():
            async with (line or self.verbs).connection() as connection:
                return await connection.fetch(self.sql[statement], *args)

    async def look(self, statement: str, *args: object) -> list[Record]:
        """The same for the gates, which must not wait for verbs that wait for others."""
        return await self.query(statement, *args, line=self.gates)

    async def snapshot(self, report: Callable[[Tx], Awaitable[T]]) -> T:
        """Read on a connection for reports, which sees one state of the database from begin to end."""
        self.check_open()
        with self.translated():
            async with (
                self.reports.connection() as connection,
                connection.transaction(isolation="repeatable_read", readonly=True),
            ):
                return await report(await self._tx(connection))

    @contextlib.contextmanager
    def translated(self) -> Iterator[None]:
        """Errors of the driver become ours."""
        try:
            yield
        except HoldfastError:
            raise
        except DRIVER_ERRORS as error:
            raise translate(error, self.place) from error

    def check_open(self) -> None:
        if not self._open:
            raise NotOpen(f"PostgreSQL store {self.place} is not open")
        if os.getpid() != self._pid:
            raise NotOpen(
                f"the store was opened by process {self._pid}, and this is its fork {os.getpid()}: "
                "close the app before you fork, and open it in the child"
            )

    async def _tx(self, connection: Connection[Any], *, timed: bool = True) -> Tx:
        now = await connection.fetchval(self.sql["transaction.now"]) if timed else _NO_TIME
        return Tx(connection, self.sql, now, self.tenanted)

    async def _begin(self, verb: str) -> None:
        try:
            await afailpoint(f"{verb}.begin")
        except FailpointHit as hit:
            raise struck(hit) from hit

    async def _committed(self, verb: str) -> None:
        try:
            await afailpoint(f"{verb}.committed")
        except FailpointHit as hit:
            raise answer_lost(hit) from hit
