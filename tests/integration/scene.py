"""What end-to-end tests share: a test as a coroutine with a deadline, and things to wait for instead of time."""

from __future__ import annotations

import asyncio
import functools
import sqlite3
from collections.abc import Callable, Coroutine
from contextlib import aclosing, closing
from pathlib import Path
from typing import Any, TypeVar

from holdfast import Holdfast, JobHandle, JobInfo
from holdfast.core.state import State
from holdfast.telemetry.events import Event

E = TypeVar("E")

#: Long enough never to decide a test that works.
PATIENCE_S = 30.0


def scene(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an `async def` test on a loop of its own; one that hangs fails."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), 2 * PATIENCE_S))

    return run


class Heard:
    """The events of an app from now on, to be waited for one by one."""

    def __init__(self, hf: Holdfast, *kinds: type[Event]) -> None:
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        hf.telemetry.attach(lambda event: loop.call_soon_threadsafe(self._events.put_nowait, event), only=kinds or None)

    async def next(self, kind: type[E]) -> E:
        """The next event of this kind; others before it are passed over."""
        while True:
            event = await asyncio.wait_for(self._events.get(), PATIENCE_S)
            if isinstance(event, kind):
                return event


async def until(job: JobHandle[Any], wanted: State | Callable[[JobInfo], bool]) -> JobInfo:
    """Wait for a state, or for anything else that a report shows."""
    async with asyncio.timeout(PATIENCE_S), aclosing(job.events()) as events:
        async for info in events:
            if info.state is wanted if isinstance(wanted, State) else wanted(info):
                return info
    raise AssertionError(f"the job ended without it: {info}")


async def gone(hf: Holdfast, state: State) -> None:
    """Wait until no job is in this state."""
    while jobs := await hf.jobs.list(state=state):
        await until(JobHandle(jobs[0].id, hf._open_client(), lambda result: result), lambda info: info.state != state)


def url_of(path: Path) -> str:
    return f"sqlite:///{path}"


def by_hand(path: Path, statement: str, *values: object) -> list[Any]:
    """Reach into a store's file past the store."""
    with closing(sqlite3.connect(path, timeout=PATIENCE_S)) as db, db:
        return db.execute(statement, values).fetchall()
