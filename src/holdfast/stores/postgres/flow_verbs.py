"""The verbs of flow control, and what is done after the commit of any verb: the part of the store that gates need."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from typing import TypeVar

from holdfast.core.breaker import BreakerFigures
from holdfast.core.errors import StoreUnavailable
from holdfast.core.gates import Place, Rules
from holdfast.core.job import JobId
from holdfast.core.rate import Pace
from holdfast.core.routing import MOST_AT_RUN_TIME, Rule
from holdfast.stores.base import Hint
from holdfast.stores.flow import BreakerInfo, Circumstances, GateInfo, Position, Served, SettingChange
from holdfast.stores.postgres import breakers, moving, routes, rules, serving
from holdfast.stores.postgres.engine import Engine
from holdfast.stores.postgres.gates import Gates
from holdfast.stores.postgres.transaction import Tx
from holdfast.stores.postgres.wakeups import Wakeups
from holdfast.stores.route_rows import rules_of_rows
from holdfast.stores.routes import Rerouted
from holdfast.stores.rule_rows import rules_of

T = TypeVar("T")


class FlowVerbs:
    """A part of `PostgresStore`."""

    _engine: Engine
    _gates: Gates
    _wakeups: Wakeups

    async def _do(self, verb: str, operation: Callable[[Tx], Awaitable[T]]) -> T:
        """A verb without a connection of its own. It waits for nobody's gates."""
        return await self._after(*await self._engine.transact(verb, self._engine.verbs, operation))

    async def _after(self, result: T, tx: Tx) -> T:
        """After the commit: queues that were drained may open, and those who wait for what was freed are let go."""
        await serving.look_after(self._engine, tx.freed)
        return await self._reopening(result, tx.drained)

    async def _reopening(self, result: T, drained: Collection[str]) -> T:
        """Whatever goes wrong here takes nothing back, and the next look at the gate opens it."""
        with contextlib.suppress(StoreUnavailable):
            if drained and await self._gates.reopen(drained):
                self._wakeups.tell(Hint.OPENED)
        return result

    # ------------------------------------------------------------ what operators say

    async def rules(self) -> Rules:
        return rules_of(map(tuple, await self._engine.query("rules.all")))

    async def set_limit(
        self, name: str, *, size: int | None, pace: Pace | None, by: str, only: Collection[str] | None = None
    ) -> tuple[int | None, Pace | None]:
        setting = partial(rules.set_limit, name=name, size=size, pace=pace, by=by, only=only)
        return await self._rule("set_limit", setting)

    async def set_paused(self, *, task: str | None = None, tenant: str | None = None, paused: bool, by: str) -> None:
        await self._rule("set_paused", partial(rules.set_paused, task=task, tenant=tenant, paused=paused, by=by))

    async def set_breaker(self, name: str, *, closed: bool, by: str) -> None:
        await self._rule("set_breaker", partial(rules.set_breaker, name=name, closed=closed, by=by))

    async def set_breaker_figures(
        self, name: str, figures: BreakerFigures, *, by: str, only: Collection[str] | None = None
    ) -> BreakerFigures:
        setting = partial(rules.set_breaker_figures, name=name, figures=figures, by=by, only=only)
        return await self._do("set_breaker_figures", setting)

    async def _rule(self, verb: str, operation: Callable[[Tx], Awaitable[T]]) -> T:
        """From the commit on it holds; and everybody who waits may be concerned."""
        result, _ = await self._engine.transact(verb, self._engine.verbs, operation)
        await serving.make_all_due(self._engine)
        self._wakeups.tell(Hint.TIMER)
        return result

    async def set_tenant_weight(self, tenant: str, weight: float | None, *, by: str = "") -> None:
        setting = partial(rules.set_tenant_weight, tenant=tenant, weight=weight, by=by)
        await self._do("set_tenant_weight", setting)

    async def routes(self) -> tuple[Rule, ...]:
        # On the way to the gates, which producers use anyway, and where nobody waits for a lock.
        return rules_of_rows(map(tuple, await self._engine.look("routes.all", MOST_AT_RUN_TIME)))

    async def set_route(
        self, pattern: str, *, queue: str | None, priority: int | None, by: str, only: Collection[str] | None = None
    ) -> Rerouted:
        setting = partial(routes.set_route, pattern=pattern, queue=queue, priority=priority, by=by, only=only)
        return await self._do("set_route", setting)

    async def setting_changes(self, *, limit: int, before: int | None = None) -> list[SettingChange]:
        return await self._engine.snapshot(partial(rules.setting_changes, limit=limit, before=before))

    # ------------------------------------------------------------ who waits

    async def serve_gates(self, *, limit: int) -> Served:
        return await serving.serve_gates(self._engine, limit=limit)

    async def gates(self, places: Sequence[Place] | None = None, *, limit: int = 500) -> list[GateInfo]:
        return await self._engine.snapshot(partial(moving.gates, places=places, limit=limit))

    async def breakers(self) -> list[BreakerInfo]:
        return await self._engine.snapshot(breakers.breakers)

    async def position(self, job_id: JobId) -> Position | None:
        return await self._engine.snapshot(partial(moving.position, job_id=job_id))

    async def circumstances(self, job_id: JobId) -> Circumstances | None:
        return await self._engine.snapshot(partial(moving.circumstances, job_id=job_id))

    async def move_jobs(self, job_ids: Sequence[JobId], *, queue: str | None, priority: int | None) -> int:
        if queue is not None:
            await moving.prepare(self._engine, job_ids, queue)
        return await self._do("move_jobs", partial(moving.move_jobs, job_ids=job_ids, queue=queue, priority=priority))
