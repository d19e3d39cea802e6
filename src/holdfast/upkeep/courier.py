"""Tends the transport: what dead workers had read is for others, and one that knows nothing is told of ready work."""

from __future__ import annotations

from holdfast.client.dispatch import Dispatch
from holdfast.stores.base import Store
from holdfast.stores.health import StoreHealth
from holdfast.telemetry.hub import Telemetry
from holdfast.telemetry.transport_events import TransportFilled
from holdfast.upkeep.leader import Leader, Led

_EVERY_S = 1.0
#: Of one lane; the rest comes from the store when these are done.
_MOST = 10_000


class Courier(Led):
    """Once a second. Two at once announce the same jobs twice, and the store gives each of them to one worker."""

    def __init__(
        self, store: Store, dispatch: Dispatch, *, leader: Leader, telemetry: Telemetry, health: StoreHealth
    ) -> None:
        super().__init__(store, leader=leader, telemetry=telemetry, health=health)
        assert dispatch.store is not None
        self._transport = dispatch.transport
        self._ready = dispatch.store

    async def tick(self) -> float:
        if self._transport.is_up:
            upkeep = await self._transport.tend((await self.store.queue_settings()).keys())
            for queue in upkeep.unfilled:
                jobs = await self._ready.ready_jobs(queue, limit=_MOST)
                await self._transport.fill(queue, jobs)
                if jobs:
                    self.telemetry.emit(TransportFilled(queue, len(jobs)))
        return _EVERY_S
