"""What one worker reads with: fetches by script while there is work, one waiting connection while there is none."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping
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
        telemetry: Telemetry,
    ) -> None:
        self._connection = connection
        self._keys = keys
        self._publisher = publisher
        self._name = name
        self._wake = wake
        self._telemetry = telemetry
        self._line = connection.line()
        self._listener = Listener(connection, keys, name=name, on_read=self._on_read)
        self._leave = connection.on_change(self._on_change)
        self._lanes: dict[Lane, str] = {}
        """Every lane that was ever read here, with its key."""
        self._dealt_with: dict[Lane, list[bytes]] = {}
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
        for lane in quotas:
            if lane not in self._lanes:
                self._lanes[lane] = self._keys.stream(lane)
        lanes = list(self._lanes)
        args: list[bytes | str | int] = [self._name]
        dealt_with, self._dealt_with = self._dealt_with, {}
        self._cancel_ack_timer()
        for lane in lanes:
            ids = dealt_with.get(lane, ())
            args += [quotas.get(lane, 0), len(ids), *ids]
        try:
            entries, more = await self._line.run(FETCH, list(self._lanes.values()), args)
        except FAILURES as error:
            # What was dealt with stays on the server; somebody will find it, ask the store, and forget it.
            self._connection.failed(error)
            return NOTHING
        found = self._entries(zip([lanes[n - 1] for n in entries[::3]], entries[1::3], entries[2::3], strict=True))
        return Reading(found, frozenset(lanes[n - 1] for n in more))

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
        for lane in lanes:
            if lane not in self._lanes:
                self._lanes[lane] = self._keys.stream(lane)
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
        keys = list(self._lanes.values())
        args: list[bytes | str | int] = [self._name]
        for lane in self._lanes:
            ids = self._dealt_with.get(lane, ())
            args += [0, len(ids), *ids]
        await self._line.run(FETCH, keys, args)
        await self._line.run(RELEASE, keys, [self._name, _RELEASED_AT_ONCE])

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
