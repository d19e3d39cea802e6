"""Redis Streams as a transport: a stream per lane, one group of consumers, nothing that the store does not know."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Sequence

from holdfast.core.announcement import Announcement
from holdfast.runtime.clock import Clock
from holdfast.telemetry.hub import Telemetry
from holdfast.transports.base import Upkeep
from holdfast.transports.redis_streams.address import Address
from holdfast.transports.redis_streams.connection import ANSWER_S, FAILURES, Connection
from holdfast.transports.redis_streams.consumer import RedisConsumer
from holdfast.transports.redis_streams.inspection import inspect
from holdfast.transports.redis_streams.keys import Keys, lanes_of
from holdfast.transports.redis_streams.publisher import BOUND, Publisher
from holdfast.transports.redis_streams.scripts import RECOVER, WATCH
from holdfast.transports.status import TransportStatus

#: For how long an entry has to have been read by somebody who did nothing about it, before it is for others.
ABANDONED_S = 5.0
#: For how long a consumer has to have been silent: several times as long as one waits for work at a time.
DEAD_S = 60.0
_RECOVERED_AT_ONCE = 100
_FILLED_AT_ONCE = 1000


class RedisStreams:
    """See the module's sentence."""

    def __init__(
        self,
        address: Address,
        *,
        prefix: str,
        clock: Clock,
        telemetry: Telemetry,
        on_undelivered: Callable[[], None] = lambda: None,
        bound: int = BOUND,
        answer_s: float = ANSWER_S,
        abandoned_s: float = ABANDONED_S,
        dead_s: float = DEAD_S,
    ) -> None:
        self._telemetry = telemetry
        self._bound = bound
        self._abandoned_s = abandoned_s
        self._dead_s = dead_s
        self._keys = Keys(prefix, apart=address.is_cluster)
        self._connection = Connection(
            address, trial_key=f"{prefix}:trial", clock=clock, telemetry=telemetry, answer_s=answer_s
        )
        self._publisher = Publisher(self._connection, self._keys, on_undelivered=on_undelivered, bound=bound)
        self._line = self._connection.line()
        self._marks: dict[str, bytes] = {}
        """What is to be set once a queue's ready jobs have been announced."""

    async def open(self) -> None:
        await self._connection.open()

    async def close(self) -> None:
        await self._publisher.close()
        await self._connection.close()

    @property
    def is_up(self) -> bool:
        return self._connection.is_up

    def publish(self, announcements: Sequence[Announcement]) -> bool:
        return self._publisher.publish(announcements)

    def tell_news(self, queue: str) -> None:
        self._publisher.tell_news(queue)

    def consumer(
        self, name: str, *, wake: Callable[[], None], on_news: Callable[[], None] = lambda: None
    ) -> RedisConsumer:
        """For one worker, by its id; `wake` is called when something has come."""
        return RedisConsumer(
            self._connection,
            self._keys,
            self._publisher,
            name=name,
            wake=wake,
            on_news=on_news,
            telemetry=self._telemetry,
        )

    async def tend(self, queues: Collection[str]) -> Upkeep:
        if not self.is_up or not queues:
            return Upkeep()
        self._marks = {}
        try:
            for group in self._keys.together(queues):
                await self._watch(group)
            moved = [await self._recover(queue) for queue in sorted(queues)]
        except FAILURES as error:
            self._connection.failed(error)
            return Upkeep()
        return Upkeep(tuple(sorted(self._marks)), sum(each[0] for each in moved), sum(each[1] for each in moved))

    async def fill(self, queue: str, announcements: Sequence[Announcement]) -> None:
        try:
            known = await self._known(queue)
            missing = [each for each in announcements if each.job_id is None or each.job_id.bytes not in known]
            for first in range(0, len(missing), _FILLED_AT_ONCE):
                await self._publisher.send(missing[first : first + _FILLED_AT_ONCE])
            if (mark := self._marks.pop(queue, None)) is not None:
                meta = self._keys.meta(queue)
                await self._line.ask("HSET", meta, "filled", mark, key=meta)
        except FAILURES as error:
            self._connection.failed(error)

    async def status(self, queues: Collection[str]) -> TransportStatus:
        """What is there, for whoever examines it; need not be open. ConfigError as in `open`."""
        return await inspect(self._connection, self._keys, queues)

    async def _known(self, queue: str) -> set[bytes]:
        """Jobs that are announced: a second announcement would cost a claim that finds nothing."""
        known: set[bytes] = set()
        for stream in map(self._keys.stream, lanes_of(queue)):
            after = "-"
            while entries := await self._line.ask("XRANGE", stream, after, "+", "COUNT", _FILLED_AT_ONCE, key=stream):
                known.update(fields[1] for _, fields in entries)  # somebody's garbage is no job's id
                after = f"({entries[-1][0].decode()}"
        return known

    async def _watch(self, queues: Sequence[str]) -> None:
        keys = [self._keys.meta(queue) for queue in queues]
        run_id = await self._line.run_id(keys[0])
        wanted = await self._line.run(WATCH, keys, [secrets.token_hex(8), run_id])
        self._marks |= {queue: mark for queue, mark in zip(queues, wanted, strict=True) if mark}

    async def _recover(self, queue: str) -> tuple[int, int]:
        lanes = lanes_of(queue)
        keys = [self._keys.meta(queue), *(self._keys.stream(lane) for lane in lanes)]
        limits = [int(1000 * self._abandoned_s), int(1000 * self._dead_s), _RECOVERED_AT_ONCE]
        moved, removed = await self._line.run(RECOVER, keys, [*limits, *(lane.priority for lane in lanes)])
        return moved, removed
