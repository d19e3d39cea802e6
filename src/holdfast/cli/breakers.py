"""`holdfast breakers`: circuit breakers; opening and closing them by hand, and how they count."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from holdfast.app import Holdfast
from holdfast.cli.exits import Exit, Refused
from holdfast.cli.fields import breaker_fields
from holdfast.cli.output import Column
from holdfast.cli.session import Session, command, noun
from holdfast.core.breaker import BreakerFigures
from holdfast.core.shown import counted
from holdfast.stores.flow import BreakerInfo

group = noun("Circuit breakers: whether they let jobs through, and how they count; open and close them.")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The breaker's name.")]


def _until(breaker: BreakerInfo) -> object:
    if breaker.state.held:
        return "an operator closes it"
    until = breaker.state.open_until
    return None if until is None else datetime.fromtimestamp(until, UTC)


def _opens(figures: BreakerFigures) -> str | None:
    """When and for how long, as far as it is known, which without an app is what operators have said."""
    said = [] if figures.failures is None else [f"at {counted(figures.failures, 'failure')}"]
    said += [] if figures.window_s is None else [f"within {figures.window_s:g}s"]
    said += [] if figures.open_for_s is None else [f"for {figures.open_for_s:g}s"]
    return " ".join(said) or None


_COLUMNS = (
    Column[BreakerInfo]("breaker", lambda breaker: breaker.name),
    Column[BreakerInfo]("phase", lambda breaker: breaker.phase.value),
    Column[BreakerInfo]("waiting", lambda breaker: breaker.waiting, rank=1),
    Column[BreakerInfo]("failures", lambda breaker: len(breaker.state.recent), rank=2),
    Column[BreakerInfo]("until", _until, rank=3),
    Column[BreakerInfo]("opens", lambda breaker: _opens(breaker.figures), rank=4),
    Column[BreakerInfo]("said by", lambda breaker: breaker.said_by or None, rank=5),
)


@command(group, "list")
async def list_breakers(session: Session) -> None:
    """List circuit breakers.

    Those that have failed or were touched, and, with an app, those that its tasks declare. The phase is closed (jobs
    pass), open (they wait) or half_open (one at a time is let through, to try). How many failures open it, within which
    time, and for how long, is what operators say, or else the app. In a pipe, a line is: breaker, phase, waiting,
    recent failures, open until, when and for how long it opens, who says that.

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


@command(group, "set")
async def set_figures(
    session: Session,
    name: NameArgument,
    failures: Annotated[
        int | None, typer.Option("--failures", metavar="N", help="So many failed runs open it.")
    ] = None,
    window: Annotated[float | None, typer.Option("--window", metavar="S", help="Within so many seconds.")] = None,
    open_for: Annotated[float | None, typer.Option("--open-for", metavar="S", help="For so many seconds.")] = None,
) -> None:
    """Have a breaker count otherwise, in all processes, from the next run on.

    It goes before what the code says, until `breakers clear`. What is left out stays as it is.

    \b
    holdfast breakers set stripe --failures 20 --window 60
    holdfast breakers set stripe --open-for 300
    """
    given: dict[str, Any] = {"failures": failures, "window": window, "open_for": open_for}
    given = {option: value for option, value in given.items() if value is not None}
    if not given:
        raise Refused("nothing was given", hint="`--failures 20`, `--window 60` or `--open-for 300`")
    async with session.opened() as hf:
        is_known = await _is_known(hf, name)
        now = await hf.breakers.set(name, **given)
    fields = {"name": name, **now._asdict(), "said_by": "operator"}
    session.out.done(f"breaker {name} opens {_opens(now)}", fields)
    if not is_known:
        session.out.note(f"note: no breaker called {name} has failed yet, or is declared by the app")


@command(group)
async def clear(session: Session, name: NameArgument) -> Exit:
    """Let the code say again how a breaker counts.

    \b
    holdfast breakers clear stripe
    """
    async with session.opened() as hf:
        cleared = await hf.breakers.clear(name)
    if not cleared:
        raise Refused(
            f"nothing is set for breaker {name!r}",
            hint="`holdfast breakers list` shows who says what",
            code=Exit.MISSING,
        )
    words = {"name": name, "failures": None, "window_s": None, "open_for_s": None}
    session.out.done(f"breaker {name} counts as the code says", words)
    return Exit.OK


async def _is_known(hf: Holdfast, name: str) -> bool:
    return name in {each.name for each in await hf.breakers.list()}
