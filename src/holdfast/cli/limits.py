"""`holdfast limits`: concurrency limits and rates, who is at them, and what can be changed while everything runs."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.app import Holdfast
from holdfast.cli.exits import Exit, Refused
from holdfast.cli.fields import limit_fields
from holdfast.cli.output import Column
from holdfast.cli.session import Session, command, noun
from holdfast.client.limits import LimitInfo, kinds_of

_WORDS = {"concurrency": "limit", "rate": "rate"}

group = noun("Concurrency limits and rates: who runs and waits, and other sizes for them.")

NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="As `limits list` shows it, up to the slash: a name, task:TASK or queue:QUEUE."
    ),
]


def _allowed(limit: LimitInfo) -> str:
    if not limit.in_force:
        return "-"
    if limit.kind == "concurrency":
        return "-" if limit.size is None else str(limit.size)
    return "-" if limit.rate is None else f"{limit.rate} (burst {limit.burst})"


def _words(size: int | None, rate: str | None) -> str:
    return " and ".join(str(each) for each in (size, rate) if each is not None)


def _said_by(limit: LimitInfo) -> str | None:
    return limit.said_by or None if limit.in_force else f"{limit.said_by}, to no effect"


_COLUMNS = (
    Column[LimitInfo]("limit", lambda limit: limit.key or f"{limit.name}/…"),
    Column[LimitInfo]("kind", lambda limit: limit.kind, rank=3),
    Column[LimitInfo]("allowed", _allowed),
    Column[LimitInfo]("held", lambda limit: limit.held if limit.kind == "concurrency" else None, rank=1),
    Column[LimitInfo]("waiting", lambda limit: limit.waiting, rank=2),
    Column[LimitInfo]("said by", _said_by, rank=4),
    Column[LimitInfo]("next at", lambda limit: limit.next_at, rank=5),
)


@command(group, "list")
async def list_limits(session: Session) -> None:
    """List limits and rates with who runs and waits there.

    Those that are in use, that operators have set, and, with an app, those that its tasks declare. Behind a slash is a
    key, which has who runs and waits for itself, or `/…` where none is in use; what is set for the name before it holds
    for all keys. Without an app, what only code says is shown as `-`. In a pipe, a line is: limit, kind, allowed, held,
    waiting, said by, next at.

    \b
    holdfast limits list
    holdfast limits list --json | jq -r 'select(.waiting > 0) | .key'
    """
    async with session.opened() as hf:
        found = await hf.limits.list()
    session.out.items(found, _COLUMNS, limit_fields, none="no limit is in use, and none is set")


@command(group, "set")
async def set_limit(
    session: Session,
    name: NameArgument,
    size: Annotated[int | None, typer.Option("--size", metavar="N", help="How many run at once.")] = None,
    rate: Annotated[str | None, typer.Option("--rate", metavar="RATE", help="How many begin, as in 100/m.")] = None,
    burst: Annotated[
        int | None, typer.Option("--burst", metavar="N", help="How many may begin at once after a rest, with --rate.")
    ] = None,
) -> None:
    """Give a limit another size, or another rate, for all of its keys.

    It goes before what the code says, in all processes, until `limits clear`. task:NAME and queue:NAME limit all of a
    task or a queue, also where no code does. What is left out stays as it is, also the burst: as an operator set it
    before, or else as the tasks of the app say, or jobs that wait there; where none is known, it is what one unit of
    time of the new rate allows, and the command says so. With an app, a rate for what its tasks declare as a limit is
    refused, and so is a size for a rate.

    \b
    holdfast limits set stripe --rate 50/s --burst 10
    holdfast limits set queue:reports --size 2
    """
    if size is None and rate is None:
        raise Refused("neither a size nor a rate was given", hint="`--size 5`, or `--rate 100/m`")
    _refuse_key(name)
    async with session.opened() as hf:
        kinds = {kind for kind, said in (("concurrency", size), ("rate", rate)) if said is not None}
        if other := kinds - set(kinds_of(name, hf.limits.declared())):
            what, hint = ("rate", "--rate 100/m") if "concurrency" in other else ("concurrency limit", "--size 5")
            raise Refused(f"{name!r} is a {what} in the code of the app", hint=f"`{hint}` alone")
        is_known = await _is_known(hf, name, kinds)
        guessed = rate is not None and burst is None and await hf.limits.burst_of(name) is None
        await hf.limits.set(name, size=size, rate=rate, burst=burst)
        now = [each for each in await hf.limits.list() if each.name == name and each.said_by == "operator"]
    # Empty where somebody has cleared it since: then what was said here is told.
    said = " and ".join(dict.fromkeys(_allowed(each) for each in now)) or _words(size, rate)
    if rate is not None:
        burst = next((each.burst for each in now if each.kind == "rate"), burst)
    session.out.done(f"limit {name}: {said}", {"name": name, "size": size, "rate": rate, "burst": burst})
    if not is_known:
        what = " and ".join(_WORDS[kind] for kind in sorted(kinds))
        session.out.note(f"note: no {what} called {name} is in use, or declared by the app")
    if guessed and burst is not None:
        session.out.note(
            f"note: what code says of its burst is not known here: it is {burst} now; `--burst` gives another"
        )


@command(group)
async def clear(session: Session, name: NameArgument) -> Exit:
    """Let the code say again how much of a limit is allowed.

    \b
    holdfast limits clear stripe
    """
    _refuse_key(name)
    async with session.opened() as hf:
        cleared = await hf.limits.clear(name)
    if not cleared:
        raise Refused(
            f"nothing is set for limit {name!r}", hint="`holdfast limits list` shows who says what", code=Exit.MISSING
        )
    session.out.done(f"limit {name}: as the code says", {"name": name, "size": None, "rate": None, "burst": None})
    return Exit.OK


def _refuse_key(name: str) -> None:
    """The list shows each key; what can be set is for all of them."""
    own, slash, _ = name.partition("/")
    if slash and own:
        raise Refused(
            f"{name!r} is one key of limit {own!r}: a size or a rate is for all of its keys",
            hint=f"give {own!r} as NAME",
        )


async def _is_known(hf: Holdfast, name: str, kinds: set[str]) -> bool:
    """A slip of the pen would do nothing, in silence, and nor would a rate for a limit."""
    kind, _, rest = name.partition(":")
    if kind == "queue":
        return rest in {each.name for each in await hf.queues.list()}
    if kind == "task":
        return hf.tasks.get(rest) is not None or bool(await hf.jobs.list(task=rest, limit=1))
    return kinds <= {each.kind for each in await hf.limits.list() if each.name == name}
