"""A loop that does one thing again and again, survives a store that is away, and never dies silently."""

from __future__ import annotations

from abc import abstractmethod

from holdfast.core.errors import StoreUnavailable
from holdfast.runtime.service import Service
from holdfast.stores.base import Store
from holdfast.stores.health import StoreHealth
from holdfast.telemetry.events import ServiceCrashed
from holdfast.telemetry.hub import Telemetry

_AFTER_A_BUG_S = 5.0
#: A worker that stops does not wait longer for an answer: whatever is asked here is asked again, by others.
_STOP_WITHIN_S = 2.0


class Periodic(Service):
    """Subclasses say what is done and how long to rest; several processes may do it at the same time."""

    def __init__(self, store: Store, *, telemetry: Telemetry, health: StoreHealth) -> None:
        super().__init__(stop_timeout_s=_STOP_WITHIN_S)
        self.store = store
        self.telemetry = telemetry
        self._health = health

    @abstractmethod
    async def tick(self) -> float:
        """Do it once; returns after how many seconds to do it again."""

    def off_duty_s(self) -> float:
        """How long to leave it undone, because somebody else does it; 0.0: do it now."""
        return 0.0

    async def run(self) -> None:
        rest_s = 0.0
        while await self.pause(rest_s):
            if rest_s := self.off_duty_s():
                continue
            try:
                rest_s = await self.tick()
                self._health.worked()
            except StoreUnavailable as error:
                rest_s = self._health.failed(error)
            except Exception as error:
                self.telemetry.emit(ServiceCrashed(self.name, f"{type(error).__name__}: {error}"))
                rest_s = _AFTER_A_BUG_S
