"""`holdfast queues`: how full they are, and what can be changed about them while everything runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from holdfast.cli import placement, queue_options
from holdfast.cli.acts import record
from holdfast.cli.asking import confirmed
from holdfast.cli.exits import Exit, Refused
from holdfast.cli.fields import queue_fields, rate_fields
from holdfast.cli.output import Column
from holdfast.cli.queue_notes import noting
from holdfast.cli.session import Session, command, noun
from holdfast.core.queue import MOST_COUNTED, QueueInfo, QueueRates
from holdfast.core.shown import counted

group = noun("Queues: depths, pausing, draining, weights, watermarks, options, purging, and where jobs go.")

NameArgument = Annotated[str, typer.Argument(metavar="QUEUE", help="The queue's name.")]


def _state(queue: QueueInfo) -> str:
    if queue.settings.paused:
        return "paused"
    return "draining" if queue.settings.draining else "open" if queue.accepting else "full"


def _count(count: int) -> str:
    return f"{count}+" if count >= MOST_COUNTED else str(count)


_COLUMNS = (
    Column[QueueInfo]("queue", lambda queue: queue.name),
    Column[QueueInfo]("state", _state),
    Column[QueueInfo]("ready", lambda queue: queue.ready),
    Column[QueueInfo]("running", lambda queue: queue.running, rank=1),
    Column[QueueInfo]("scheduled", lambda queue: _count(queue.scheduled), rank=2),
    Column[QueueInfo]("dead", lambda queue: _count(queue.dead), rank=3),
    Column[QueueInfo]("parked", lambda queue: _count(queue.parked), rank=4),
    Column[QueueInfo]("blocked", lambda queue: _count(queue.blocked), rank=5),
    Column[QueueInfo]("weight", lambda queue: queue.settings.weight, rank=6),
    Column[QueueInfo](
        "oldest", lambda queue: None if queue.oldest_ready_s is None else f"{queue.oldest_ready_s:.0f}s", rank=7
    ),
)


def _rates(rates: Mapping[str, QueueRates]) -> tuple[Column[QueueInfo], ...]:
    def of(queue: QueueInfo) -> QueueRates:
        return rates.get(queue.name, QueueRates())

    return (
        Column("in/s", lambda queue: f"{of(queue).enqueued_per_s:.1f}", rank=8),
        Column("out/s", lambda queue: f"{of(queue).ended_per_s:.1f}", rank=9),
    )


@command(group, "list")
async def list_queues(session: Session) -> None:
    """List queues with what waits and runs in them.

    The state is open, full (its ready and parked jobs are at the high watermark: producers wait until they are down to
    the low one), draining (it accepts nothing) or paused (nothing of
    it is started). In a pipe, a line is: queue, state, ready, running, scheduled, dead, parked, blocked, weight, age of
    the oldest ready job, jobs that were enqueued and jobs that ended per second of the last minute. Of scheduled, dead,
    parked and blocked jobs at most 10000 are counted, and `10000+` means: at least so many.

    \b
    holdfast queues list
    holdfast queues list --json | jq -r 'select(.ready > 1000) | .name'
    """
    async with session.opened() as hf:
        found, rates = await hf.queues.list(), await hf.queues.rates()

    def fields(queue: QueueInfo) -> dict[str, Any]:
        return queue_fields(queue) | {"rates": rate_fields(rates.get(queue.name, QueueRates()))}

    columns = (*_COLUMNS, *_rates(rates))
    session.out.items(found, columns, fields, none="there is no queue yet: one comes with its first job")


@command(group)
async def pause(session: Session, queue: NameArgument) -> None:
    """Start nothing more of a queue, in any process.

    What runs goes on, and jobs may still be enqueued.

    \b
    holdfast queues pause mail
    """
    async with session.opened() as hf, noting(session, hf, queue):
        await hf.queues.pause(queue)
    session.out.done(f"queue {queue} is paused", {"name": queue, "paused": True})


@command(group)
async def resume(session: Session, queue: NameArgument) -> None:
    """Start jobs of a queue again, and accept new ones.

    It lifts `pause` and `drain`.

    \b
    holdfast queues resume mail
    """
    async with session.opened() as hf, noting(session, hf, queue):
        await hf.queues.resume(queue)
    session.out.done(f"queue {queue} is open", {"name": queue, "paused": False, "draining": False})


@command(group)
async def drain(
    session: Session,
    queue: NameArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> Exit:
    """Accept nothing more in a queue, while what it has goes on.

    Whoever enqueues there gets an error at once, in any process, until `undrain` or `resume`. It asks before.

    \b
    holdfast queues drain mail --yes
    """
    async with session.opened() as hf, noting(session, hf, queue):
        if not yes and not confirmed(f"queue {queue!r} to accept nothing more", hint="add `--yes`"):
            return Exit.FAILED
        await hf.queues.drain(queue)
    session.out.done(f"queue {queue} accepts nothing more", {"name": queue, "draining": True})
    return Exit.OK


@command(group)
async def undrain(session: Session, queue: NameArgument) -> None:
    """Accept new jobs in a queue that was being drained.

    If it is paused, it stays so.

    \b
    holdfast queues undrain mail
    """
    async with session.opened() as hf, noting(session, hf, queue):
        await hf.queues.undrain(queue)
    session.out.done(f"queue {queue} accepts jobs again", {"name": queue, "draining": False})


@command(group)
async def weights(
    session: Session,
    queue: NameArgument,
    priorities: Annotated[
        list[str] | None, typer.Argument(metavar="PRIORITY=WEIGHT", help="critical, high, normal, low, bulk.")
    ] = None,
    weight: Annotated[
        float | None, typer.Option("--weight", "-w", metavar="NUMBER", help="Share of the queue against others.")
    ] = None,
    default: Annotated[bool, typer.Option("--default", help="Back to the weights that are built in.")] = False,
) -> None:
    """Change a queue's share of the workers.

    Its share against other queues, or the shares of its priorities among themselves.

    Workers take it up within a second. Weight 0 means: only when nothing else is ready. What is left out stays as it
    is, also the priorities that are not named. A queue that neither the store nor the app has heard of is refused.

    \b
    holdfast queues weights reports --weight 0.5
    holdfast queues weights default critical=80 bulk=0
    holdfast queues weights default --default
    """
    shares = _shares(priorities or [])
    if default and (weight is not None or shares):
        raise Refused("give either weights or --default", hint="`holdfast queues weights mail bulk=0`")
    if not default and weight is None and not shares:
        raise Refused("no weight was given", hint="`--weight 0.5`, or priorities as in `bulk=0`")
    async with session.opened() as hf:
        if default:
            await hf.queues.clear_weights(queue)
        else:
            await hf.queues.set_weights(queue, weight=weight, priorities=shares or None)
        [now] = [each for each in await hf.queues.list() if each.name == queue]
    fields = queue_fields(now)
    said = " ".join(f"{name}={share:g}" for name, share in (fields["weights"] or {}).items()) or "as built in"
    session.out.done(
        f"queue {queue} has weight {now.settings.weight:g}" + (f", priorities {said}" if shares or default else ""),
        {"name": queue, "weight": fields["weight"], "weights": fields["weights"]},
    )


@command(group)
async def watermarks(
    session: Session,
    queue: NameArgument,
    high: Annotated[
        int | None,
        typer.Option("--high", metavar="N", min=1, help="Ready and parked jobs at which it stops accepting."),
    ] = None,
    low: Annotated[
        int | None, typer.Option("--low", metavar="N", min=0, help="Ready and parked jobs at which it accepts again.")
    ] = None,
    high_age: Annotated[
        float | None, typer.Option("--high-age", metavar="S", help="Age of the oldest at which it stops accepting.")
    ] = None,
    low_age: Annotated[
        float | None, typer.Option("--low-age", metavar="S", help="Age of the oldest at which it accepts again.")
    ] = None,
    no_age: Annotated[bool, typer.Option("--no-age", help="Whatever the age of the oldest.")] = False,
    default: Annotated[
        bool, typer.Option("--default", help="Back to the marks that processes are configured with, and none on age.")
    ] = False,
) -> None:
    """Change how many waiting jobs a queue takes, and how old they may get.

    Jobs that are ready and jobs that are parked, as at a limit, count together. At a high mark it stops accepting, and
    producers wait; once it is down to its low marks it accepts again. Marks on how long the oldest of them has waited,
    in seconds, are beside those on their number; a queue has none until they are set.

    \b
    holdfast queues watermarks mail --high 50000 --low 10000
    holdfast queues watermarks mail --high-age 60 --low-age 10
    holdfast queues watermarks mail --default
    """
    _refuse_half(high, low, "--high", "--low")
    _refuse_half(high_age, low_age, "--high-age", "--low-age")
    if default and (no_age or high is not None or high_age is not None):
        raise Refused("give either watermarks or --default", hint="`holdfast queues watermarks mail --default`")
    if not default and not no_age and high is None and high_age is None:
        raise Refused("no watermarks were given", hint="`--high 50000 --low 10000`, or `--high-age 60 --low-age 10`")
    if no_age and high_age is not None:
        raise Refused("give either --no-age, or --high-age and --low-age")
    given: dict[str, Any] = {"high": high, "low": low}
    if no_age or high_age is not None or low_age is not None:
        given |= {"high_age_s": high_age, "low_age_s": low_age}
    async with session.opened() as hf, noting(session, hf, queue):
        if default:
            await hf.queues.clear_watermarks(queue)
        else:
            await hf.queues.set_watermarks(queue, **given)
        [now] = [each for each in await hf.queues.list() if each.name == queue]
    fields = {
        name: queue_fields(now)[name] for name in ("name", "high_watermark", "low_watermark", "high_age_s", "low_age_s")
    }
    if default:
        session.out.done(f"queue {queue} stops accepting, and accepts again, as it is configured", fields)
        return
    marks = [f"{counted(high, 'ready or parked job')} and accepts again at {low:,}"] if high is not None else []
    if high_age is not None:
        marks.append(f"an age of {high_age:g} s and accepts again at {low_age:g} s")
    said = "; at ".join(marks)
    session.out.done(
        f"queue {queue} stops accepting at {said}" if said else f"queue {queue} accepts whatever its age", fields
    )


queue_options.add_to(group)
placement.add_to(group)


@command(group)
async def purge(
    session: Session,
    queue: NameArgument,
    reason: Annotated[str, typer.Option("--reason", "-r", metavar="TEXT", help="Why; kept with the jobs.")] = "purged",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> Exit:
    """Cancel everything that waits in a queue.

    What runs goes on. It says how many jobs that are, and asks.

    \b
    holdfast queues purge imports --reason "wrong file" --yes
    """
    async with session.opened() as hf:
        if said := await hf.queues.why_unknown(queue):
            raise Refused(said, hint="`holdfast queues list` shows those there are", code=Exit.MISSING)
        waiting = sum(each.waiting for each in await hf.queues.list() if each.name == queue)
        what = f"{counted(waiting, 'job')} to cancel in queue {queue!r}"
        if waiting and not yes and not confirmed(what, hint="add `--yes`"):
            return Exit.FAILED
        await record(hf, "purge", f"queue {queue}", reason=reason, count=waiting)
        count = await hf.queues.purge(queue, reason=reason)
    session.out.done(
        f"{counted(count, 'job')} of queue {queue} cancelled", {"name": queue, "cancelled": count}, plain=(count,)
    )
    return Exit.OK


def _refuse_half(high: float | None, low: float | None, *options: str) -> None:
    if (high is None) != (low is None):
        raise Refused(
            f"{' and '.join(options)} go together: at one a queue stops accepting, at the other it begins again"
        )


def _shares(words: list[str]) -> dict[str, float]:
    shares: dict[str, float] = {}
    for name, share in map(_share, words):
        if name in shares:
            raise Refused(f"the weight of {name!r} was given twice", hint=f"leave out one of the `{name}=…`")
        shares[name] = share
    return shares


def _share(word: str) -> tuple[str, float]:
    name, _, text = word.partition("=")
    try:
        return name, float(text)
    except ValueError:
        raise Refused(f"{word!r} is not a priority's weight", hint="write it as in `bulk=0` or `high=30`") from None
