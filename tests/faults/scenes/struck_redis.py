"""Plays what a Redis, or the way to it, does to its clients, at the moments of an announcement's way.

One app, producer and worker in this process, reaches Redis through a proxy.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.campaign.where import Where
from tests.faults.scenes import market
from tests.faults.scenes.blow import Blow, suffer, told_by_turns
from tests.faults.scenes.cast import Cast
from tests.faults.scenes.struck import Scene
from tests.faults.table.cells import Cell, Strike
from tests.history import Report
from tests.postgres.shared import own_directory
from tests.proxies.redis import RedisProxy
from tests.redis.fixtures import QUICK, chosen_server

from holdfast.local import LocalRedis

_AWHILE_S = 0.7


class Target(NamedTuple):
    """What there is to strike."""

    redis: LocalRedis
    replica: LocalRedis | None
    proxy: RedisProxy
    word: str = ""

    async def fall_behind(self) -> None:
        """A replica hears nothing of its master from now on."""
        if self.replica is not None:
            await asyncio.to_thread(self.replica.ask, "REPLICAOF", "NO", "ONE")


async def play(cell: Cell, directory: Path) -> Report:
    binary = chosen_server()
    with contextlib.ExitStack() as stack:
        redis = stack.enter_context(LocalRedis(own_directory(), settings=QUICK, binary=binary, temporary=True))
        replica = None
        if cell.strike == "promote":
            settings = QUICK | {"replicaof": f"127.0.0.1 {redis.port}", "masterauth": redis.password}
            replica = stack.enter_context(LocalRedis(own_directory(), settings=settings, binary=binary, temporary=True))
            await asyncio.to_thread(_await_replica, replica)
        proxy = stack.enter_context(RedisProxy(redis))
        replace(Where.of(directory), redis=proxy.url).say(directory)
        async with Cast.at(directory) as cast:
            scene = Scene(cast, cell.moment, Strike.FAIL, "worker")
            await market.open_shop(cast)
            fault, _, word = cell.strike.partition(" ")
            target = Target(redis, replica, proxy, word)
            await suffer(scene, Blow(partial(_FAULTS[fault], target), prepare=target.fall_behind))
        market.each_sold_once(cast)
        told_by_turns(cast)
        return cast.judged()


# ---------------------------------------------------------------- the faults


async def _kill(target: Target, struck: asyncio.Event) -> None:
    await asyncio.to_thread(target.redis.kill)
    struck.set()
    await asyncio.sleep(_AWHILE_S)
    await asyncio.to_thread(target.redis.start)


async def _wipe(target: Target, struck: asyncio.Event) -> None:
    await asyncio.to_thread(target.redis.wipe)
    struck.set()


async def _truncate(target: Target, struck: asyncio.Event) -> None:
    await asyncio.to_thread(target.redis.lose_tail, 0.5)
    struck.set()


async def _flush(target: Target, struck: asyncio.Event) -> None:
    await asyncio.to_thread(target.redis.ask, "FLUSHALL")
    struck.set()


async def _partition(target: Target, struck: asyncio.Event) -> None:
    target.proxy.refuse()
    struck.set()
    await asyncio.sleep(_AWHILE_S)
    target.proxy.admit()


async def _black_hole(target: Target, struck: asyncio.Event) -> None:
    target.proxy.freeze()
    struck.set()
    await asyncio.sleep(2 * _AWHILE_S)
    target.proxy.thaw()


async def _freeze(target: Target, struck: asyncio.Event) -> None:
    with target.redis.frozen():
        struck.set()
        await asyncio.sleep(2 * _AWHILE_S)


async def _slow(target: Target, struck: asyncio.Event) -> None:
    target.proxy.delay(float(target.word))
    struck.set()
    await asyncio.sleep(2 * _AWHILE_S)
    target.proxy.delay(0.0)


async def _answer(target: Target, struck: asyncio.Event) -> None:
    target.proxy.answer(f"-{target.word} as told")
    struck.set()
    await asyncio.sleep(_AWHILE_S)
    target.proxy.answer(None)


async def _promote(target: Target, struck: asyncio.Event) -> None:
    assert target.replica is not None
    await asyncio.to_thread(target.redis.kill)
    target.proxy.lead_to(target.replica)
    struck.set()


async def _garbage(target: Target, struck: asyncio.Event) -> None:
    def spoil() -> None:
        for key in target.redis.list_keys():
            if not key.endswith(":meta"):
                target.redis.ask("XADD", key, "*", "foreign", "entry", "of", "somebody")
                target.redis.ask("XADD", key, "*", "j", "neither an id nor nothing")

    await asyncio.to_thread(spoil)
    struck.set()


def _await_replica(replica: LocalRedis) -> None:
    while b"master_link_status:up" not in replica.ask("INFO", "replication"):
        pass


_FAULTS: dict[str, Callable[[Target, asyncio.Event], Awaitable[None]]] = {
    "kill": _kill,
    "wipe": _wipe,
    "truncate": _truncate,
    "flush": _flush,
    "partition": _partition,
    "black_hole": _black_hole,
    "freeze": _freeze,
    "slow": _slow,
    "answer": _answer,
    "promote": _promote,
    "garbage": _garbage,
}
