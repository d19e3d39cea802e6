"""An app on PostgreSQL and Redis for tests, with a task that says which of its jobs have run."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import psycopg
from tests.postgres.fixtures import PostgresSchema

from holdfast import Holdfast
from holdfast.telemetry.events import Event
from holdfast.transports.redis_streams import parse_address
from holdfast.transports.redis_streams.consumer import RedisConsumer
from holdfast.transports.redis_streams.transport import RedisStreams
from holdfast.transports.redis_streams.wire import Wire, connect

PATIENCE_S = 60.0
E = TypeVar("E", bound=Event)


class Shop:
    """`ran` has the number of every call that was run, in order."""

    def __init__(self, place: PostgresSchema, redis: str, **settings: Any) -> None:
        self.place = place
        self.redis = redis
        self.hf = Holdfast(place.url, redis=redis, schema=place.schema, **{"poll_s": 0.2} | settings)
        self.events: list[Event] = []
        self.hf.telemetry.attach(self.events.append)
        self.ran: list[int] = []
        self.hold = asyncio.Event()
        self.hold.set()
        self._changed = asyncio.Event()

        @self.hf.task(name="sell")
        async def sell(n: int) -> None:
            self.ran.append(n)
            self._changed.set()
            await self.hold.wait()

        self.sell = sell

    def told(self, *kinds: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kinds)]

    def hint(self) -> None:
        """As if somebody had said that there is work."""
        store = self.hf._opened.dispatch.store
        assert store is not None
        store.hint_ready()

    def ears(self) -> list[Any]:
        """Of its workers' consumers: what waits for announcements, a queue or all queues each."""
        transport = self.hf._opened.dispatch.transport
        assert isinstance(transport, RedisStreams)
        consumers = [getattr(watcher, "__self__", None) for watcher in transport._connection._watchers]
        return [ear for each in consumers if isinstance(each, RedisConsumer) for ear in each._listener._ears.values()]

    async def enqueue(self, *numbers: int, **options: Any) -> None:
        task = self.sell.options(**options) if options else self.sell
        await self.hf.enqueue_many([task.request(n) for n in numbers])

    async def until_ran(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while len(self.ran) < count:
                self._changed.clear()
                await self._changed.wait()

    async def prefix(self) -> str:
        made = self.query("SELECT to_char(applied_at AT TIME ZONE 'UTC', 'YYYYMMDDHH24MISSUS') FROM migration LIMIT 1")
        return f"holdfast:{self.place.schema}:{made[0][0]}"

    async def stream(self, *, queue: str = "default", priority: int = 5) -> str:
        return f"{await self.prefix()}:{{{queue}}}:{priority}"

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.place.url, autocommit=True) as db:
            db.execute(f"SET search_path = {self.place.schema}")  # type: ignore[call-overload]
            return db.execute(statement).fetchall()  # type: ignore[call-overload, no-any-return]

    @contextlib.asynccontextmanager
    async def line(self) -> AsyncIterator[Ask]:
        """A connection past the app's."""
        wire: Wire = await connect(parse_address(self.redis))
        try:
            yield lambda *words: wire.ask(*words, within_s=PATIENCE_S)
        finally:
            wire.close()

    async def length(self, **lane: Any) -> int:
        async with self.line() as ask:
            return int(await ask("XLEN", await self.stream(**lane)))

    async def pending(self, **lane: Any) -> int:
        async with self.line() as ask:
            try:
                return int((await ask("XPENDING", await self.stream(**lane), "workers"))[0])
            except Exception:
                return 0

    async def keys(self) -> list[str]:
        async with self.line() as ask:
            return sorted(key.decode() for key in await ask("KEYS", f"{await self.prefix()}:*"))


Ask = Callable[..., Awaitable[Any]]


async def until(is_so: Callable[[], Awaitable[bool]] | Callable[[], bool], what: str) -> None:
    """Look again and again."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                answer = is_so()
                if answer if isinstance(answer, bool) else await answer:
                    return
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"waited in vain for {what}") from None
