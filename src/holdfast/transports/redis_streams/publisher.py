"""Carries announcements to Redis: gathered, one script call per batch, off the producers' way."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Sequence

from holdfast.core.announcement import Announcement
from holdfast.core.fairness import Lane
from holdfast.core.priority import PRIORITY_NAMES
from holdfast.runtime.failpoints import FailpointHit, afailpoint
from holdfast.transports.moments import PUBLISH_BEGIN, PUBLISH_DONE
from holdfast.transports.redis_streams.connection import FAILURES, Connection
from holdfast.transports.redis_streams.keys import Keys
from holdfast.transports.redis_streams.line import all_of
from holdfast.transports.redis_streams.scripts import PUBLISH

BOUND = 10_000
"""Entries of one lane. What is beyond is in the store alone, and comes from there when the stream runs dry."""
WAKE_UPS = 16
"""Entries of a lane that only wake somebody up: as many workers at once."""
#: The lane in which somebody is woken for a queue as a whole.
_WOKEN_BY = PRIORITY_NAMES["normal"]
_BATCH = 1000
_MOST_PENDING = 20_000
_LAST_WORD_S = 1.0


class Publisher:
    """No timer: what came until the next tick of the loop goes together; while one is on its way the next gathers.

    `on_undelivered` is called when what was taken has not arrived, as far as we know.
    """

    def __init__(
        self, connection: Connection, keys: Keys, *, on_undelivered: Callable[[], None], bound: int = BOUND
    ) -> None:
        self._connection = connection
        self._keys = keys
        self._on_undelivered = on_undelivered
        self._bound = bound
        self._line = connection.line()
        self._pending: list[Announcement] = []
        self._news: set[str] = set()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def publish(self, announcements: Sequence[Announcement]) -> bool:
        """False: not taken. Costs the caller next to nothing, and never raises."""
        if not self._connection.is_up or self._closed or len(self._pending) >= _MOST_PENDING:
            return False
        self._pending += announcements
        self._begin()
        return True

    def tell_news(self, queue: str) -> None:
        """Whoever reads of this queue is to look at its settings; one of those who wait is woken for it."""
        if self._connection.is_up and not self._closed:
            self._news.add(queue)
            self._pending.append(Announcement(Lane(queue, _WOKEN_BY), None))
            self._begin()

    def _begin(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._drain(), name="holdfast-publisher")

    async def send(self, announcements: Sequence[Announcement]) -> int:
        """Now, by one call (in a cluster, one per queue); how many were added. Raises what is wrong with Redis."""
        if not self._keys.apart:
            return await self._send(announcements)
        return sum(await all_of([self._send(part) for part in _by_queue(announcements)]))

    async def _send(self, announcements: Sequence[Announcement]) -> int:
        keys, args = arguments(self._keys, announcements)
        added: int = await self._line.run(PUBLISH, keys, [self._bound, WAKE_UPS, *args])
        return added

    async def close(self) -> None:
        """Whoever announces one job and goes is still heard, if it does not take long."""
        self._closed = True
        if self._task is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST_WORD_S):
                    await asyncio.shield(self._task)
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _drain(self) -> None:
        try:
            await asyncio.sleep(0)
            while self._pending:
                await self._send_news()
                batch, self._pending = self._pending[:_BATCH], self._pending[_BATCH:]
                await afailpoint(PUBLISH_BEGIN)
                await self.send(batch)
                await afailpoint(PUBLISH_DONE)
        except FailpointHit:
            self._give_up()
        except FAILURES as error:
            self._give_up()
            self._connection.failed(error)
        finally:
            self._task = None

    async def _send_news(self) -> None:
        news, self._news = self._news, set()
        for meta in map(self._keys.meta, news):
            await self._line.ask("HSET", meta, "news", secrets.token_hex(8), key=meta)

    def _give_up(self) -> None:
        self._pending.clear()
        self._news.clear()
        self._on_undelivered()


def _by_queue(announcements: Sequence[Announcement]) -> list[list[Announcement]]:
    parts: dict[str, list[Announcement]] = {}
    for each in announcements:
        parts.setdefault(each.lane.queue, []).append(each)
    return list(parts.values())


def arguments(keys: Keys, announcements: Sequence[Announcement]) -> tuple[list[str], list[bytes | int]]:
    """Keys and arguments of the script `publish`, after its bounds."""
    by_lane: dict[Lane, list[bytes]] = {}
    wake_ups: dict[Lane, int] = {}
    for lane, job_id in announcements:
        if lane not in by_lane:
            by_lane[lane] = []
            wake_ups[lane] = 0
        if job_id is None:
            wake_ups[lane] += 1
        else:
            by_lane[lane].append(job_id.bytes)
    args: list[bytes | int] = []
    for lane, ids in by_lane.items():
        args += [len(ids), wake_ups[lane], *ids]
    return [keys.stream(lane) for lane in by_lane], args
