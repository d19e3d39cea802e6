"""prune and sweep: what ended long ago is forgotten; what nothing else put right is put right."""

from __future__ import annotations

from holdfast.stores.base import Store
from holdfast.stores.health import StoreHealth
from holdfast.telemetry.events import JobsPruned, JobsSwept
from holdfast.telemetry.hub import Telemetry
from holdfast.upkeep.leader import Leader, Led

_BATCH = 500
_PRUNE_EVERY_S = 30.0
_SWEEP_EVERY_S = 10.0
_BREATH_S = 0.05
"""Between two full batches, so that pruning a mountain does not slow the claims."""


class Pruner(Led):
    """Forgets ended jobs after their retention; dead letters stay until a person decides.

    Two at once forget different jobs, each of them past its retention.
    """

    def __init__(
        self,
        store: Store,
        *,
        keep_succeeded_s: float,
        keep_cancelled_s: float,
        leader: Leader,
        telemetry: Telemetry,
        health: StoreHealth,
    ) -> None:
        super().__init__(store, leader=leader, telemetry=telemetry, health=health)
        self._keep_succeeded_s = keep_succeeded_s
        self._keep_cancelled_s = keep_cancelled_s

    async def tick(self) -> float:
        pruned = await self.store.prune_jobs(
            keep_succeeded_s=self._keep_succeeded_s, keep_cancelled_s=self._keep_cancelled_s, limit=_BATCH
        )
        if pruned:
            self.telemetry.emit(JobsPruned(pruned))
        return _BREATH_S if pruned >= _BATCH else _PRUNE_EVERY_S


class Sweeper(Led):
    """The net under everything else; says so when it caught something.

    Two at once put right different things: each is looked at again under its lock.
    """

    async def tick(self) -> float:
        swept = await self.store.sweep(limit=_BATCH)
        if any(swept):
            self.telemetry.emit(JobsSwept({name: count for name, count in swept._asdict().items() if count}))
        return _BREATH_S if swept.keys_dropped >= _BATCH else _SWEEP_EVERY_S
