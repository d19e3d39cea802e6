"""The part of the contract that tells who leads, for reports. To lead, and to resign, is upkeep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from holdfast.stores.base import Lead


class LeadReports(Protocol):
    """Never used for decisions of the engine: whoever wants to lead asks for the lead."""

    async def leading(self, role: str) -> Lead | None:
        """The term under which somebody leads in a role now, by the store's clock; None: nobody does."""
        ...
