"""`holdfast breakers`: circuit breakers, and opening and closing them by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from holdfast.app import Holdfast
from holdfast.cli.fields import breaker_fields
from holdfast.cli.output import Column
from holdfast.cli.session import Session, command, noun
from holdfast.stores.flow import BreakerInfo

group = noun("Circuit breakers: whether they let jobs through; open and close them.")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The breaker's name.")]


def _until(breaker: BreakerInfo) -> object:
    if breaker.state.held:
        return "an operator closes it"
    until = breaker.state.open_until
    return None if until is None else datetime.fromtimestamp(until, UTC)


_COLUMNS = (
    Column[BreakerInfo]("breaker", lambda breaker: breaker.name),
    Column[BreakerInfo]("phase", lambda breaker: breaker.phase.value),
    Column[BreakerInfo]("waiting", lambda breaker: breaker.waiting, rank=1),
    Column[BreakerInfo]("failures", lambda breaker: len(breaker.state.recent), rank=2),
    Column[BreakerInfo]("until", _until, rank=3),
)


@command(group, "list")
async def list_breakers(session: Session) -> None:
    """List circuit breakers.

    Those that have failed or were touched, and, with an app, those that its tasks declare. The phase is closed (jobs
    pass), open (they wait) or half_open (one at a time is let through, to try). In a pipe, a line is: breaker, phase,
    waiting, recent failures, open until.

    \b
    holdfast breakers list
    """
    async with session.opened() as hf:
        found = await hf.breakers.list()
    session.out.items(found, _COLUMNS, breaker_fields, none="no breaker has ever failed, and none is declared")


@command(group, "open")
async def open_breaker(session: Session, name: NameArgument) -> None:
    """Hold a breaker open: nothing more that passes it is started.

    Until somebody closes it. What runs goes on; what waits uses neither attempts nor workers.

    \b
    holdfast breakers open stripe
    """
    async with session.opened() as hf:
        is_known = await _is_known(hf, name)
        await hf.breakers.open(name)
    session.out.done(f"breaker {name} is held open", {"name": name, "phase": "open", "held": True})
    if not is_known:
        session.out.note(f"note: no breaker called {name} has failed yet, or is declared by the app")


@command(group, "close")
async def close_breaker(session: Session, name: NameArgument) -> None:
    """Close a breaker, as if it had never failed: its jobs run again.

    \b
    holdfast breakers close stripe
    """
    async with session.opened() as hf:
        is_known = await _is_known(hf, name)
        await hf.breakers.close(name)
    session.out.done(f"breaker {name} is closed", {"name": name, "phase": "closed", "held": False})
    if not is_known:
        session.out.note(f"note: no breaker called {name} has failed yet, or is declared by the app")


async def _is_known(hf: Holdfast, name: str) -> bool:
    return name in {each.name for each in await hf.breakers.list()}
