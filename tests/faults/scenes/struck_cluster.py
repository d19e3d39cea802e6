"""Plays what becomes of nodes of a Redis Cluster, and of a queue's slot, at the moments of an announcement's way."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from tests.campaign.where import Where
from tests.faults.scenes import market
from tests.faults.scenes.blow import Blow, suffer, told_by_turns
from tests.faults.scenes.cast import Cast
from tests.faults.scenes.struck import Scene
from tests.faults.table.cells import Cell, Strike
from tests.history import Report
from tests.postgres.shared import own_directory
from tests.redis.cluster import RedisCluster, await_all, is_well
from tests.redis.fixtures import QUICK, chosen_server

from holdfast.local import LocalRedis

#: Of nearly all jobs of a scene.
_QUEUE = "default"
#: Less than the time after which the others take a node for dead.
_MOMENT_S = 0.3


async def play(cell: Cell, directory: Path) -> Report:
    with contextlib.ExitStack() as stack:

        def start(
            *,
            settings: Mapping[str, str] | None = None,
            binary: Path | None = None,
            sentinel: bool = False,
            port: int | None = None,
        ) -> LocalRedis:
            wanted = QUICK | dict(settings or {})
            server = LocalRedis(
                own_directory(), settings=wanted, binary=binary or chosen_server(), port=port, temporary=True
            )
            return stack.enter_context(server)

        cluster = await asyncio.to_thread(RedisCluster, start, replicated=_QUEUE)
        replace(Where.of(directory), redis=cluster.url).say(directory)
        async with Cast.at(directory) as cast:
            scene = Scene(cast, cell.moment, Strike.FAIL, "worker")
            await market.open_shop(cast)
            await suffer(scene, Blow(partial(_FAULTS[cell.strike], cluster)))
        market.each_sold_once(cast)
        told_by_turns(cast)
        return cast.judged()


async def _fail_over(cluster: RedisCluster, struck: asyncio.Event) -> None:
    await asyncio.to_thread(cluster.followed.kill)
    struck.set()
    await asyncio.to_thread(_await_successor, cluster)


async def _restart(cluster: RedisCluster, struck: asyncio.Event) -> None:
    await asyncio.to_thread(cluster.followed.kill)
    struck.set()
    await asyncio.sleep(_MOMENT_S)
    await asyncio.to_thread(cluster.followed.start)


async def _hand_over(cluster: RedisCluster, struck: asyncio.Event) -> None:
    await asyncio.to_thread(cluster.replica.ask, "CLUSTER", "FAILOVER")
    struck.set()
    await asyncio.to_thread(_await_successor, cluster)


async def _move(cluster: RedisCluster, struck: asyncio.Event) -> None:
    target = next(node for node in cluster.masters if node is not cluster.followed)
    end = await asyncio.to_thread(cluster.move, _QUEUE, cluster.followed, target)
    struck.set()
    await asyncio.sleep(_MOMENT_S)
    await asyncio.to_thread(end)


def _await_successor(cluster: RedisCluster) -> None:
    await_all(lambda: b"role:master" in cluster.replica.ask("INFO", "replication"), "the replica to take over")
    await_all(lambda: is_well(cluster.replica), "the cluster to be whole again")


_FAULTS: dict[str, Callable[[RedisCluster, asyncio.Event], Awaitable[None]]] = {
    "fail_over": _fail_over,
    "restart": _restart,
    "hand_over": _hand_over,
    "move": _move,
}
