"""`holdfast tenants`: how queues are shared between tenants, and what can be changed about it while everything runs."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import typer

from holdfast.cli.exits import Refused
from holdfast.cli.output import Column
from holdfast.cli.session import Session, command, noun

group = noun("Tenants: their shares; pause and resume them.")

NameArgument = Annotated[str, typer.Argument(metavar="TENANT", help="The tenant's name.")]


class _Tenant(NamedTuple):
    tenant: str
    weight: float
    paused: bool


_COLUMNS = (
    Column[_Tenant]("tenant", lambda each: each.tenant),
    Column[_Tenant]("weight", lambda each: each.weight),
    Column[_Tenant]("state", lambda each: "paused" if each.paused else "open"),
)


@command(group, "list")
async def list_tenants(session: Session) -> None:
    """List tenants for whom a weight was set, or who are paused.

    The weight of every other is 1. In a pipe, a line is: tenant, weight, state.

    \b
    holdfast tenants list
    """
    async with session.opened() as hf:
        weights, paused = await hf.tenants.weights(), await hf.tenants.paused()
    found = [_Tenant(name, weights.get(name, 1.0), name in paused) for name in sorted({*weights, *paused})]
    session.out.items(
        found,
        _COLUMNS,
        _Tenant._asdict,
        none="no tenant has a weight of its own, or is paused: `holdfast tenants weight` sets one",
    )


@command(group)
async def pause(session: Session, tenant: NameArgument) -> None:
    """Start nothing more of a tenant, in any queue and process.

    What runs goes on, and jobs may still be enqueued.

    \b
    holdfast tenants pause acme
    """
    async with session.opened() as hf:
        await hf.tenants.pause(tenant)
        is_known = bool(await hf.jobs.list(tenant=tenant, limit=1))
    session.out.done(f"tenant {tenant} is paused", {"tenant": tenant, "paused": True})
    if not is_known:
        session.out.note(f"note: tenant {tenant} has had no job yet")


@command(group)
async def resume(session: Session, tenant: NameArgument) -> None:
    """Start jobs of a paused tenant again, those that waited first.

    \b
    holdfast tenants resume acme
    """
    async with session.opened() as hf:
        await hf.tenants.resume(tenant)
    session.out.done(f"tenant {tenant} is open", {"tenant": tenant, "paused": False})


@command(group)
async def weight(
    session: Session,
    tenant: NameArgument,
    number: Annotated[float | None, typer.Argument(metavar="[NUMBER]", help="Its share; 1 is everybody's.")] = None,
    default: Annotated[bool, typer.Option("--default", help="Back to that of everybody.")] = False,
) -> None:
    """Change a tenant's share of the queues in which it has jobs.

    With weight 2 it gets two jobs for each one of another tenant, where both have jobs waiting. Jobs that wait already
    keep their places.

    \b
    holdfast tenants weight acme 2
    holdfast tenants weight acme --default
    """
    if (number is None) != default:
        raise Refused("give either a weight or --default", hint="`holdfast tenants weight acme 2`")
    async with session.opened() as hf:
        await hf.tenants.set_weight(tenant, number)
    now = 1.0 if number is None else number
    session.out.done(f"tenant {tenant} has weight {now:g}", {"tenant": tenant, "weight": now})
