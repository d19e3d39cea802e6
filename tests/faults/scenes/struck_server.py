"""Plays what a PostgreSQL server, or the way to it, does to its clients, at the moments that matter to a job.

One app, producer and worker in this process, reaches the server through a proxy; the judge goes past it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.campaign.where import Where
from tests.faults.scenes import market
from tests.faults.scenes.actors import PRODUCER, act
from tests.faults.scenes.cast import Cast, impatient_server
from tests.faults.scenes.struck import Scene, working
from tests.faults.table.cells import Cell, Strike
from tests.faults.table.servers import IDLE, PRODUCING, RUNNING, STATEMENTS
from tests.faults.trial import PATIENCE_S
from tests.history import Report
from tests.proxies.postgres import PostgresProxy
from tests.proxies.traps import Fate

from holdfast.local import LocalPostgres
from holdfast.runtime.failpoints import armed, hits
from holdfast.stores.postgres import connections

#: Longer than that of other scenes: what is lost here is connections and answers, and each costs a moment.
LEASE_S = 2.0
#: So long an answer may take here. By default it is a minute.
ANSWER_S = 0.5
_AWHILE_S = 0.5


class Through(Cast):
    """The app goes through the proxy."""

    def __init__(self, directory: Path, proxy: PostgresProxy) -> None:
        self._proxy_url = proxy.url
        super().__init__(directory, lease_s=LEASE_S)
        self._gate.unlink()

    def address(self) -> str:
        return self._proxy_url


class Blow:
    """One fault, dealt once, in whatever loop; it heals by itself."""

    def __init__(self, fault: str, moment: str, cast: Cast, proxy: PostgresProxy, server: LocalPostgres) -> None:
        self._deal = _FAULTS[fault.partition(" ")[0]]
        self.word = fault.partition(" ")[2]
        self.statements = STATEMENTS[moment]
        self.cast = cast
        self.proxy = proxy
        self.server = server
        self.dealt = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    async def deal(self) -> None:
        """To its end, also where whoever comes by here does not wait for that: a claim has its deadline."""
        self._dealing = asyncio.create_task(self._deal_whole())
        await asyncio.shield(self._dealing)

    async def _deal_whole(self) -> None:
        await self._deal(self)
        self._loop.call_soon_threadsafe(self.dealt.set)

    def later(self, heal: Callable[[], object], after_s: float = _AWHILE_S) -> None:
        self._loop.call_soon_threadsafe(self._loop.call_later, after_s, heal)


async def play(cell: Cell, directory: Path, server: LocalPostgres) -> Report:
    with impatient_server(), _impatient_client():
        where = Where.of(directory)
        with PostgresProxy(where.url) as proxy:
            async with Through(directory, proxy) as cast:
                scene = Scene(cast, cell.moment, Strike.FAIL, "worker")
                await market.open_shop(cast)
                blow = Blow(cell.strike, cell.moment, cast, proxy, server)
                await _MOMENTS.get(cell.moment, _at_a_verb)(scene, blow)
                await asyncio.wait_for(blow.dealt.wait(), PATIENCE_S)
                async with working(cast):
                    await scene.rest()
        market.each_sold_once(cast)
        return cast.judged()


# ---------------------------------------------------------------- the moments


async def _idle(scene: Scene, blow: Blow) -> None:
    scene.cast.release()
    async with working(scene.cast):
        await market.stock(scene.cast)
        await scene.rest()
        await blow.deal()
        await act(scene.cast, PRODUCER, ())
        await scene.rest()


async def _producing(scene: Scene, blow: Blow) -> None:
    scene.cast.release()
    async with working(scene.cast):
        with armed("insert_jobs.begin", blow.deal, skip=2):
            await act(scene.cast, PRODUCER, ())
        await scene.rest()


async def _running(scene: Scene, blow: Blow) -> None:
    cast = scene.cast
    handles = [await cast.enqueue(task, 1) for task in (cast.hold, cast.hold_in_thread)]
    async with working(cast):
        await cast.started(len(handles))
        await blow.deal()
        cast.release()
        await scene.rest()


async def _at_a_verb(scene: Scene, blow: Blow) -> None:
    scene.cast.release()
    await market.stock(scene.cast)
    point = f"{_VERBS[scene.point]}.begin"
    with armed(point, blow.deal):
        async with working(scene.cast):
            await scene.rest()
            assert hits(point)


_VERBS = {"claiming": "claim_jobs", "settling": "settle_jobs", "beating": "renew_worker"}
_MOMENTS: dict[str, Callable[[Scene, Blow], Awaitable[None]]] = {
    IDLE: _idle,
    PRODUCING: _producing,
    RUNNING: _running,
}


# ---------------------------------------------------------------- the faults


async def _restart(blow: Blow) -> None:
    await asyncio.to_thread(blow.server.restart, blow.word)


async def _terminate(blow: Blow) -> None:
    await asyncio.to_thread(
        blow.cast.glance.query,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'holdfast %%'",
    )


async def _lose(blow: Blow) -> None:
    blow.proxy.arm(blow.statements, Fate.LOSE_ANSWER, times=3)


async def _abandon(blow: Blow) -> None:
    blow.proxy.arm(blow.statements, Fate.LOSE_REQUEST, times=3)


async def _hang(blow: Blow) -> None:
    blow.proxy.arm(blow.statements, Fate.HANG, times=2)


async def _refuse(blow: Blow) -> None:
    blow.proxy.arm(blow.statements, Fate.REFUSE, times=3, sqlstate=blow.word)


async def _turn_away(blow: Blow) -> None:
    blow.proxy.turn_away(blow.word)
    await asyncio.to_thread(blow.proxy.cut)
    blow.later(lambda: blow.proxy.turn_away(None))


async def _slow(blow: Blow) -> None:
    await asyncio.to_thread(blow.proxy.slow_down)


async def _delay(blow: Blow) -> None:
    blow.proxy.arm(".", Fate.HOLD_ANSWER, times=20, delay_s=0.1)


async def _freeze(blow: Blow) -> None:
    await asyncio.to_thread(blow.proxy.freeze)

    def thaw() -> None:
        blow.proxy.thaw()
        blow.proxy.cut()

    blow.later(thaw, after_s=LEASE_S)


_FAULTS: dict[str, Callable[[Blow], Awaitable[None]]] = {
    "restart": _restart,
    "terminate": _terminate,
    "lose": _lose,
    "abandon": _abandon,
    "hang": _hang,
    "refuse": _refuse,
    "turn_away": _turn_away,
    "slow": _slow,
    "delay": _delay,
    "freeze": _freeze,
}


@contextmanager
def _impatient_client() -> Iterator[None]:
    """A connection that does not answer is given up soon."""
    names = ("CONNECT_S", "ANSWER_S", "PROMPT_S")
    usual = {name: getattr(connections, name) for name in names}
    for name in names:
        setattr(connections, name, ANSWER_S)
    try:
        yield
    finally:
        for name, value in usual.items():
            setattr(connections, name, value)
