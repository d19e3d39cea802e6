"""promote and expire: jobs whose time has come become ready, those whose deadline has passed are cancelled."""

from __future__ import annotations

from holdfast.stores.base import Hint, Store
from holdfast.stores.health import StoreHealth
from holdfast.telemetry.events import JobsPromoted
from holdfast.telemetry.hub import Telemetry
from holdfast.upkeep.periodic import Periodic

_BATCH = 1000
_AT_MOST_S = 1.0


class Promoter(Periodic):
    """Sleeps until the next job is due, a new timer is heard of, or a second has passed."""

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
        if _BATCH in (expired, promotion.promoted):
            return 0.0
        if promotion.next_due_in_s is None:
            return _AT_MOST_S
        return min(_AT_MOST_S, promotion.next_due_in_s)

    def _on_hint(self, hint: Hint) -> None:
        if hint & Hint.TIMER and hint is not Hint.ANYTHING:
            self.wake()
