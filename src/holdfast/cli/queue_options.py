"""`holdfast queues options`: what is in force for one queue, and what operators say of it while everything runs."""

from __future__ import annotations

from typing import Annotated, Any, Final, NamedTuple

import typer

from holdfast.app import Holdfast
from holdfast.cli.exits import Exit, Refused
from holdfast.cli.output import Column
from holdfast.cli.queue_notes import noting
from holdfast.cli.session import Session, command
from holdfast.core.queue_options import NO_QUEUE_OPTIONS, NONE, QueueOptions

_DEFAULT: Final = "default"
_HINT: Final = "`--concurrency 5`, `--retry-budget 0.2` or `--bypass critical`"
_SENTENCES: Final = {
    "concurrency": "at most {:,} at once in each process",
    "retry_budget": "a retry budget of {:g}",
    "bypass_priority": "priority {} gets in although it is full",
}
_SENTENCES_OF_NONE: Final = {
    "concurrency": "as many at once as a process has slots",
    "retry_budget": "no retry budget",
    "bypass_priority": "nobody gets in while it is full",
}


class _Row(NamedTuple):
    option: str
    value: Any
    by: str | None


_COLUMNS = (
    Column[_Row]("option", lambda row: row.option),
    Column[_Row]("value", lambda row: row.value),
    Column[_Row]("said by", lambda row: row.by),
)


def add_to(group: typer.Typer) -> None:
    """Add the command to the group of queues."""
    command(group)(options)


async def options(
    session: Session,
    queue: Annotated[str, typer.Argument(metavar="QUEUE", help="The queue's name.")],
    concurrency: Annotated[
        str | None,
        typer.Option("--concurrency", metavar="N", help="Jobs of it that one worker process runs at once, or none."),
    ] = None,
    retry_budget: Annotated[
        str | None,
        typer.Option("--retry-budget", metavar="X", help="Share of retries among its runs, as 0.2, or none."),
    ] = None,
    bypass: Annotated[
        str | None,
        typer.Option("--bypass", metavar="PRIORITY", help="From it on jobs get in although it is full; none: no job."),
    ] = None,
    default: Annotated[
        bool, typer.Option("--default", help="All options back to those that processes are configured with.")
    ] = False,
) -> None:
    """Show or change what processes do about a queue.

    Without an option it lists what is in force and who says so: operators, or else, with an app, its settings; `-` is
    what is not known here. In a pipe, a line is: option, value, said by.

    What is set goes before what each process is configured with, in all of them, until it is taken back; workers take
    it up within a second. What is left out stays as it is. `none` is no bound, no budget, and nobody who gets in, also
    where processes are configured otherwise; `default` takes back one option, and --default all of them.

    \b
    holdfast queues options reports -A shop.jobs:hf
    holdfast queues options reports --concurrency 5 --retry-budget 0.2
    holdfast queues options reports --bypass none --concurrency default
    holdfast queues options reports --default
    """
    given = {
        name: _value(word, kind, option)
        for name, word, kind, option in (
            ("concurrency", concurrency, int, "--concurrency"),
            ("retry_budget", retry_budget, float, "--retry-budget"),
            ("bypass_priority", bypass, str, "--bypass"),
        )
        if word is not None
    }
    if default and given:
        raise Refused("give either options or --default", hint="`holdfast queues options reports --default`")
    if not default and not given:
        await _show(session, queue)
        return
    async with session.opened() as hf, noting(session, hf, queue):
        if default:
            await hf.queues.clear_options(queue)
        else:
            await hf.queues.set_options(queue, **given)
        now = await _said(hf, queue)
    session.out.done(f"queue {queue}: {_in_words(now)}", {"name": queue, "options": now.said})


async def _show(session: Session, queue: str) -> None:
    async with session.opened() as hf:
        if said := await hf.queues.why_unknown(queue):
            hint = f"`holdfast queues list` shows those there are; options are set by {_HINT}"
            raise Refused(said, hint=hint, code=Exit.MISSING)
        rows = _in_force(hf, queue, await _said(hf, queue), with_app=session.app is not None)
    if session.out.as_json:
        session.out.document({"name": queue} | {each.option: {"value": each.value, "by": each.by} for each in rows})
    else:
        session.out.items(rows, _COLUMNS, _Row._asdict, none="")


async def _said(hf: Holdfast, queue: str) -> QueueOptions:
    """By operators."""
    found = (each.settings.options for each in await hf.queues.list() if each.name == queue)
    return next(found, NO_QUEUE_OPTIONS)


def _in_force(hf: Holdfast, queue: str, said: QueueOptions, *, with_app: bool) -> list[_Row]:
    """Only the settings of an app are those of its processes, as far as they are given to all of them."""
    configured = hf.config.queue_options.get(queue, NO_QUEUE_OPTIONS)
    rows = []
    for name, value in said.said.items():
        if value is not None:
            rows.append(_Row(name, value, "operator"))
        elif with_app and configured.said[name] is not None:
            rows.append(_Row(name, configured.said[name], hf.config.origin("queue")))
        else:
            rows.append(_Row(name, *((NONE, "built in") if with_app else (None, None))))
    return rows


def _value(word: str, kind: type[int | float | str], option: str) -> Any:
    """What `set_options` takes; it says what makes no sense."""
    if word in (NONE, _DEFAULT):
        return NONE if word == NONE else None
    try:
        return kind(word)
    except ValueError:
        raise Refused(f"{option} {word!r} is not a number, `none` or `default`", hint=_HINT) from None


def _in_words(options: QueueOptions) -> str:
    words = [
        _SENTENCES_OF_NONE[name] if value == NONE else _SENTENCES[name].format(value)
        for name, value in options.said.items()
        if value is not None
    ]
    return ", ".join(words) or "options as each process is configured"
