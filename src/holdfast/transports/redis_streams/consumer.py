"""What one worker reads with: fetches by script while there is work, one waiting connection while there is none."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from holdfast.core.announcement import Announcement
from holdfast.core.fairness import Lane
from holdfast.telemetry.hub import Telemetry
from holdfast.telemetry.transport_events import TransportGarbage
from holdfast.transports.base import NOTHING, Entry, Reading
from holdfast.transports.redis_streams.connection import FAILURES, Connection
from holdfast.transports.redis_streams.keys import Keys
from holdfast.transports.redis_streams.listener import Listener
from holdfast.transports.redis_streams.publisher import Publisher
from holdfast.transports.redis_streams.scripts import FETCH, RELEASE

#: An acknowledgement that no fetch takes along goes by itself after so long.
_ACK_WITHIN_S = 0.05
_RELEASED_AT_ONCE = 1000
_SIGN_OFF_S = 1.0
_ID_BYTES = 16


class _Group(NamedTuple):
    """What one script call may touch: all that is read here, or in a cluster what is of one queue."""

    queues: list[str]
    lanes: list[Lane]
    streams: list[str]


class RedisConsumer:
    """See the module's sentence. `wake` is called when something has come, or Redis has gone or come back."""

    def __init__(
        self,
        connection: Connection,
        keys: Keys,
        publisher: Publisher,
        *,
        name: str,
        wake: Callable[[], None],
        on_news: Callable[[], None],
        telemetry: Telemetry,
    ) -> None:
        self._connection = connection
        self._keys = keys
        self._publisher = publisher
        self._name = name
        self._wake = wake
        self._on_news = on_news
        self._telemetry = telemetry
        self._line = connection.line()
        self._listener = Listener(connection, keys, name=name, on_read=self._on_read)
        self._leave = connection.on_change(self._on_change)
        self._lanes: dict[Lane, str] = {}
        """Every lane that was ever read here, with its key."""
        self._groups: list[_Group] = []
        self._dealt_with: dict[Lane, list[bytes]] = {}
        self._news: dict[str, bytes] = {}
        """Of each queue, what its settings were called when they were last told to have changed."""
        self._arrived: list[Entry] = []
        self._ack_timer: asyncio.TimerHandle | None = None
        self._acking: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def is_up(self) -> bool:
        return self._connection.is_up and not self._closed

    def arrived(self) -> list[Entry]:
        arrived, self._arrived = self._arrived, []
        return arrived

    async def read(self, quotas: Mapping[Lane, int]) -> Reading:
        if not self.is_up:
            return NOTHING
        self._meet(quotas)
        self._cancel_ack_timer()
        dealt_with, self._dealt_with = self._dealt_with, {}
        if len(self._groups) == 1:
            return await self._fetch(self._groups[0], quotas, dealt_with)
        readings = await asyncio.gather(*(self._fetch(group, quotas, dealt_with) for group in self._groups))
        return Reading(
            [entry for reading in readings for entry in reading.entries],
            frozenset[Lane]().union(*(reading.more for reading in readings)),
        )

    async def _fetch(
        self, group: _Group, quotas: Mapping[Lane, int], dealt_with: Mapping[Lane, list[bytes]]
    ) -> Reading:
        """By one script call. Nothing, where Redis is away: what others have read at the same time stays good."""
        lanes = group.lanes
        try:
            entries, more, news = await self._line.run(FETCH, *self._words(group, quotas, dealt_with))
        except FAILURES as error:
            # What was dealt with stays on the server; somebody will find it, ask the store, and forget it.
            self._connection.failed(error)
            return NOTHING
        self._hear(zip(group.queues, news, strict=True))
        found = self._entries(zip([lanes[n - 1] for n in entries[::3]], entries[1::3], entries[2::3], strict=True))
        return Reading(found, frozenset(lanes[n - 1] for n in more))

    def _words(
        self, group: _Group, quotas: Mapping[Lane, int], dealt_with: Mapping[Lane, list[bytes]]
    ) -> tuple[list[str], list[bytes | str | int]]:
        """Keys and arguments of the script `fetch`."""
        args: list[bytes | str | int] = [self._name, len(group.queues)]
        for lane in group.lanes:
            ids = dealt_with.get(lane, ())
            args += [quotas.get(lane, 0), len(ids), *ids]
        return [*map(self._keys.meta, group.queues), *group.streams], args

    def _hear(self, news: Iterable[tuple[str, bytes]]) -> None:
        """Also where it is gone, with all that Redis knew: something may have been said before."""
        if heard := {queue: now for queue, now in news if self._news.get(queue, b"") != now}:
            self._news |= heard
            self._on_news()

    def _meet(self, lanes: Iterable[Lane]) -> None:
        if not (new := [lane for lane in lanes if lane not in self._lanes]):
            return
        self._lanes |= {lane: self._keys.stream(lane) for lane in new}
        self._groups = []
        for queues in self._keys.together(lane.queue for lane in self._lanes):
            known = [lane for lane in self._lanes if lane.queue in queues]
            self._groups.append(_Group(queues, known, [self._lanes[lane] for lane in known]))

    def ack(self, entries: Collection[Entry]) -> None:
        for lane, entry_id, _ in entries:
            self._dealt_with.setdefault(lane, []).append(entry_id)
        if entries and self._ack_timer is None and not self._closed:
            self._ack_timer = asyncio.get_running_loop().call_later(_ACK_WITHIN_S, self._ack_now)

    def hand_on(self, entries: Collection[Entry]) -> None:
        if entries:
            # Whether it arrives or not: the store knows of the jobs.
            self._publisher.publish([Announcement(entry.lane, entry.job_id) for entry in entries])
            self.ack(entries)

    def listen(self, lanes: Collection[Lane], *, most: int) -> None:
        self._meet(lanes)
        self._listener.listen(lanes if self.is_up else (), most=most)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._leave()
        self._cancel_ack_timer()
        await self._listener.close()
        if self._acking is not None:
            await asyncio.wait({self._acking})
        try:
            async with asyncio.timeout(_SIGN_OFF_S):
                if self._connection.is_up and self._lanes:
                    await self._sign_off()
        except TimeoutError:
            pass  # it is found as that of a dead one is
        except FAILURES as error:
            self._connection.failed(error)
        finally:
            self._connection.forget(self._line)

    async def _sign_off(self) -> None:
        for group in self._groups:
            await self._line.run(FETCH, *self._words(group, {}, self._dealt_with))
            await self._line.run(RELEASE, group.streams, [self._name, _RELEASED_AT_ONCE])

    def _ack_now(self) -> None:
        self._ack_timer = None
        if self._acking is None:
            self._acking = asyncio.get_running_loop().create_task(self._acknowledge(), name="holdfast-ack")

    async def _acknowledge(self) -> None:
        try:
            with contextlib.suppress(*FAILURES):
                await self.read({})
        finally:
            self._acking = None

    def _cancel_ack_timer(self) -> None:
        if self._ack_timer is not None:
            self._ack_timer.cancel()
            self._ack_timer = None

    def _on_read(self, read: Iterable[tuple[Lane, bytes, bytes]]) -> None:
        self._arrived += self._entries(read)
        self._wake()

    def _on_change(self) -> None:
        """What was read stays good: the store knows. What was to be acknowledged is told to nobody any more."""
        self._dealt_with.clear()
        self._wake()

    def _entries(self, read: Iterable[tuple[Lane, bytes, bytes]]) -> list[Entry]:
        """What is not ours is forgotten, and said."""
        found: list[Entry] = []
        garbage: list[Entry] = []
        for lane, entry_id, content in read:
            if len(content) == _ID_BYTES:
                found.append(Entry(lane, entry_id, UUID(bytes=content)))
            elif not content:
                found.append(Entry(lane, entry_id, None))
            else:
                garbage.append(Entry(lane, entry_id, None))
        if garbage:
            self._telemetry.emit(TransportGarbage(self._keys.stream(garbage[0].lane), len(garbage)))
            self.ack(garbage)
        return found
