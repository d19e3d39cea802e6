"""The one connection of a worker that waits: Redis answers as soon as somebody announces work in one of its lanes."""

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


class Listener:
    """Waits on the lanes that it was last told; each time something has come it is told on, and waits again only when
    told to. Never cancelled in the middle but with its connection: what came would be known to nobody."""

    def __init__(
        self,
        connection: Connection,
        keys: Keys,
        *,
        name: str,
        on_read: Callable[[Iterable[tuple[Lane, bytes, bytes]]], None],
    ) -> None:
        self._connection = connection
        self._keys = keys
        self._name = name
        self._on_read = on_read
        self._line = connection.line()
        self._wanted: dict[str, Lane] = {}
        self._most = 1
        self._task: asyncio.Task[None] | None = None

    def listen(self, lanes: Collection[Lane], *, most: int) -> None:
        self._wanted = {self._keys.stream(lane): lane for lane in lanes}
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
        try:
            return await self._line.ask(*words, *lanes, *(">" for _ in lanes), within_s=BLOCK_S + ANSWER_S)
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
