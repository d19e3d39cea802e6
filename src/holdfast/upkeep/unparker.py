"""unpark: jobs that a worker which does not know their task has parked, while one that does is at work.

A worker lifts the reason when it starts; this is for what is parked later, as in a rolling deployment.
"""

from __future__ import annotations

from holdfast.core.settlement import UNKNOWN_TASK
from holdfast.core.task import Registry
from holdfast.stores.base import Store
from holdfast.stores.health import StoreHealth
from holdfast.telemetry.hub import Telemetry
from holdfast.upkeep.periodic import Periodic

_EVERY_S = 5.0
"""A job may be parked again and again until the right worker gets it: not too often."""


class Unparker(Periodic):
    """Makes parked jobs ready whose task this app knows."""

    def __init__(self, store: Store, registry: Registry, *, telemetry: Telemetry, health: StoreHealth) -> None:
        super().__init__(store, telemetry=telemetry, health=health)
        self._registry = registry

    async def tick(self) -> float:
        await self.store.unpark_jobs(reason=UNKNOWN_TASK, keys=self._registry.names())
        return _EVERY_S
