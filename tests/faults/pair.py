"""Two stores on one file, as two processes would have it, and a way to let one act in the middle of the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.runtime.clock import ManualClock
from holdfast.runtime.failpoints import arm
from holdfast.stores.sqlite import SqliteStore


class Pair(NamedTuple):
    """They share a clock that stands still, and nothing else but the file."""

    one: SqliteStore
    other: SqliteStore
    clock: ManualClock


@asynccontextmanager
async def pair(directory: Path) -> AsyncIterator[Pair]:
    clock = ManualClock()
    stores = [SqliteStore(str(directory / "pair.db"), clock=clock) for _ in range(2)]
    for store in stores:
        await store.open()
    try:
        yield Pair(*stores, clock)
    finally:
        for store in stores:
            await store.close()


def meanwhile(verb: str, act: Callable[[], Coroutine[Any, Any, object]]) -> list[object]:
    """Let `act` happen when the next such verb was asked for and has not begun; its answer is put into the list."""
    answers: list[object] = []
    arm(f"{verb}.begin", lambda: answers.append(asyncio.run(act())))
    return answers
