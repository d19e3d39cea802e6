"""Follows jobs for many clients at once: one question to the store for all of them, and for each the newest answer.

Duties:
1. All followed jobs are asked for together, when something may have changed and now and then, in bounded pieces.
2. A client has one place for what it has not been sent yet: a slow one skips steps, and costs no more than a quick one.
3. When the server stops, everybody is told to come again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Final

from holdfast.app import Holdfast
from holdfast.core.errors import NotOpen, StoreError
from holdfast.core.job import JobId, JobInfo

_CHUNK: Final = 200
_REST_FACTOR: Final = 4
_MOST_REST_S: Final = 1.0
#: A hint tells of any commit in the store: looking again at once would follow all of them.
_LEAST_REST_S: Final = 0.02


class Follower:
    """One client, and the job that it follows."""

    def __init__(self, job: JobInfo) -> None:
        self.newest: JobInfo | None = job
        """None: it is gone."""
        self.news = asyncio.Event()
        self.news.set()

    def tell(self, job: JobInfo | None) -> None:
        """What it is sent next, in place of what it was to be sent."""
        if job != self.newest:
            self.newest = job
            self.news.set()

    def take(self) -> JobInfo | None:
        """What it is sent now."""
        self.news.clear()
        return self.newest


class Streams:
    """See the module's duties."""

    def __init__(self, hf: Holdfast, *, most: int) -> None:
        self._hf = hf
        self._most = most
        self._followers: defaultdict[JobId, set[Follower]] = defaultdict(set)
        self.count = 0
        """Clients that follow now."""
        self._looking: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self.stopped = False

    @property
    def full(self) -> bool:
        """Whether no more may follow."""
        return self.count >= self._most

    def stop(self) -> None:
        """Everybody is told to come again; nobody new is taken."""
        self.stopped = True
        for followers in self._followers.values():
            for follower in followers:
                follower.news.set()

    @contextlib.contextmanager
    def following(self, job: JobInfo) -> Iterator[Follower]:
        """The job as it was just seen, and from then on as it changes."""
        follower = Follower(job)
        self._followers[job.id].add(follower)
        self.count += 1
        if self._looking is None:
            self._looking = asyncio.create_task(self._look_on(), name="holdfast-streams")
        self._changed.set()  # it may have changed between that look and this
        try:
            yield follower
        finally:
            self.count -= 1
            self._followers[job.id].discard(follower)
            if not self._followers[job.id]:
                del self._followers[job.id]
            if not self._followers and self._looking is not None:
                self._looking.cancel()
                self._looking = None

    async def _look_on(self) -> None:
        loop, leave = asyncio.get_running_loop(), self._subscribe()
        try:
            while True:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._hf.config.poll_s):
                        await self._changed.wait()
                self._changed.clear()
                began = loop.time()
                with contextlib.suppress(StoreError, NotOpen):  # it is asked again
                    await self._look()
                took_s = loop.time() - began
                await asyncio.sleep(min(_MOST_REST_S, max(_LEAST_REST_S, took_s * _REST_FACTOR)))
        finally:
            leave()

    def _subscribe(self) -> Callable[[], None]:
        try:
            return self._hf.jobs.subscribe(self._changed.set)
        except NotOpen:
            return lambda: None

    async def _look(self) -> None:
        ids = list(self._followers)
        for start in range(0, len(ids), _CHUNK):
            some = ids[start : start + _CHUNK]
            for job_id, job in zip(some, await self._hf.jobs.get_many(some), strict=True):
                for follower in self._followers.get(job_id, ()):
                    follower.tell(job)
