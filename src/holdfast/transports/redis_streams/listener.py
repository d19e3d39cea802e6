"""The connections of a worker that wait: Redis answers as soon as somebody announces work in one of its lanes.

One waits for all lanes; in a cluster, one for the lanes of each queue, which may be on different nodes.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterable
from typing import Any

from holdfast.core.fairness import Lane
from holdfast.transports.redis_streams.connection import ANSWER_S, FAILURES, Connection
from holdfast.transports.redis_streams.keys import GROUP, Keys
from holdfast.transports.redis_streams.scripts import ENSURE
from holdfast.transports.redis_streams.wire import Refusal

#: How long Redis waits before it says that there is nothing, which is when a dead connection is found out.
BLOCK_S = 5.0
#: There is no such group, or there was until now: everything was lost meanwhile.
_LOST = ("NOGROUP", "UNBLOCKED")

OnRead = Callable[[Iterable[tuple[Lane, bytes, bytes]]], None]


class Listener:
    """Waits on the lanes that it was last told; each time something has come it is told on, and waits again only when
    told to. Never cancelled in the middle but with its connection: what came would be known to nobody."""

    def __init__(self, connection: Connection, keys: Keys, *, name: str, on_read: OnRead) -> None:
        self._connection = connection
        self._keys = keys
        self._name = name
        self._on_read = on_read
        self._ears: dict[tuple[str, ...], _Ear] = {}

    def listen(self, lanes: Collection[Lane], *, most: int) -> None:
        by_group: dict[tuple[str, ...], dict[str, Lane]] = {}
        for queues in self._keys.together(lane.queue for lane in lanes):
            # Where keys are together there is one ear, whatever queues it is for.
            name = tuple(queues) if self._keys.apart else ()
            by_group[name] = {self._keys.stream(lane): lane for lane in lanes if lane.queue in queues}
        for name in by_group.keys() - self._ears.keys():
            self._ears[name] = _Ear(self._connection, name=self._name, on_read=self._heard)
        for name, ear in self._ears.items():
            ear.listen(by_group.get(name, {}), most=most)

    async def close(self) -> None:
        for ear in self._ears.values():
            await ear.close()

    def _heard(self, read: Iterable[tuple[Lane, bytes, bytes]]) -> None:
        for ear in self._ears.values():
            ear.listen({}, most=1)
        self._on_read(read)


class _Ear:
    """One connection that waits."""

    def __init__(self, connection: Connection, *, name: str, on_read: OnRead) -> None:
        self._connection = connection
        self._name = name
        self._on_read = on_read
        self._line = connection.line()
        self._wanted: dict[str, Lane] = {}
        self._most = 1
        self._task: asyncio.Task[None] | None = None

    def listen(self, wanted: dict[str, Lane], *, most: int) -> None:
        self._wanted = wanted
        self._most = most
        if self._wanted and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._listen(), name="holdfast-listener")

    async def close(self) -> None:
        self._wanted = {}
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self._connection.forget(self._line)

    async def _listen(self) -> None:
        try:
            while self._wanted and self._connection.is_up:
                lanes = self._wanted
                if read := await self._wait(lanes):
                    self._wanted = {}
                    self._on_read(_flat(lanes, read))
        except FAILURES as error:
            self._connection.failed(error)
        finally:
            self._task = None

    async def _wait(self, lanes: dict[str, Lane]) -> Any:
        words = ("XREADGROUP", "GROUP", GROUP, self._name, "COUNT", self._most, "BLOCK", int(1000 * BLOCK_S), "STREAMS")
        key = next(iter(lanes))
        try:
            return await self._line.ask(*words, *lanes, *(">" for _ in lanes), key=key, within_s=BLOCK_S + ANSWER_S)
        except Refusal as refusal:
            if refusal.code not in _LOST:
                raise
        await self._line.run(ENSURE, list(lanes), [])
        return None


def _flat(lanes: dict[str, Lane], read: Any) -> Iterable[tuple[Lane, bytes, bytes]]:
    for key, entries in read:
        lane = lanes[key.decode()]
        for entry_id, fields in entries:
            is_ours = fields is not None and len(fields) == 2 and fields[0] == b"j"
            yield lane, entry_id, fields[1] if is_ours else b"?"
