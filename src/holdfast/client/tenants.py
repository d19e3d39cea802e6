"""`hf.tenants`: how a queue is shared between tenants, and who of them is paused."""

from __future__ import annotations

from holdfast.client.operator import Operator
from holdfast.core.names import check_name
from holdfast.core.tenancy import check_tenant_weight


class Tenants:
    """Tenants come into being by being named in an enqueue; their settings are shared by all processes."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self._store = operator.store

    async def weights(self) -> dict[str, float]:
        """Of all tenants for whom one was set; that of every other is 1."""
        return await self._store.tenant_weights()

    async def set_weight(self, tenant: str, weight: float | None, *, by: str = "") -> None:
        """Share of this tenant against others, wherever both have jobs waiting; None: 1, as for everybody.

        Jobs that wait already keep their places.
        """
        check_name("tenant", tenant)
        weight = None if weight is None else check_tenant_weight(weight)
        who = self._operator.named(by)
        await self._store.set_tenant_weight(tenant, weight, by=who)
        self._operator.tell("tenant", tenant, f"weight {1 if weight is None else weight:g}", who)

    async def paused(self) -> list[str]:
        """Tenants of whom nothing is started, by name."""
        return sorted((await self._store.rules()).paused_tenants)

    async def pause(self, tenant: str, *, by: str = "") -> None:
        """Nothing more of this tenant is started, in any queue; what runs goes on, and jobs may still be enqueued.

        Any name is accepted: a tenant comes into being by being named.
        """
        await self._set_paused(tenant, paused=True, by=by)

    async def resume(self, tenant: str, *, by: str = "") -> None:
        """Start its jobs again, those that waited first."""
        await self._set_paused(tenant, paused=False, by=by)

    async def _set_paused(self, tenant: str, *, paused: bool, by: str) -> None:
        check_name("tenant", tenant)
        who = self._operator.named(by)
        await self._store.set_paused(tenant=tenant, paused=paused, by=who)
        self._operator.tell("tenant", tenant, "paused" if paused else "resumed", who)
