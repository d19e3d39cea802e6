"""`holdfast tenants`: how queues are shared between tenants, and what can be changed about it while everything runs."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.exits import Refused
from holdfast.cli.output import Column
from holdfast.cli.session import Session, command, noun

group = noun("Tenants: their shares.")

Share = tuple[str, float]

_COLUMNS = (
    Column[Share]("tenant", lambda share: share[0]),
    Column[Share]("weight", lambda share: share[1]),
)


@command(group, "list")
async def list_tenants(session: Session) -> None:
    """List tenants for whom a weight was set.

    That of every other is 1. In a pipe, a line is: tenant, weight.

    \b
    holdfast tenants list
    """
    async with session.opened() as hf:
        found = sorted((await hf.tenants.weights()).items())
    session.out.items(
        found,
        _COLUMNS,
        lambda share: {"tenant": share[0], "weight": share[1]},
        none="no tenant has a weight of its own: `holdfast tenants weight` sets one",
    )


@command(group)
async def weight(
    session: Session,
    tenant: Annotated[str, typer.Argument(metavar="TENANT", help="The tenant's name.")],
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
