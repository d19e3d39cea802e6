"""`hf.tenants`: how a queue is shared between tenants."""

from __future__ import annotations

from holdfast.core.names import check_name
from holdfast.core.tenancy import check_tenant_weight
from holdfast.stores.base import Store


class Tenants:
    """Tenants come into being by being named in an enqueue; their settings are shared by all processes."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def weights(self) -> dict[str, float]:
        """Of all tenants for whom one was set; that of every other is 1."""
        return await self._store.tenant_weights()

    async def set_weight(self, tenant: str, weight: float | None) -> None:
        """Share of this tenant against others, wherever both have jobs waiting; None: 1, as for everybody.

        Jobs that wait already keep their places.
        """
        check_name("tenant", tenant)
        await self._store.set_tenant_weight(tenant, None if weight is None else check_tenant_weight(weight))
