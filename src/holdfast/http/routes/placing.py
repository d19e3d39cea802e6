"""Where jobs go by the names of their tasks: what operators set at run time, beside what settings and code say."""

from __future__ import annotations

from fastapi import Response
from pydantic import Field

from holdfast.core.api_key import Scope
from holdfast.http.bodies import PatternQuery, RouteBody
from holdfast.http.call import Called
from holdfast.http.caller import Reach
from holdfast.http.problem import Problem
from holdfast.http.problems import INVALID_REQUEST, NOT_SET
from holdfast.http.route_table import Routes, Takes
from holdfast.http.views import View

routes = Routes("routes")


class RouteView(View):
    """A pattern over names of tasks, and where their jobs go."""

    pattern: str
    queue: str | None = Field(description="Null: it says nothing of the queue.")
    priority: int | None = Field(description="Null: it says nothing of the priority.")
    said_by: str = Field(description="`operator`: set at run time. Else where the settings or the code have it.")
    matches: int = Field(description="How many tasks of this server's app have such a name.")


class RoutesView(View):
    """All routes, in the order in which they are asked."""

    routes: list[RouteView]


@routes.get("/routes", reach=Reach.CLUSTER)
async def list_routes(call: Called) -> RoutesView:
    """Those of operators, then those of this server's settings and code; the first that says something decides it."""
    found = await call.hf.routes.list()
    return RoutesView(routes=[RouteView.model_validate(each, from_attributes=True) for each in found])


# The pattern is no part of the path: one that is `.` or `..` would be taken for a way through it.
@routes.add("PUT", "/routes", scope=Scope.OPERATE, reach=Reach.CLUSTER, takes=Takes.ONE, status=204)
async def set_route(call: Called, body: RouteBody) -> Response:
    """Send jobs elsewhere that are enqueued from now on, in all processes. It goes before settings, code and tasks."""
    await call.hf.routes.set(body.pattern, queue=body.queue, priority=body.priority, by=call.caller.name)
    return Response(status_code=204)


@routes.add("DELETE", "/routes", scope=Scope.OPERATE, reach=Reach.CLUSTER, status=204, problems=(NOT_SET,))
async def clear_route(call: Called, pattern: PatternQuery) -> Response:
    """What settings and code say holds again."""
    if len(call.request.query_params.getlist("pattern")) > 1:
        raise Problem(INVALID_REQUEST, "pattern: was given more than once; clear one at a time", field="pattern")
    if not await call.hf.routes.clear(pattern, by=call.caller.name):
        raise Problem(NOT_SET, f"nothing is set for pattern {pattern!r}")
    return Response(status_code=204)
