"""A process's way to the store: the part of the contract about flow control that processes use by themselves."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from holdfast.core.gates import Rules
from holdfast.core.routing import Rule
from holdfast.stores.flow import BreakerInfo, Served

if TYPE_CHECKING:
    from tests.simulation.server import Server

T = TypeVar("T")


class FlowWire:
    """Mixed into the wire."""

    if TYPE_CHECKING:
        _server: Server

        async def _ask(self, verb: str, execute: Callable[[], T]) -> T: ...

    async def serve_gates(self, *, limit: int) -> Served:
        return await self._ask("serve_gates", partial(self._server.serve_gates, limit=limit))

    async def rules(self) -> Rules:
        return await self._ask("rules", self._server.rules)

    async def breakers(self) -> list[BreakerInfo]:
        return await self._ask("breakers", self._server.breakers)

    async def routes(self) -> tuple[Rule, ...]:
        return await self._ask("routes", self._server.routes)
