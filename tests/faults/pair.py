"""Two stores in one place, as two processes would have it, and a way to let one act in the middle of the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.campaign.where import Where
from tests.postgres.clock import stopped_clock
from tests.postgres.fixtures import PostgresSchema

from holdfast.runtime.clock import ManualClock
from holdfast.runtime.failpoints import arm
from holdfast.stores.base import Store


class Pair(NamedTuple):
    """They share a clock that stands still, and nothing else but the place."""

    one: Store
    other: Store
    clock: ManualClock
    where: Where

    def by_hand(self, statement: str) -> None:
        """What no store would do."""
        self.where.glance().query(statement)

    def in_a_thread(self, act: Callable[[Store], Awaitable[Any]]) -> Coroutine[Any, Any, Any]:
        """One more store, in a thread and an event loop of its own: real concurrency, as between processes."""

        async def with_store() -> Any:
            store = self.where.store(clock=self.clock)
            await store.open()
            try:
                return await act(store)
            finally:
                await store.close()

        return asyncio.to_thread(lambda: asyncio.run(with_store()))


@asynccontextmanager
async def pair(directory: Path) -> AsyncIterator[Pair]:
    where = Where.of(directory)
    async with AsyncExitStack() as stack:
        clock = ManualClock()
        if where.is_postgres:
            clock = stack.enter_context(stopped_clock(PostgresSchema(where.url, where.schema)))
        stores = [where.store(clock=clock) for _ in range(2)]
        for store in stores:
            await store.open()
            stack.push_async_callback(store.close)
        yield Pair(*stores, clock, where)


def meanwhile(verb: str, act: Callable[[], Coroutine[Any, Any, object]]) -> list[object]:
    """Let `act` happen when the next such verb was asked for and has not begun; its answer is put into the list."""
    answers: list[object] = []

    async def do() -> None:
        answers.append(await act())

    arm(f"{verb}.begin", wherever(do))
    return answers


def wherever(act: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], object]:
    """An action for a failpoint that a store may pass in a thread of its own, or on the event loop."""

    def strike() -> object:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(act())
        return act()

    return strike
