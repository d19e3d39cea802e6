"""The part of the contract about tenants: what operators set for them. How a lane is shared is `core.tenancy`."""

from __future__ import annotations

from typing import Protocol


class TenantStore(Protocol):
    """Settings of tenants, shared by all processes."""

    async def tenant_weights(self) -> dict[str, float]:
        """Of all tenants for whom one was set."""
        ...

    async def set_tenant_weight(self, tenant: str, weight: float | None, *, by: str = "") -> None:
        """For jobs that are given their place from now on; None: weight 1, as if it had never been set."""
        ...
