"""Where one call's job goes: queue, priority and tenant, from the first level that says each.

The levels: the call's own options, the app's routers, patterns over the task's name (those of operators first), the
task's options. Where there are neither routers nor patterns nobody comes here, unless a task names its tenant.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from holdfast.core.errors import HoldfastError, InvalidOptions, RoutingFailed
from holdfast.core.names import check_name
from holdfast.core.options import TaskOptions
from holdfast.core.routing import Route, Rule, by_weight
from holdfast.core.unset import Unset

if TYPE_CHECKING:
    from holdfast.client.request import Request

_MOST_NAMES = 10_000  # of which it is remembered which patterns match


@dataclass(frozen=True, slots=True)
class RoutedCall:
    """What a router sees of a call: it is valid, and nothing is stored yet."""

    task: str
    """The task's name."""
    arguments: Mapping[str, Any]
    """The arguments by name, in the types that the task declares, with its defaults; of a task that is known by name
    only, those that were given by name, as they are."""
    args: tuple[Any, ...]
    """The arguments by place, as they were given."""
    tenant: str
    """On whose behalf; empty for nobody's."""
    metadata: Mapping[str, Any]
    """As it was given with the call."""
    tags: tuple[str, ...]
    """As they were given with the call."""


Router: TypeAlias = Callable[[RoutedCall], Route | None]


class Said(NamedTuple):
    """A value, and who said it."""

    value: Any
    by: str


class Placement(NamedTuple):
    """Where a job goes, and why."""

    queue: Said
    priority: Said
    tenant: Said


class Patterns:
    """Rules in the order in which they are asked, and which of them concern a task."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self.rules = by_weight(rules)
        self._matching: dict[str, tuple[Rule, ...]] = {}

    def matching(self, task: str) -> tuple[Rule, ...]:
        """Those that match its name, the most specific first."""
        if not self.rules:
            return ()
        found = self._matching.get(task)
        if found is None:
            if len(self._matching) >= _MOST_NAMES:
                self._matching.clear()
            found = self._matching[task] = tuple(rule for rule in self.rules if rule.matches(task))
        return found


NO_PATTERNS: Final = Patterns()


class Routing:
    """An app's routers and patterns."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._given = tuple(rules)
        self._added: list[Rule] = []
        self._routers: list[Router] = []
        self.patterns = Patterns(self._given)
        """Of settings and code."""
        self.in_use = bool(self._given)

    def add_rule(self, rule: Rule) -> None:
        """A pattern from code; the same pattern in the settings goes before it."""
        if any(rule.pattern == each.pattern for each in self._added):
            raise InvalidOptions(f"route {rule.pattern!r}: was given before; one pattern has one route")
        self._added.append(rule)
        self.patterns, self.in_use = Patterns((*self._given, *self._added)), True

    def add_router(self, router: Router) -> None:
        """Routers are asked in the order in which they were added; the first that answers decides."""
        if not callable(router) or inspect.iscoroutinefunction(router):
            raise InvalidOptions(
                f"@router needs a plain function of the call (def), not {router!r:.80}: it is asked at every enqueue, "
                "and must not wait"
            )
        self._routers.append(router)
        self.in_use = True

    def place(self, request: Request, task: TaskOptions, operators: Patterns = NO_PATTERNS) -> Placement:
        """Ask level by level. RoutingFailed names the router, or the tenant's function, that is at fault.

        `operators`: what they have set at run time, however specific what settings and code say may be.
        """
        options, said_by = request.options, task.said_by
        tenant = _tenant(request, task)
        queue = None if isinstance(options.queue, Unset) else Said(options.queue, "the call")
        priority = None if isinstance(options.priority, Unset) else Said(options.priority, "the call")
        if (queue is None or priority is None) and self._routers:
            queue, priority = self._ask(request, tenant.value, queue, priority)
        if queue is None or priority is None:
            for rule in (*operators.matching(request.task), *self.patterns.matching(request.task)):
                queue, priority = _filled(queue, priority, rule.route, f"pattern {rule.pattern!r} ({rule.origin})")
        return Placement(
            queue or Said(task.queue, said_by.get("queue", "built in")),
            priority or Said(task.priority, said_by.get("priority", "built in")),
            tenant,
        )

    def _ask(self, request: Request, tenant: str, queue: Said | None, priority: Said | None) -> _Filled:
        options = request.options
        metadata = options.metadata or {}
        call = RoutedCall(request.task, _arguments(request), tuple(request.args), tenant, metadata, options.tags)
        for router in self._routers:
            name = _name(router)
            try:
                route = router(call)
            except Exception as error:
                raise _failed(f"router {name}", request.task, error) from error
            if route is None:
                continue
            if not isinstance(route, Route):
                raise RoutingFailed(
                    f"router {name} answered for task {request.task} with {route!r:.80}: it has to be a Route(…), or "
                    "None to leave it to others; nothing was enqueued"
                )
            return _filled(queue, priority, route, f"router {name}")
        return queue, priority


_Filled: TypeAlias = tuple[Said | None, Said | None]


def _filled(queue: Said | None, priority: Said | None, route: Route, by: str) -> _Filled:
    """What no level before has said, as this one says it."""
    if queue is None and not isinstance(route.queue, Unset):
        queue = Said(route.queue, by)
    if priority is None and not isinstance(route.priority, Unset):
        priority = Said(route.priority, by)
    return queue, priority


def _tenant(request: Request, task: TaskOptions) -> Said:
    if not isinstance(request.options.tenant, Unset):
        return Said(request.options.tenant, "the call")
    said, by = task.tenant, task.said_by.get("tenant", "built in")
    if isinstance(said, str):
        return Said(said, by)
    try:
        value = said(**_arguments(request))
        return Said(check_name("tenant", value) if value not in ("", None) else "", by)
    except Exception as error:
        raise _failed("tenant=", request.task, error) from error


def _arguments(request: Request) -> Mapping[str, Any]:
    if request.signature is None:
        return request.kwargs
    return request.signature.by_name(request.args, request.kwargs)


def _failed(what: str, task: str, error: Exception) -> RoutingFailed:
    said = str(error) if isinstance(error, HoldfastError) else f"{type(error).__name__}: {error}"
    return RoutingFailed(f"{what} failed for task {task}: {said}; nothing was enqueued")


def _name(router: Router) -> str:
    name = getattr(router, "__qualname__", None)
    return repr(router)[:80] if name is None else f"{router.__module__}.{name}"
