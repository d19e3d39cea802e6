"""Looks after jobs that were enqueued inside users' transactions, to tell those who wait for work once they commit.

Nobody says when a user commits. Workers look for work by themselves now and then, so this only saves them the wait: a
job that does not appear within half a minute is left to them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING, NamedTuple

from holdfast.core.errors import HoldfastError
from holdfast.core.job import JobId
from holdfast.stores.base import Hint

if TYPE_CHECKING:
    from asyncpg import Record

Query = Callable[..., Awaitable["list[Record]"]]

_FIRST_LOOK_S = 0.005
#: A look for every so much more of the time that has passed: soon after the enqueue, seldom later.
_SHARE = 0.5
_LONGEST_S = 30.0
_MOST = 10_000


class _Watched(NamedTuple):
    since_s: float
    hints: Hint
    on_committed: Callable[[], None]

    def next_look_s(self, now_s: float) -> float:
        return now_s + max(_FIRST_LOOK_S, (now_s - self.since_s) * _SHARE)


class Outbox:
    """One question for all that is due to be looked for; belongs to the loop that opened the store."""

    def __init__(
        self,
        query: Query,
        tell: Callable[[Hint], None],
        announce: Callable[[Collection[JobId]], Awaitable[None]],
    ) -> None:
        self._query = query
        self._tell = tell
        self._announce = announce
        self._watched: dict[JobId, _Watched] = {}
        self._due_s: dict[JobId, float] = {}
        self._task: asyncio.Task[None] | None = None

    def watch(self, job_id: JobId, hints: Hint, on_committed: Callable[[], None]) -> None:
        """Tell the hints once this job is there."""
        if len(self._watched) >= _MOST:
            return
        loop = asyncio.get_running_loop()
        watched = self._watched[job_id] = _Watched(loop.time(), hints, on_committed)
        self._due_s[job_id] = watched.next_look_s(loop.time())
        if self._task is None:
            self._task = loop.create_task(self._look_out(), name="holdfast-outbox")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _look_out(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._watched:
                await asyncio.sleep(max(_FIRST_LOOK_S, min(self._due_s.values()) - loop.time()))
                now_s = loop.time()
                due = [job_id for job_id, due_s in self._due_s.items() if due_s <= now_s]
                if found := {row[0] for row in await self._look(due)} if due else set():
                    self._found(found)
                    await self._announce(found)
                for job_id in due:
                    self._look_later(job_id, now_s)
        finally:
            self._task = None

    async def _look(self, job_ids: list[JobId]) -> list[Record]:
        try:
            return await self._query("insert_jobs.existing", job_ids)
        except HoldfastError:
            return []  # the store is away: looked for again

    def _found(self, job_ids: set[JobId]) -> None:
        hints = Hint.NOTHING
        for job_id in job_ids:
            del self._due_s[job_id]
            watched = self._watched.pop(job_id)
            hints |= watched.hints
            watched.on_committed()
        self._tell(hints)

    def _look_later(self, job_id: JobId, now_s: float) -> None:
        watched = self._watched.get(job_id)
        if watched is None:
            return
        self._due_s[job_id] = watched.next_look_s(now_s)
        if now_s - watched.since_s > _LONGEST_S:
            del self._due_s[job_id], self._watched[job_id]
