"""promote, expire, serve: jobs whose time has come become ready, those whose deadline has passed are cancelled, and
those who wait at gates are let go when they may pass."""

from __future__ import annotations

from holdfast.stores.base import Hint, Store
from holdfast.stores.health import StoreHealth
from holdfast.telemetry.events import JobsPromoted
from holdfast.telemetry.flow_events import JobsLetGo
from holdfast.telemetry.hub import Telemetry
from holdfast.upkeep.periodic import Periodic

_BATCH = 1000
_AT_MOST_S = 1.0
_AT_LEAST_S = 0.005  # between two looks at gates: a quick rate earns several tokens meanwhile


class Promoter(Periodic):
    """Sleeps until the next job or gate is due, a new timer is heard of, or a second has passed."""

    def __init__(self, store: Store, *, telemetry: Telemetry, health: StoreHealth) -> None:
        super().__init__(store, telemetry=telemetry, health=health)

    async def on_start(self) -> None:
        self._leave = self.store.subscribe(self._on_hint)

    async def on_stop(self) -> None:
        self._leave()

    async def tick(self) -> float:
        expired = await self.store.expire_jobs(limit=_BATCH)
        promotion = await self.store.promote_jobs(limit=_BATCH)
        if promotion.promoted:
            self.telemetry.emit(JobsPromoted(promotion.promoted))
        served = await self.store.serve_gates(limit=_BATCH)
        if served.unparked:
            self.telemetry.emit(JobsLetGo(served.unparked))
        if _BATCH in (expired, promotion.promoted):
            return 0.0
        rest_s = _AT_MOST_S
        if promotion.next_due_in_s is not None:
            rest_s = min(rest_s, promotion.next_due_in_s)
        if served.next_due_in_s is not None:
            done = served.unparked + served.moved < _BATCH
            rest_s = min(rest_s, max(served.next_due_in_s, _AT_LEAST_S) if done else 0.0)
        return rest_s

    def _on_hint(self, hint: Hint) -> None:
        if hint & Hint.TIMER and hint is not Hint.ANYTHING:
            self.wake()
