"""unpark: jobs of a task that some worker did not know, for as long as this one, which knows it, is there."""

from __future__ import annotations

from holdfast.core.settlement import UNKNOWN_TASK
from holdfast.core.task import Registry
from holdfast.stores.base import Store
from holdfast.stores.health import StoreHealth
from holdfast.telemetry.hub import Telemetry
from holdfast.upkeep.periodic import Periodic

_EVERY_S = 2.0


class Unparker(Periodic):
    """Again and again, not only at the start: in a rolling deploy old workers go on parking new tasks."""

    def __init__(self, store: Store, registry: Registry, *, telemetry: Telemetry, health: StoreHealth) -> None:
        super().__init__(store, telemetry=telemetry, health=health)
        self._registry = registry

    async def tick(self) -> float:
        await self.store.unpark_jobs(reason=UNKNOWN_TASK, keys=self._registry.names())
        return _EVERY_S
