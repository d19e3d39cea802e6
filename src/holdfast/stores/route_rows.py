"""Routes that are set at run time, as rows and back, and in the words of the record of changes; what somebody wrote
into the store by hand and makes no sense counts as not there. The same in every store."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from holdfast.core.errors import InvalidOptions
from holdfast.core.names import check_name
from holdfast.core.priority import parse_priority
from holdfast.core.routing import MOST_AT_RUN_TIME, OPERATOR, Route, Rule, check_pattern
from holdfast.core.unset import UNSET, Unset


def rules_of_rows(rows: Iterable[tuple[Any, ...]]) -> tuple[Rule, ...]:
    """From (pattern, queue, priority)."""
    found = []
    for pattern, queue, priority in rows:
        try:
            check_pattern(pattern)
        except InvalidOptions:
            continue
        if (route := route_of(queue, priority)) is not None:
            found.append(Rule(pattern, route, OPERATOR))
    return tuple(found)


def route_of(queue: Any, priority: Any) -> Route | None:
    """What a row says, as far as it makes sense; None: nothing."""
    queue, priority = _sensible_queue(queue), _sensible_priority(priority)
    return None if isinstance(queue, Unset) and isinstance(priority, Unset) else Route(queue=queue, priority=priority)


def _sensible_queue(queue: Any) -> str | Unset:
    try:
        return check_name("queue", queue)
    except InvalidOptions:
        return UNSET


def _sensible_priority(priority: Any) -> int | Unset:
    try:
        return parse_priority(priority) if isinstance(priority, int) else UNSET
    except InvalidOptions:
        return UNSET


def row_of(route: Route | None) -> tuple[str | None, int | None]:
    """Queue and priority; None where nothing is said of it."""
    if route is None:
        return None, None
    queue, priority = route.queue, route.priority
    return None if isinstance(queue, Unset) else queue, None if isinstance(priority, Unset) else int(priority)


def rerouted(
    before: Route | None, queue: str | None, priority: int | None, only: Collection[str] | None
) -> Route | None:
    """What is said after a change of all of it, or of a part."""
    if only is not None:
        old_queue, old_priority = row_of(before)
        queue = queue if "queue" in only else old_queue
        priority = priority if "priority" in only else old_priority
    return route_of(queue, priority)


def refuse_more(count: int) -> None:
    """Before a pattern is added to so many others."""
    if count >= MOST_AT_RUN_TIME:
        raise InvalidOptions(
            f"{count:,} patterns are set already, and every producer reads all of them: clear some, or put the route "
            "into the settings"
        )


def route_words(route: Route | None) -> dict[str, Any] | None:
    """None where nothing is said."""
    queue, priority = row_of(route)
    said = {"queue": queue, "priority": priority}
    return {name: value for name, value in said.items() if value is not None} or None
