"""Plays what a Redis, or the way to it, does to its clients, at the moments of an announcement's way.

One app, producer and worker in this process, reaches Redis through a proxy. Enqueues go on throughout, and each of them
has to be accepted at once.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from tests.campaign.where import Where
from tests.faults.scenes import market
from tests.faults.scenes.actors import PRODUCER, act
from tests.faults.scenes.cast import Cast
from tests.faults.scenes.struck import Scene, working
from tests.faults.table.cells import Cell, Strike
from tests.faults.table.redis import IDLE, POINTS
from tests.faults.trial import PATIENCE_S
from tests.history import Report
from tests.postgres.shared import own_directory
from tests.proxies.redis import RedisProxy
from tests.redis.fixtures import QUICK, chosen_server

from holdfast.local import LocalRedis
from holdfast.runtime.failpoints import armed
from holdfast.telemetry.transport_events import TransportDown, TransportUp

_AWHILE_S = 0.7
#: What an app that is not hindered takes for an enqueue, many times over.
_PROMPT_S = 5.0


class Blow:
    """One fault, dealt once; it heals by itself after a while."""

    def __init__(self, fault: str, redis: LocalRedis, replica: LocalRedis | None, proxy: RedisProxy) -> None:
        self._deal = _FAULTS[fault.partition(" ")[0]]
        self.word = fault.partition(" ")[2]
        self.redis = redis
        self.replica = replica
        self.proxy = proxy
        self._healing: asyncio.Task[None] | None = None

    async def fall_behind(self) -> None:
        """A replica hears nothing of its master from now on."""
        if self.replica is not None:
            await asyncio.to_thread(self.replica.ask, "REPLICAOF", "NO", "ONE")

    async def deal(self) -> None:
        """Returns when it has struck; whoever came by here goes on into it."""
        if self._healing is None:
            struck = asyncio.Event()
            self._healing = asyncio.create_task(self._deal(self, struck))
            await struck.wait()

    async def healed(self) -> None:
        assert self._healing is not None, "nobody has come by the moment"
        await asyncio.wait_for(asyncio.shield(self._healing), PATIENCE_S)


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
            await _suffer(scene, Blow(cell.strike, redis, replica, proxy))
        market.each_sold_once(cast)
        _told_by_turns(cast)
        return cast.judged()


async def _suffer(scene: Scene, blow: Blow) -> None:
    cast = scene.cast
    async with working(cast):
        if scene.point == IDLE:
            await market.stock(cast)
            await blow.fall_behind()
            await scene.rest()
            await blow.deal()
            await _produce(cast)
        else:
            with armed(POINTS[scene.point], blow.deal, skip=1):
                await market.stock(cast)
                await blow.fall_behind()
                await _produce(cast)
                await _produce(cast)
                await scene.rest()
        await blow.healed()
        await _produce(cast)
        await scene.rest()


async def _produce(cast: Cast) -> None:
    async with asyncio.timeout(_PROMPT_S):
        await act(cast, PRODUCER, ())


def _told_by_turns(cast: Cast) -> None:
    """One event per change, not a flood."""
    changes = [type(event) for event in cast.events if isinstance(event, TransportDown | TransportUp)]
    assert changes == [TransportDown, TransportUp] * (len(changes) // 2) + [TransportDown] * (len(changes) % 2)


# ---------------------------------------------------------------- the faults


async def _kill(blow: Blow, struck: asyncio.Event) -> None:
    await asyncio.to_thread(blow.redis.kill)
    struck.set()
    await asyncio.sleep(_AWHILE_S)
    await asyncio.to_thread(blow.redis.start)


async def _wipe(blow: Blow, struck: asyncio.Event) -> None:
    await asyncio.to_thread(blow.redis.wipe)
    struck.set()


async def _truncate(blow: Blow, struck: asyncio.Event) -> None:
    await asyncio.to_thread(blow.redis.lose_tail, 0.5)
    struck.set()


async def _flush(blow: Blow, struck: asyncio.Event) -> None:
    await asyncio.to_thread(blow.redis.ask, "FLUSHALL")
    struck.set()


async def _partition(blow: Blow, struck: asyncio.Event) -> None:
    blow.proxy.refuse()
    struck.set()
    await asyncio.sleep(_AWHILE_S)
    blow.proxy.admit()


async def _black_hole(blow: Blow, struck: asyncio.Event) -> None:
    blow.proxy.freeze()
    struck.set()
    await asyncio.sleep(2 * _AWHILE_S)
    blow.proxy.thaw()


async def _freeze(blow: Blow, struck: asyncio.Event) -> None:
    with blow.redis.frozen():
        struck.set()
        await asyncio.sleep(2 * _AWHILE_S)


async def _slow(blow: Blow, struck: asyncio.Event) -> None:
    blow.proxy.delay(float(blow.word))
    struck.set()
    await asyncio.sleep(2 * _AWHILE_S)
    blow.proxy.delay(0.0)


async def _answer(blow: Blow, struck: asyncio.Event) -> None:
    blow.proxy.answer(f"-{blow.word} as told")
    struck.set()
    await asyncio.sleep(_AWHILE_S)
    blow.proxy.answer(None)


async def _promote(blow: Blow, struck: asyncio.Event) -> None:
    assert blow.replica is not None
    await asyncio.to_thread(blow.redis.kill)
    blow.proxy.lead_to(blow.replica)
    struck.set()


async def _garbage(blow: Blow, struck: asyncio.Event) -> None:
    def spoil() -> None:
        for key in blow.redis.list_keys():
            if not key.endswith(":meta"):
                blow.redis.ask("XADD", key, "*", "foreign", "entry", "of", "somebody")
                blow.redis.ask("XADD", key, "*", "j", "neither an id nor nothing")

    await asyncio.to_thread(spoil)
    struck.set()


def _await_replica(replica: LocalRedis) -> None:
    while b"master_link_status:up" not in replica.ask("INFO", "replication"):
        pass


_FAULTS: dict[str, Callable[[Blow, asyncio.Event], Awaitable[None]]] = {
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
