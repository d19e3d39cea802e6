"""Strikes in a seeded order, round after round; what each strike does is in the modules named after what is struck."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable

from tests.campaign.faults import KINDS, a_round
from tests.campaign.operators import Operators
from tests.campaign.record import Glance
from tests.campaign.redis_strikes import RedisStrikes
from tests.campaign.server_strikes import NetworkStrikes, ServerStrikes
from tests.campaign.strikes import ProcessStrikes

_STANDSTILL_S = 3.0


class Nemesis:
    """Seeded: the same seed strikes in the same order; when exactly, the machine decides."""

    def __init__(
        self,
        glance: Glance,
        rng: random.Random,
        *,
        processes: ProcessStrikes,
        operators: Operators,
        server: ServerStrikes | None = None,
        network: NetworkStrikes | None = None,
        redis: RedisStrikes | None = None,
        kinds: frozenset[str] = frozenset(KINDS),
    ) -> None:
        self._glance = glance
        self._rng = rng
        self._processes = processes
        self._network = network
        self._postgres = server is not None
        self._redis = redis
        self._kinds = kinds
        self._actions: dict[str, Callable[[], Awaitable[None]]] = {
            name: action
            for struck in (processes, operators, server, network, redis)
            if struck is not None
            for name, action in struck.actions().items()
        }
        self.strikes: Counter[str] = Counter()
        self.rounds = 0

    @property
    def strikes_per_round(self) -> int:
        return len(self._a_round())

    async def rage(
        self, *, pause_s: float, between: int, enough: Callable[[], bool], broken_off: Callable[[], bool]
    ) -> None:
        """Whole rounds until it is enough; `between` two strikes so many rows move, if they can."""
        while not (self.rounds and enough()) and not broken_off():
            strikes = self._a_round()
            self._rng.shuffle(strikes)
            for name in strikes:
                if broken_off():
                    break
                await self.strike(name, pause_s=pause_s, between=between)
            await self.settled()
            self.rounds += 1

    async def settled(self) -> None:
        """Until those strikes are over that take their time."""
        await self._processes.settled()
        if self._network is not None:
            await self._network.settled()
        if self._redis is not None:
            await self._redis.settled()

    async def strike(self, name: str, *, pause_s: float, between: int = 0) -> None:
        """One strike, after a pause in which something is done that can be struck."""
        await asyncio.sleep(self._rng.uniform(0.5, 1.5) * pause_s)
        await self._let_work(between)
        await self._actions[name]()
        self.strikes[name] += 1

    def _a_round(self) -> list[str]:
        return a_round(self._kinds, postgres=self._postgres, redis=self._redis is not None)

    async def _let_work(self, moves: int) -> None:
        """On a slow machine, too, it is busy workers that are struck."""
        if not moves:
            return
        deadline = time.monotonic() + _STANDSTILL_S
        wanted = self._glance.moves() + moves
        while self._glance.moves() < wanted and time.monotonic() < deadline:
            await asyncio.sleep(0.2)
