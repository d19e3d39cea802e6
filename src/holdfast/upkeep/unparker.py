"""unpark: jobs of a task that some worker did not know, for as long as this one, which knows it, is there.

All of them at once, for every worker that knows them. In a rolling deploy those that do not know them may be quicker,
and park them again; so it is done less and less often while there is always something to unpark. Meanwhile the fetcher
takes them from where they are, one by one.
"""

from __future__ import annotations

from holdfast.core.settlement import UNKNOWN_TASK
from holdfast.core.task import Registry
from holdfast.stores.base import Store
from holdfast.stores.health import StoreHealth
from holdfast.telemetry.hub import Telemetry
from holdfast.upkeep.periodic import Periodic

_EVERY_S = 2.0
_AT_LEAST_EVERY_S = 60.0


class Unparker(Periodic):
    """Again and again, not only at the start: in a rolling deploy old workers go on parking new tasks."""

    def __init__(self, store: Store, registry: Registry, *, telemetry: Telemetry, health: StoreHealth) -> None:
        super().__init__(store, telemetry=telemetry, health=health)
        self._registry = registry
        self._rest_s = _EVERY_S

    async def tick(self) -> float:
        unparked = await self.store.unpark_jobs(reason=UNKNOWN_TASK, keys=self._registry.names())
        self._rest_s = min(2 * self._rest_s, _AT_LEAST_EVERY_S) if unparked else _EVERY_S
        return self._rest_s
