"""The leader: one process at a time for what would be wasted work in all of them. Nothing needs one to be correct.

A lead is a lease by the store's clock. Here it is trusted by the monotonic clock, from before the request that
brought it: so it ends here before the store gives it to somebody else, also when this process was stopped in between.
The clocks of store and machine may still disagree, and work that has begun goes on when the lead ends: whatever is done
by a leader has to do no harm where two do it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from uuid import uuid4

from holdfast.core.errors import NotOpen, StoreError
from holdfast.runtime.clock import Clock
from holdfast.stores.base import Store
from holdfast.stores.health import StoreHealth
from holdfast.telemetry.events import LeadLost, LeadTaken
from holdfast.telemetry.hub import Telemetry
from holdfast.upkeep.periodic import Periodic

UPKEEP = "upkeep"
TRIES_PER_LEASE = 3
_RESIGN_S = 1.0
#: Whoever does not lead is woken when he does; this is only how long he sleeps at a time.
_OFF_DUTY_S = 60.0


class Leader(Periodic):
    """Tries to lead, three times per lease; prolongs while it does, and resigns when it stops."""

    def __init__(
        self,
        store: Store,
        *,
        role: str = UPKEEP,
        lease_s: float,
        clock: Clock,
        telemetry: Telemetry,
        health: StoreHealth,
    ) -> None:
        super().__init__(store, telemetry=telemetry, health=health)
        self.id = uuid4()
        self.term = 0
        self._role = role
        self._lease_s = lease_s
        self._clock = clock
        self._trusted_until_s = float("-inf")
        self._reported: int | None = None
        self._wakers: list[Callable[[], None]] = []

    @property
    def is_leader(self) -> bool:
        """Whether it can be trusted now that nobody else leads."""
        return self._clock.monotonic() < self._trusted_until_s

    def on_taken(self, wake: Callable[[], None]) -> None:
        """Call this whenever the lead is taken."""
        self._wakers.append(wake)

    async def tick(self) -> float:
        self._report()  # it may have run out
        asked_s = self._clock.monotonic()
        lead = await self.store.lead(self._role, self.id, lease_s=self._lease_s)
        if lead is None:
            self._trusted_until_s = float("-inf")
        else:
            self.term = lead.term
            self._trusted_until_s = asked_s + self._lease_s
        self._report()
        return max(0.0, asked_s + self._lease_s / TRIES_PER_LEASE - self._clock.monotonic())

    async def on_stop(self) -> None:
        if self.is_leader:
            self._trusted_until_s = float("-inf")
            with contextlib.suppress(StoreError, NotOpen, TimeoutError):  # then it runs out by itself
                async with asyncio.timeout(_RESIGN_S):
                    await self.store.resign(self._role, self.id)

    def _report(self) -> None:
        leads = self.term if self.is_leader else None
        if leads == self._reported:
            return
        if self._reported is not None:
            self.telemetry.emit(LeadLost(self._role, self._reported))
        self._reported = leads
        if leads is not None:
            self.telemetry.emit(LeadTaken(self._role, leads))
            for wake in self._wakers:
                wake()


class Led(Periodic):
    """Done only where this process leads, to save work; does no harm where two do it at the same time."""

    def __init__(self, store: Store, *, leader: Leader, telemetry: Telemetry, health: StoreHealth) -> None:
        super().__init__(store, telemetry=telemetry, health=health)
        self._leader = leader
        leader.on_taken(self.wake)

    def off_duty_s(self) -> float:
        return 0.0 if self._leader.is_leader else _OFF_DUTY_S
