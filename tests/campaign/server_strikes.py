"""What is done to the PostgreSQL server, and to the connections that lead to it through a proxy."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from tests.campaign.faults import RESTART
from tests.campaign.record import Glance
from tests.proxies.postgres import PostgresProxy
from tests.proxies.traps import Fate

from holdfast.local import LocalPostgres

_VERBS = r"\.insert_(new_)?jobs\(|\.claim_jobs\(|\.settle_jobs\(|^COMMIT|worker"


class ServerStrikes:
    """All that use the server feel them."""

    def __init__(self, server: LocalPostgres, glance: Glance, rng: random.Random) -> None:
        self._server = server
        self._glance = glance
        self._rng = rng

    def actions(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return {
            RESTART: lambda: asyncio.to_thread(self._server.restart, "immediate"),
            "restart the server in fast mode": lambda: asyncio.to_thread(self._server.restart, "fast"),
            "end connections": self._end_connections,
        }

    async def _end_connections(self) -> None:
        """Of whatever purpose, of whichever process."""
        self._glance.query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name LIKE 'holdfast %%' AND random() < ?",
            self._rng.choice((0.1, 0.5, 1.0)),
        )


class NetworkStrikes:
    """Those who go through the proxy feel them."""

    def __init__(self, proxy: PostgresProxy, rng: random.Random, *, lease_s: float) -> None:
        self._proxy = proxy
        self._rng = rng
        self._lease_s = lease_s
        self._slow: set[asyncio.Task[None]] = set()
        self.sprung = 0
        """Answers that were lost, held or left hanging."""

    def actions(self) -> dict[str, Callable[[], Awaitable[None]]]:
        fates = (Fate.LOSE_ANSWER, Fate.LOSE_REQUEST, Fate.ABANDON)
        later = self._in_background
        return {
            "lose answers": lambda: later(self._trap(_VERBS, self._rng.choice(fates), times=6)),
            "lose the answers to COMMIT": lambda: later(self._trap("^COMMIT", Fate.LOSE_ANSWER, times=4)),
            "leave answers hanging": lambda: later(self._trap(_VERBS, Fate.HANG, times=2)),
            "slow answers down": lambda: later(self._trap(_VERBS, Fate.HOLD_ANSWER, times=200, delay_s=0.2)),
            "cut connections": self._cut,
            "freeze connections": lambda: later(self._freeze()),
            "refuse connections": lambda: later(self._refuse()),
        }

    async def settled(self) -> None:
        """Until those are over that take their time."""
        await asyncio.gather(*self._slow)

    async def _in_background(self, strike: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(strike)
        self._slow.add(task)
        task.add_done_callback(self._slow.discard)

    async def _trap(self, pattern: str, fate: Fate, *, times: int, delay_s: float | None = None) -> None:
        seed = self._rng.randrange(1_000_000)
        trap = self._proxy.arm(pattern, fate, times=times, probability=0.5, seed=seed, delay_s=delay_s)
        await asyncio.sleep(self._rng.uniform(0.3, 1.5))
        self._proxy.remove(trap)
        self.sprung += trap.sprung

    async def _cut(self) -> None:
        await asyncio.to_thread(self._proxy.cut, reset=self._rng.random() < 0.5)

    async def _freeze(self) -> None:
        """Half-open: sometimes for longer than a lease lasts."""
        await asyncio.to_thread(self._proxy.freeze)
        try:
            await asyncio.sleep(self._rng.uniform(0.2, 1.3) * self._lease_s)
        finally:
            await asyncio.to_thread(self._proxy.thaw)

    async def _refuse(self) -> None:
        await asyncio.to_thread(self._proxy.refuse)
        try:
            await self._cut()
            await asyncio.sleep(self._rng.uniform(0.2, 1.0))
        finally:
            await asyncio.to_thread(self._proxy.admit)
