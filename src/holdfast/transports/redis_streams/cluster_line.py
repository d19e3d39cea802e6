"""The way to the nodes of a Redis Cluster for one purpose: each command goes to the node that has its keys."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from holdfast.transports.redis_streams.line import Line
from holdfast.transports.redis_streams.scripts import Script
from holdfast.transports.redis_streams.slots import Place, Slots, slot_of
from holdfast.transports.redis_streams.wire import Refusal, Unreachable, Wire

#: More than a cluster in which something is being moved needs.
_MOST_TRIES = 10
#: Keys of one queue are being moved, one after the other: a script has to wait until all are on one side.
_TRY_AGAIN_S = 0.02


class ClusterLine:
    """A connection per node that was ever needed, and the redirections of Redis Cluster."""

    def __init__(self, slots: Slots, connect: Callable[[Place], Awaitable[Wire]], *, answer_s: float) -> None:
        self._slots = slots
        self._connect = connect
        self._answer_s = answer_s
        self._lines: dict[Place, Line] = {}

    async def ask(self, *words: bytes | str | int, key: str, within_s: float | None = None) -> Any:
        return await self._directed(key, lambda line, asking: line.ask(*words, within_s=within_s, asking=asking))

    async def run(self, script: Script, keys: Sequence[str], args: Sequence[bytes | str | int]) -> Any:
        return await self._directed(keys[0], lambda line, asking: line.run(script, keys, args, asking=asking))

    async def run_id(self, key: str) -> str:
        return await self._line_to(self._slots.owner(slot_of(key))).run_id()

    def drop(self) -> None:
        for line in self._lines.values():  # which stay: one may be about to have a connection, closed the next time
            line.drop()

    async def _directed(self, key: str, command: Callable[[Line, bool], Awaitable[Any]]) -> Any:
        slot = slot_of(key)
        place, asking = self._slots.owner(slot), False
        for _ in range(_MOST_TRIES):
            try:
                return await command(self._line_to(place), asking)
            except Refusal as refusal:
                match refusal.code:
                    case "MOVED":
                        place, asking = _named(refusal, place), False
                        self._slots.moved(slot, place)
                    case "ASK":
                        place, asking = _named(refusal, place), True
                    case "TRYAGAIN":
                        await asyncio.sleep(_TRY_AGAIN_S)
                        place, asking = self._slots.owner(slot), False
                    case "CLUSTERDOWN":
                        raise Unreachable(str(refusal)) from None
                    case _:
                        raise
        raise Refusal(f"TRYAGAIN slot {slot} is on its way from one node of the cluster to another")

    def _line_to(self, place: Place) -> Line:
        if place not in self._lines:
            self._lines[place] = Line(lambda: self._connect(place), answer_s=self._answer_s)
        return self._lines[place]


def _named(refusal: Refusal, asked: Place) -> Place:
    """`MOVED 3999 127.0.0.1:6381`; a host that is left out is the one that was asked."""
    host, colon, port = str(refusal).rpartition(" ")[2].rpartition(":")
    if not colon or not port.isdecimal():
        raise Unreachable(f"a redirection that names no node: {refusal}")
    return host or asked[0], int(port)
