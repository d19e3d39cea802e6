"""Connections that are given up while they are being made: whoever makes one must not leave it behind."""

from __future__ import annotations

import asyncio

from tests.integration.scene import scene

from holdfast.local import LocalRedis
from holdfast.transports.redis_streams import parse_address
from holdfast.transports.redis_streams.cluster_line import ClusterLine
from holdfast.transports.redis_streams.slots import Place, Range, Slots
from holdfast.transports.redis_streams.wire import Wire, connect


@scene
async def test_a_connection_to_a_node_that_comes_too_late_is_closed_with_the_others(own_redis: LocalRedis) -> None:
    """After each loss of a cluster in the middle of a connection, that one stayed open for ever."""
    address = parse_address(own_redis.url)
    begun, may_end = asyncio.Event(), asyncio.Event()
    made: list[Wire] = []

    async def connected(place: Place) -> Wire:
        begun.set()
        await may_end.wait()
        made.append(await connect(address, place))
        return made[-1]

    slots = Slots(address.hosts, connected)
    slots._ranges = [Range(0, 16_383, address.hosts[0])]
    line = ClusterLine(slots, connected, answer_s=10.0)
    asking = asyncio.ensure_future(line.ask("PING", key="x"))
    await begun.wait()
    line.drop()  # something went wrong on another line
    may_end.set()
    assert await asking == b"PONG"
    line.drop()
    assert [wire.is_open for wire in made] == [False]
