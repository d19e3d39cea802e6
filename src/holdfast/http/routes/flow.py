"""What holds jobs back: limits and rates, circuit breakers, paused tasks and tenants; and what tenants share."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import Path, Response
from pydantic import Field

from holdfast.core.api_key import Scope
from holdfast.core.breaker import Phase
from holdfast.core.errors import InvalidOptions
from holdfast.core.rate import parse_pace
from holdfast.core.tenancy import HEAVIEST, LIGHTEST
from holdfast.http.bodies import FiguresBody, LimitBody, NamePath, TaskPath
from holdfast.http.body import Body
from holdfast.http.call import Called
from holdfast.http.caller import Reach
from holdfast.http.problem import Problem
from holdfast.http.problems import INVALID_REQUEST, NOT_SET
from holdfast.http.route_table import Routes, Takes
from holdfast.http.views import View

routes = Routes("flow control")

LimitPath = Annotated[
    str,
    Path(
        min_length=1,
        max_length=200,
        pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069/]+$",
        description="Its own name, or `task:NAME`, or `queue:NAME`.",
    ),
]


class LimitView(View):
    """One limit, or one key of it."""

    name: str
    kind: Literal["concurrency", "rate"]
    key: str | None
    size: int | None
    rate: str | None
    burst: int | None
    held: int
    waiting: int
    said_by: str
    next_at: datetime | None
    in_force: bool = Field(description="False: it was set for what the code calls so, and is of the other kind.")


class LimitsView(View):
    """All limits and rates, by name and key."""

    limits: list[LimitView]


class BreakerView(View):
    """A circuit breaker."""

    name: str
    phase: Phase
    held: bool
    open_until: datetime | None
    recent_failures: int
    waiting: int
    failures: int | None = Field(description="So many open it, as far as that is known here; so it is below.")
    window_s: float | None
    open_for_s: float | None
    said_by: str


class BreakersView(View):
    """All breakers, by name."""

    breakers: list[BreakerView]


class TenantView(View):
    """A tenant for whom something was set."""

    name: str
    weight: float
    paused: bool


class TenantsView(View):
    """Those for whom something was set; the weight of every other is 1."""

    tenants: list[TenantView]


class TenantWeightBody(Body):
    """Another share."""

    weight: Annotated[float, Field(ge=LIGHTEST, le=HEAVIEST, allow_inf_nan=False, strict=True)]


@routes.get("/limits", reach=Reach.CLUSTER)
async def list_limits(call: Called) -> LimitsView:
    """Those that are in use, set at run time, or declared by tasks of this app."""
    found = await call.hf.limits.list()
    return LimitsView(limits=[LimitView.model_validate(each, from_attributes=True) for each in found])


@routes.add("PUT", "/limits/{name}", scope=Scope.OPERATE, reach=Reach.CLUSTER, takes=Takes.ONE, status=204)
async def set_limit(call: Called, name: LimitPath, body: LimitBody) -> Response:
    """Another size or pace, for all keys of a limit; it goes before what the code says, and has to be of its kind."""
    _check_rate(body)
    await call.hf.limits.set(name, size=body.size, rate=body.rate, burst=body.burst, by=call.caller.name)
    return Response(status_code=204)


def _check_rate(body: LimitBody) -> None:
    """The library says what is wrong; the field is for programs."""
    if body.rate is None:
        return
    try:
        parse_pace(body.rate, burst=body.burst)
    except InvalidOptions as error:
        raise Problem(INVALID_REQUEST, str(error), field="rate") from None


@routes.add("DELETE", "/limits/{name}", scope=Scope.OPERATE, reach=Reach.CLUSTER, status=204, problems=(NOT_SET,))
async def clear_limit(call: Called, name: LimitPath) -> Response:
    """What the code says holds again."""
    if not await call.hf.limits.clear(name, by=call.caller.name):
        raise Problem(NOT_SET, f"nothing is set for limit {name!r}")
    return Response(status_code=204)


@routes.get("/breakers", reach=Reach.CLUSTER)
async def list_breakers(call: Called) -> BreakersView:
    """Those that have failed, that somebody has touched, or that tasks of this app declare."""
    views = []
    for each in await call.hf.breakers.list():
        until = each.state.open_until
        views.append(
            BreakerView(
                name=each.name,
                phase=each.phase,
                held=each.state.held,
                open_until=None if until is None else datetime.fromtimestamp(until, UTC),
                recent_failures=len(each.state.recent),
                waiting=each.waiting,
                **each.figures._asdict(),
                said_by=each.said_by,
            )
        )
    return BreakersView(breakers=views)


@routes.post("/breakers/{name}/open", reach=Reach.CLUSTER, status=204)
async def open_breaker(call: Called, name: NamePath) -> Response:
    """Start nothing more that passes it, until somebody closes it."""
    await call.hf.breakers.open(name, by=call.caller.name)
    return Response(status_code=204)


@routes.post("/breakers/{name}/close", reach=Reach.CLUSTER, status=204)
async def close_breaker(call: Called, name: NamePath) -> Response:
    """Let everybody through, as if it had never failed."""
    await call.hf.breakers.close(name, by=call.caller.name)
    return Response(status_code=204)


@routes.add("PATCH", "/breakers/{name}/figures", scope=Scope.OPERATE, reach=Reach.CLUSTER, takes=Takes.ONE, status=204)
async def patch_figures(call: Called, name: NamePath, body: FiguresBody) -> Response:
    """Change how it counts, from the next run on; what is left out stays. It goes before what the code says."""
    options = {"failures": "failures", "window_s": "window", "open_for_s": "open_for"}
    given: dict[str, Any] = {options[field]: getattr(body, field) for field in body.model_fields_set}
    await call.hf.breakers.set(name, **given, by=call.caller.name)
    return Response(status_code=204)


@routes.add(
    "DELETE", "/breakers/{name}/figures", scope=Scope.OPERATE, reach=Reach.CLUSTER, status=204, problems=(NOT_SET,)
)
async def clear_figures(call: Called, name: NamePath) -> Response:
    """What the code says of how it counts holds again."""
    if not await call.hf.breakers.clear(name, by=call.caller.name):
        raise Problem(NOT_SET, f"nothing is set for breaker {name!r}")
    return Response(status_code=204)


@routes.get("/tenants", reach=Reach.CLUSTER)
async def list_tenants(call: Called) -> TenantsView:
    """Tenants for whom a weight was set, or who are paused."""
    weights, paused = await call.hf.tenants.weights(), await call.hf.tenants.paused()
    names = sorted({*weights, *paused})
    return TenantsView(
        tenants=[TenantView(name=name, weight=weights.get(name, 1.0), paused=name in paused) for name in names]
    )


@routes.add("PUT", "/tenants/{name}/weight", scope=Scope.OPERATE, reach=Reach.CLUSTER, takes=Takes.ONE, status=204)
async def set_tenant_weight(call: Called, name: NamePath, body: TenantWeightBody) -> Response:
    """Its share against other tenants, wherever both have jobs waiting."""
    await call.hf.tenants.set_weight(name, body.weight, by=call.caller.name)
    return Response(status_code=204)


@routes.add("DELETE", "/tenants/{name}/weight", scope=Scope.OPERATE, reach=Reach.CLUSTER, status=204)
async def clear_tenant_weight(call: Called, name: NamePath) -> Response:
    """Back to 1, as everybody has."""
    await call.hf.tenants.set_weight(name, None, by=call.caller.name)
    return Response(status_code=204)


@routes.post("/tenants/{name}/pause", reach=Reach.CLUSTER, status=204)
async def pause_tenant(call: Called, name: NamePath) -> Response:
    """Start nothing more of it, in any queue."""
    await call.hf.tenants.pause(name, by=call.caller.name)
    return Response(status_code=204)


@routes.post("/tenants/{name}/resume", reach=Reach.CLUSTER, status=204)
async def resume_tenant(call: Called, name: NamePath) -> Response:
    """Start its jobs again."""
    await call.hf.tenants.resume(name, by=call.caller.name)
    return Response(status_code=204)


@routes.post("/tasks/{task}/pause", reach=Reach.CLUSTER, status=204)
async def pause_task(call: Called, task: TaskPath) -> Response:
    """Start nothing more of it, in any process."""
    await call.hf.tasks.pause(task, by=call.caller.name)
    return Response(status_code=204)


@routes.post("/tasks/{task}/resume", reach=Reach.CLUSTER, status=204)
async def resume_task(call: Called, task: TaskPath) -> Response:
    """Start its jobs again."""
    await call.hf.tasks.resume(task, by=call.caller.name)
    return Response(status_code=204)
