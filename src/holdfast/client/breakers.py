"""`hf.breakers`: which circuit breakers there are and whether they let anybody through; open and close them by hand."""

from __future__ import annotations

from holdfast.client.operator import Operator
from holdfast.core.breaker import CLOSED, Phase
from holdfast.core.names import check_name
from holdfast.core.task import Registry
from holdfast.stores.flow import BreakerInfo


class Breakers:
    """A breaker is shared by all processes; it comes into being with its first failure."""

    def __init__(self, operator: Operator, registry: Registry) -> None:
        self._operator = operator
        self._store = operator.store
        self._registry = registry

    async def list(self) -> list[BreakerInfo]:
        """Those that have failed, that somebody has touched, or that tasks of this app declare; by name."""
        found = {each.name: each for each in await self._store.breakers()}
        for name in self.declared():
            found.setdefault(name, BreakerInfo(name, CLOSED, Phase.CLOSED, 0))
        return [found[name] for name in sorted(found)]

    def declared(self) -> set[str]:
        """Those of tasks of this app."""
        return {task.options.breaker.name for task in self._registry if task.options.breaker is not None}

    async def open(self, name: str, *, by: str = "") -> None:
        """Start nothing more that passes it, until somebody closes it; what runs goes on.

        Any name is accepted, also of a breaker that has not failed yet.
        """
        await self._set(name, closed=False, said="held open", by=by)

    async def close(self, name: str, *, by: str = "") -> None:
        """Let everybody through, as if it had never failed."""
        await self._set(name, closed=True, said="closed", by=by)

    async def _set(self, name: str, *, closed: bool, said: str, by: str) -> None:
        check_name("breaker", name)
        who = self._operator.named(by)
        await self._store.set_breaker(name, closed=closed, by=who)
        self._operator.tell("breaker", name, said, who)
