"""`holdfast routes`: where jobs go by the names of their tasks, and what can be set while everything runs."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any

import typer

from holdfast.cli.exits import Exit, Refused
from holdfast.cli.fields import route_fields
from holdfast.cli.output import Column
from holdfast.cli.queue_notes import note_on_way
from holdfast.cli.session import Session, command, noun
from holdfast.client.routes import RouteInfo
from holdfast.core.routing import OPERATOR, Rule, parse_rule

group = noun("Routes: where jobs go by the names of their tasks, and sending them elsewhere.")

PatternArgument = Annotated[
    str, typer.Argument(metavar="PATTERN", help="As in 'reports.*', in quotes; * stands for any characters.")
]


def _columns(tasks: Collection[str]) -> tuple[Column[RouteInfo], ...]:
    """Whether a pattern matches any task can be told where there are some."""
    return (
        Column[RouteInfo]("pattern", lambda route: route.pattern),
        Column[RouteInfo]("queue", lambda route: route.queue),
        Column[RouteInfo]("priority", lambda route: route.priority),
        Column[RouteInfo]("said by", lambda route: route.said_by, rank=1),
        Column[RouteInfo]("tasks", lambda route: _matched(route) if tasks else None, rank=2),
    )


def _matched(route: RouteInfo) -> object:
    return route.matches or "none of this app"


@command(group, "list")
async def list_routes(session: Session) -> None:
    """List patterns over names of tasks, in the order in which they are asked.

    Those that operators have set come first, the most specific before the others; then, with an app, those of its
    settings and code. Each of queue and priority comes from the first that says it; calls and routers go before all of
    them. With an app, the last column says how many of its tasks a pattern matches. In a pipe, a line is: pattern,
    queue, priority, said by, tasks.

    \b
    holdfast routes list
    holdfast routes list -A shop.jobs:hf --json | jq -r 'select(.matches == 0) | .pattern'
    """
    async with session.opened() as hf:
        found, tasks = await hf.routes.list(), hf.tasks.names()
    session.out.items(found, _columns(tasks), route_fields, none="no route is set, and settings and code have none")


@command(group, "set")
async def set_route(
    session: Session,
    pattern: PatternArgument,
    queue: Annotated[str | None, typer.Option("--queue", "-q", metavar="QUEUE", help="The queue they go to.")] = None,
    priority: Annotated[
        str | None,
        typer.Option("--priority", "-p", metavar="PRIORITY", help="critical, high, normal, low, bulk, or 0 to 9."),
    ] = None,
) -> None:
    """Send the jobs of all tasks whose names match to a queue, or give them a priority.

    It goes before settings, code and tasks, in all processes, until `routes clear`; what a call or a router says goes
    before it. It is for jobs that are enqueued from now on, which every producer heeds within a second; those that wait
    already are moved by `holdfast jobs move`. What is left out stays as it is. Of several patterns that are set, the
    most specific one wins.

    \b
    holdfast routes set 'reports.*' --queue slow --priority bulk
    holdfast routes set shop.charge --priority critical
    """
    if queue is None and priority is None:
        raise Refused("neither a queue nor a priority was given", hint="`--queue slow`, or `--priority bulk`")
    rule = parse_rule(pattern, OPERATOR, queue=queue, priority=priority)
    async with session.opened() as hf:
        note = None if queue is None else await note_on_way(hf, queue)
        now = await hf.routes.set(pattern, queue=queue, priority=priority)
        tasks = hf.tasks.names()
    said = [
        f"{name} {value}" for name, value in (("queue", now.queue), ("priority", now.priority)) if value is not None
    ]
    session.out.done(f"route {pattern}: {', '.join(said)}", _fields(pattern, now.queue, now.priority))
    if tasks and not _matches_any(rule, tasks):
        session.out.note(f"note: no task of this app is called {pattern}")
    if note is not None:
        session.out.note(note)


@command(group)
async def clear(session: Session, pattern: PatternArgument) -> Exit:
    """Let settings, code and tasks say again where jobs go.

    Those that were enqueued meanwhile stay where they are.

    \b
    holdfast routes clear 'reports.*'
    """
    async with session.opened() as hf:
        cleared = await hf.routes.clear(pattern)
    if not cleared:
        raise Refused(
            f"nothing is set for pattern {pattern!r}",
            hint="`holdfast routes list` shows who says what",
            code=Exit.MISSING,
        )
    session.out.done(f"route {pattern}: as settings and code say", _fields(pattern, None, None))
    return Exit.OK


def _fields(pattern: str, queue: str | None, priority: int | None) -> dict[str, Any]:
    return {"pattern": pattern, "queue": queue, "priority": priority}


def _matches_any(rule: Rule, tasks: Collection[str]) -> bool:
    return any(rule.matches(task) for task in tasks)
