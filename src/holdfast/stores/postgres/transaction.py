"""What a verb sees of the open transaction: the connection, the clock, the hints and depths it leaves behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from holdfast.core.job import JobId
from holdfast.stores.base import Hint

if TYPE_CHECKING:
    from asyncpg import Record


class Fetches(Protocol):
    """All that a verb needs of a connection; one of a user's is made to look like it."""

    async def fetch(self, statement: str, /, *args: object) -> list[Any]: ...

    async def fetchval(self, statement: str, /, *args: object) -> Any: ...


class Place(NamedTuple):
    """A job on its way into `ready`; without a `seq` it goes to the tail of its lane."""

    job_id: JobId
    queue: str
    priority: int
    attempt: int = 0
    losses: int = 0
    crashes: int = 0
    attached: bool = False
    tag: int = 0
    seq: int | None = None


class Tx:
    """One verb's transaction; `now` is read once, from the database's clock, and holds for all of it."""

    __slots__ = ("_depth", "_sql", "connection", "drained", "hints", "left", "now", "returned")

    def __init__(
        self, connection: Fetches, sql: Mapping[str, str], now: datetime, *, left: list[str] | None = None
    ) -> None:
        self.connection = connection
        self.now = now
        self.hints = Hint.NOTHING
        self.returned = False
        """Jobs came back to their old places, before others that may have been claimed since."""
        self.drained: list[str] = []
        """Queues that have fewer ready jobs than before."""
        self.left = left
        """Limits that others had in hand, whose waiters are looked after later; None: this verb waits for them."""
        self._sql = sql
        self._depth: Counter[str] = Counter()

    async def fetch(self, statement: str, *args: object) -> list[Record]:
        """Run a statement of `sql/`, named `file.name`."""
        return await self.connection.fetch(self._sql[statement], *args)

    def statement(self, name: str) -> str:
        """The text of a statement of `sql/`, for one that is completed by the caller."""
        return self._sql[name]

    async def value(self, statement: str, *args: object) -> Any:
        """The one value that a statement gives."""
        return await self.connection.fetchval(self._sql[statement], *args)

    async def many(self, statement: str, rows: Sequence[Sequence[object]], *args: object) -> list[Record]:
        """Run a statement on many rows at once, given to it as one array per column, then `args`."""
        return await self.fetch(statement, *map(list, zip(*rows, strict=True)), *args) if rows else []

    async def enter_ready(self, places: Sequence[Place]) -> None:
        """Insert into `ready`, in this order where they go to the tail."""
        if places:
            await self.many("transaction.enter_ready", places, self.now)
            self._depth.update(place.queue for place in places)
            self.hints |= Hint.READY
            self.returned = self.returned or any(place.seq is not None for place in places)

    def left_ready(self, queue: str, count: int = 1) -> None:
        """Account for rows deleted from `ready`."""
        self._depth[queue] -= count

    async def close_verb(self) -> None:
        """Write the changes of depth that this verb made; same transaction."""
        changes = [(queue, change) for queue, change in self._depth.items() if change]
        await self.many("transaction.change_depth", changes)
        self.drained += [queue for queue, change in changes if change < 0]
        self._depth.clear()
