"""Who leads, as a dictionary."""

from __future__ import annotations

from uuid import UUID

from holdfast.stores.base import Lead


class Leading:
    """role → (holder, term, until when)."""

    def __init__(self) -> None:
        self._roles: dict[str, tuple[UUID, int, float]] = {}

    def lead(self, role: str, asking: UUID, *, lease_s: float, now: float) -> Lead | None:
        holder, term, until = self._roles.get(role, (None, 0, now))
        if holder != asking and until > now:
            return None
        term += holder != asking
        self._roles[role] = (asking, term, now + lease_s)
        return Lead(term)

    def resign(self, role: str, asking: UUID, *, now: float) -> None:
        holder, term, until = self._roles.get(role, (None, 0, now))
        if holder == asking:
            self._roles[role] = (asking, term, min(until, now))
