"""What a verb sees of the open transaction: the connection, the clock, the hints and depths it leaves behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from holdfast.core.gates import Place as Barred
from holdfast.core.job import JobId
from holdfast.stores.base import Hint
from holdfast.stores.postgres.tenants import tagged

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

    __slots__ = (
        "_depth",
        "_parked",
        "_sql",
        "_tails",
        "connection",
        "drained",
        "entered",
        "freed",
        "hints",
        "is_guest",
        "is_last_try",
        "now",
        "returned",
        "tenanted",
    )

    def __init__(
        self,
        connection: Fetches,
        sql: Mapping[str, str],
        now: datetime,
        tenanted: AbstractSet[str] = frozenset(),
        *,
        is_guest: bool = False,
    ) -> None:
        self.connection = connection
        self.now = now
        self.is_guest = is_guest
        """The transaction is a user's: others must not wait for anything in it."""
        self.is_last_try = False
        """Whether nobody repeats it any more if it is rolled back."""
        self.tenanted = tenanted
        """Queues with tenants, as far as this process knows."""
        self.hints = Hint.NOTHING
        self.entered: list[Place] = []
        """Jobs that it has made ready."""
        self.returned = False
        """Jobs came back to their old places, before others that may have been claimed since."""
        self.drained: list[str] = []
        """Queues that have fewer jobs than before."""
        self.freed: set[Barred] = set()
        """Gates of which slots were freed: who waits there is looked after when this is committed (`serving`)."""
        self._sql = sql
        self._depth: Counter[str] = Counter()
        self._parked: Counter[str] = Counter()
        self._tails: list[Place] = []

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
        """Insert into `ready`, in this order where they go to the tail.

        Where they need tags for it, at the end of the verb: nobody has to wait for those for longer than needed, and we
        wait for nothing else while we hold them. Whatever else goes to a tail then goes with them: numbers are in the
        order in which jobs came, also over queues, and the smallest is the first in the line for a limit.
        """
        if self.tenanted:
            tails = [place for place in places if place.seq is None]
            if self._tails or any(place.queue in self.tenanted for place in tails):
                self._tails += tails
                places = [place for place in places if place.seq is not None]
        await self._enter_ready(places)

    async def _enter_ready(self, places: Sequence[Place]) -> None:
        if places:
            await self.many("transaction.enter_ready", places, self.now)
            self._depth.update(place.queue for place in places)
            self.hints |= Hint.READY
            self.entered += places
            self.returned = self.returned or any(place.seq is not None for place in places)

    def left_ready(self, queue: str, count: int = 1) -> None:
        """Account for rows deleted from `ready`."""
        self._depth[queue] -= count

    def parked(self, queue: str, count: int = 1) -> None:
        """Account for rows inserted into `parked`, or, where the number is negative, deleted from there."""
        self._parked[queue] += count

    async def close_verb(self) -> None:
        """Write what is left to be written of this verb: tags, and the changes of depth; same transaction."""
        if self._tails:
            places, self._tails = self._tails, []
            await self._enter_ready(await tagged(self, places))
        queues = dict.fromkeys((*self._depth, *self._parked))
        changes = [(queue, self._depth[queue], self._parked[queue]) for queue in queues]
        await self.many("transaction.change_depths", [change for change in changes if any(change[1:])])
        self.drained += [queue for queue, ready, parked in changes if ready + parked < 0]
        self._depth.clear()
        self._parked.clear()
