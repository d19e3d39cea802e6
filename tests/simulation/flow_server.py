"""The store's side of flow control: gates are looked after, and operators are heard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.model.letting_go import let_go

from holdfast.core.breaker import CLOSED
from holdfast.core.gates import Barrier, Rules
from holdfast.core.routing import OPERATOR, Rule
from holdfast.stores.flow import BreakerInfo, Served

if TYPE_CHECKING:
    from tests.model.model import Model

_PLENTY = 1000


class FlowServer:
    """Mixed into the server."""

    if TYPE_CHECKING:
        model: Model
        _touched: bool

    serves_at_once: bool
    """Whether whatever frees a slot gives it to the next one; else somebody has to look."""

    def serve_freed(self) -> None:
        if self.serves_at_once and let_go(self.model, limit=_PLENTY, only=frozenset({Barrier.LIMIT})).unparked:
            self._touched = True

    def serve_gates(self, *, limit: int) -> Served:
        served = let_go(self.model, limit=limit)
        self._touched = bool(served.unparked or served.moved)
        return served

    def rules(self) -> Rules:
        return self.model.flow.rules

    def routes(self) -> tuple[Rule, ...]:
        return tuple(Rule(pattern, route, OPERATOR) for pattern, route in self.model.flow.routes.items())

    def breakers(self) -> list[BreakerInfo]:
        flow, now = self.model.flow, self.model.now
        return [
            BreakerInfo(name, state, state.phase(now), 0)
            for name, state in sorted(flow.breakers.items())
            if state != CLOSED
        ]
