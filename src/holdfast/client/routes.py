"""`hf.routes`: which patterns send jobs where, and setting some of them at run time, for all processes."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.client.heard_routes import HeardRoutes
from holdfast.client.operator import Operator
from holdfast.client.placing import Routing
from holdfast.core.routing import OPERATOR, Rule, by_weight, check_pattern, parse_rule
from holdfast.core.task import Registry
from holdfast.stores.route_rows import route_words, row_of


@dataclass(frozen=True, slots=True)
class RouteInfo:
    """A pattern over names of tasks, and where their jobs go."""

    pattern: str
    """As it was given; `*` stands for any characters."""
    queue: str | None
    """None: it says nothing of the queue."""
    priority: int | None
    """None: it says nothing of the priority."""
    said_by: str
    """Who says so: `operator`, `file …`, `variable …`, `argument …` or `code`."""
    matches: int
    """How many tasks of this app have such a name; other programs may have others."""


class Routes:
    """What is set here goes before all patterns of settings and code, in every process, until it is cleared.

    It decides where jobs go that are enqueued from then on: a producer takes it up within a second.
    """

    def __init__(self, operator: Operator, registry: Registry, routing: Routing, heard: HeardRoutes) -> None:
        self._operator = operator
        self._store = operator.store
        self._registry = registry
        self._routing = routing
        self._heard = heard

    async def list(self) -> list[RouteInfo]:
        """Those of operators, settings and code, in the order in which they are asked."""
        return [self._told(rule) for rule in (*by_weight(await self._store.routes()), *self._routing.patterns.rules)]

    def _told(self, rule: Rule) -> RouteInfo:
        matches = sum(rule.matches(task.name) for task in self._registry)
        return RouteInfo(rule.pattern, *row_of(rule.route), rule.origin, matches)

    async def set(
        self, pattern: str, *, queue: str | None = None, priority: int | str | None = None, by: str = ""
    ) -> RouteInfo:
        """Send the jobs of all tasks whose names match to a queue, give them a priority, or both, from now on.

        `*` stands for any characters. Of the patterns that are set here the most specific one wins. What is left out
        stays as it is: as it was set here for this very pattern before, or else not said by it. To take back one of
        the two, clear it and set the other. Answers with what is set for it from now on.

        `by` says who it was; it is the user of this process otherwise.
        """
        rule = parse_rule(pattern, OPERATOR, queue=queue, priority=priority)
        who = self._operator.named(by)
        only = [name for name, said in (("queue", queue), ("priority", priority)) if said is not None]
        own_queue, own_priority = row_of(rule.route)
        try:
            done = await self._store.set_route(pattern, queue=own_queue, priority=own_priority, by=who, only=only)
        finally:
            self._heard.forget()
        words = route_words(done.after) or {}
        self._operator.tell("route", pattern, ", ".join(f"{name} {said}" for name, said in words.items()), who)
        return self._told(rule if done.after is None else rule._replace(route=done.after))

    async def clear(self, pattern: str, *, by: str = "") -> bool:
        """What settings and code say holds again; False: nothing was set for this very pattern."""
        check_pattern(pattern)
        who = self._operator.named(by)
        try:
            before = (await self._store.set_route(pattern, queue=None, priority=None, by=who)).before
        finally:
            self._heard.forget()
        if before is None:
            return False
        self._operator.tell("route", pattern, "as settings and code say", who)
        return True

    async def look(self) -> bool:
        """Have `hf.placement` know what is set: asks the store, if nobody has within the last second.

        False: it does not answer, and what was known before holds. An enqueue does it by itself.
        """
        return await self._heard.look()
