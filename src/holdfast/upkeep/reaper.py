"""reap: workers whose lease ran out are declared dead and their jobs returned. Needs no leader."""

from __future__ import annotations

from holdfast.core.clock_guard import ClockGuard
from holdfast.runtime.clock import Clock
from holdfast.stores.base import Store
from holdfast.stores.health import StoreHealth
from holdfast.telemetry.events import ClockDisagrees, WorkersReaped
from holdfast.telemetry.hub import Telemetry
from holdfast.upkeep.periodic import Periodic

_BATCH = 100
_LOOKS_PER_LEASE = 10
_AT_MOST_S = 1.0


class Reaper(Periodic):
    """Reaps nothing for one lease after the store's clock and ours disagreed (rule 10)."""

    def __init__(
        self, store: Store, *, lease_s: float, clock: Clock, telemetry: Telemetry, health: StoreHealth
    ) -> None:
        super().__init__(store, telemetry=telemetry, health=health)
        self._lease_s = lease_s
        self._clock = clock
        self._guard = ClockGuard()
        self._trusted = True

    async def tick(self) -> float:
        rest_s = min(_AT_MOST_S, self._lease_s / _LOOKS_PER_LEASE)
        now = await self.store.now()
        trusted = self._guard.observe(now, self._clock.monotonic(), lease_s=self._lease_s)
        if self._trusted and not trusted:
            self.telemetry.emit(ClockDisagrees(self._guard.difference_s))
        self._trusted = trusted
        if not trusted:
            return rest_s
        reaped = await self.store.reap_workers(limit=_BATCH, as_of=now)
        if reaped.workers or reaped.returned or reaped.ended:
            self.telemetry.emit(WorkersReaped(reaped.workers, reaped.returned + reaped.ended))
        return 0.0 if len(reaped.workers) == _BATCH else rest_s
