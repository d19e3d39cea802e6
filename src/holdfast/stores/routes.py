"""The part of the contract about routes that are set at run time: patterns over tasks' names, and where jobs go."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple, Protocol

from holdfast.core.routing import Route, Rule


class Rerouted(NamedTuple):
    """What was said for a pattern, and what is said now; None: nothing."""

    before: Route | None
    after: Route | None


class RouteStore(Protocol):
    """What operators say about where jobs go. Producers place jobs by it; the store itself does nothing with it."""

    async def routes(self) -> tuple[Rule, ...]:
        """All of them, in no order. What makes no sense counts as not there.

        Every producer asks once a second: it waits for nobody's lock, and never on the event loop.
        """
        ...

    async def set_route(
        self, pattern: str, *, queue: str | None, priority: int | None, by: str, only: Collection[str] | None = None
    ) -> Rerouted:
        """The whole of what is said for a pattern; both None: nothing any more.

        `only`: of `queue` and `priority` those that are said here; the other stays, whoever changes it meanwhile.
        InvalidOptions, where there are `MOST_AT_RUN_TIME` others already."""
        ...
