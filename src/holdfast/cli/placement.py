"""`holdfast queues explain`: where the job of a call would go, and who says so; nothing is stored."""

from __future__ import annotations

import json
from typing import Annotated, Any, NamedTuple

import typer

from holdfast.app import Holdfast
from holdfast.cli.call_arguments import explaining_arguments, parse_call
from holdfast.cli.enqueue import known_task, take_app
from holdfast.cli.exits import Refused
from holdfast.cli.output import Column
from holdfast.cli.session import Session, check_store, command
from holdfast.client.placing import Placement
from holdfast.client.request import Request
from holdfast.core.errors import HoldfastError, RoutingFailed


class _Row(NamedTuple):
    option: str
    value: Any
    by: str


_COLUMNS = (
    Column[_Row]("option", lambda row: row.option),
    Column[_Row]("value", lambda row: None if row.value == "" else row.value),
    Column[_Row]("said by", lambda row: row.by),
)


def add_to(group: typer.Typer) -> None:
    """Add the command to the group of queues."""
    command(group)(explain)


async def explain(
    session: Session,
    task: Annotated[str, typer.Argument(metavar="[MODULE:APP] TASK", help="The app, if not by -A, and the task.")],
    words: Annotated[
        list[str] | None, typer.Argument(metavar="ARG", help="Its arguments: JSON, or name=value.")
    ] = None,
    priority: Annotated[
        str | None, typer.Option("--priority", "-p", metavar="PRIORITY", help="As if the call said it.")
    ] = None,
    queue: Annotated[str | None, typer.Option("--queue", "-q", metavar="QUEUE", help="As if the call said it.")] = None,
    tenant: Annotated[str | None, typer.Option("--tenant", metavar="TENANT", help="As if the call said it.")] = None,
    metadata: Annotated[
        str | None, typer.Option("--metadata", metavar="JSON", help="As if the call said it; routers may look at it.")
    ] = None,
) -> None:
    """Say where the job of a call would go, and why.

    Queue, priority and tenant each come from the first that says them: the call, a router, a pattern over task names
    that an operator has set (`holdfast routes`), one of settings or code, the task, its base, its queue's defaults, the
    app's defaults. Arguments are written as for `holdfast enqueue`, and checked. Nothing is stored; where the store
    cannot be asked what operators have set, a note says so.

    In a pipe, a line is: option, value, who says it.

    \b
    holdfast queues explain shop.jobs:hf payments.charge customer=17 cents=4200
    holdfast queues explain -A shop.jobs:hf mail.send ada --metadata '{"tier": "gold"}' --json
    """
    task, rest = take_app(session, task, words or [], command="queues explain")
    args, kwargs = parse_call(rest)
    given = {"priority": priority, "queue": queue, "tenant": tenant, "metadata": _metadata(metadata)}
    options: dict[str, Any] = {option: value for option, value in given.items() if value is not None}
    hf = session.load()
    named = hf.named(known_task(session, hf, task)).options(**options)
    with explaining_arguments(hf.tasks.get(named.name)):
        request = named.request(*args, **kwargs)
        hf.placement(request)  # a call that does not fit is told of before anything is opened
    placement, unseen = await _placed(session, hf, request)
    if session.out.as_json:
        session.out.document(
            {"task": task} | {name: {"value": said.value, "by": said.by} for name, said in placement._asdict().items()}
        )
    else:
        rows = [_Row(name, said.value, said.by) for name, said in placement._asdict().items()]
        session.out.items(rows, _COLUMNS, _Row._asdict, none="")
    if unseen:
        session.out.note(f"note: what operators have set is not in this: {unseen}")


async def _placed(session: Session, hf: Holdfast, request: Request) -> tuple[Placement, str]:
    """With what operators have set, or else why that is not known."""
    try:
        check_store(hf.config, create=False)
        async with hf:
            looked = await hf.routes.look()
            return hf.placement(request), "" if looked else "the store did not answer"
    except RoutingFailed:
        raise
    except (HoldfastError, Refused) as error:
        return hf.placement(request), str(error)


def _metadata(text: str | None) -> Any:
    if text is None:
        return None
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise Refused(f"--metadata {text!r} is not a JSON object", hint="""write it as in '{"tier": "gold"}'""")
    return value
