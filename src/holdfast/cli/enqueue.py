"""`holdfast enqueue`: one call of a task from the command line."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from holdfast.app import Holdfast
from holdfast.cli.app_loading import check_name, load_app, names_an_app
from holdfast.cli.call_arguments import explaining_arguments, parse_call
from holdfast.cli.exits import Exit, Refused, refusal
from holdfast.cli.fields import job_fields
from holdfast.cli.following import ending, follow
from holdfast.cli.session import Session, command
from holdfast.core.errors import JobCancelled, JobFailed
from holdfast.core.job import JobInfo
from holdfast.core.state import State


def add_to(root: typer.Typer) -> None:
    """Add the command to the tree."""
    command(root)(enqueue)


async def enqueue(
    session: Session,
    task: Annotated[str, typer.Argument(metavar="[MODULE:APP] TASK", help="The app, if not by -A, and the task.")],
    words: Annotated[
        list[str] | None, typer.Argument(metavar="ARG", help="Its arguments: JSON, or name=value.")
    ] = None,
    delay: Annotated[
        float | None, typer.Option("--delay", metavar="SECONDS", min=0, help="Seconds before it may start.")
    ] = None,
    priority: Annotated[
        str | None,
        typer.Option("--priority", "-p", metavar="PRIORITY", help="critical, high, normal, low, bulk, or 0 to 9."),
    ] = None,
    queue: Annotated[
        str | None, typer.Option("--queue", "-q", metavar="QUEUE", help="Another queue than the task's own.")
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", "-k", metavar="KEY", help="Idempotency key: the same request, one job.")
    ] = None,
    tenant: Annotated[str | None, typer.Option("--tenant", metavar="TENANT", help="On whose behalf.")] = None,
    tags: Annotated[
        list[str] | None, typer.Option("--tag", metavar="TAG", help="A tag; may be given several times.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", "-w", help="Wait for the job to end, and print its result.")] = False,
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="SECONDS", min=0, help="With --wait: seconds at most.")
    ] = None,
) -> Exit:
    """Enqueue a call of a task.

    Prints the job's id or, with --wait, shows how far it has come and prints its result as JSON.

    Arguments are given by place or as name=value. Each is read as JSON and, where it is none, as text: 5 is a number,
    '"5"' and five are texts. Put -- before arguments that begin with a dash.

    With an app, the call is checked against the task's signature. With --url, a task is enqueued by name, unchecked,
    and no code is imported.

    \b
    holdfast enqueue shop.jobs:hf shop.jobs.add 2 b=3 --wait
    holdfast enqueue -A shop.jobs:hf mail.send to=ada@example.org 'data={"n": 1}'
    holdfast enqueue --url sqlite:///jobs.db mail.send ada --delay 60 --key welcome-17
    holdfast enqueue shop.jobs:hf shop.jobs.add -- -2 3
    """
    task, rest = take_app(session, task, words or [], command="enqueue")
    if session.app is None and session.url is None and rest and rest[0].startswith(f"{task}."):
        # `app app.add` for `app:hf app.add`. As a task's name it would be accepted, and wait for ever for its worker.
        check_name(task)
    if timeout is not None and not wait:
        raise Refused("--timeout is for --wait", hint="add `--wait`, or leave it out")
    args, kwargs = parse_call(rest)
    given = {"delay": delay, "priority": priority, "queue": queue, "key": key, "tenant": tenant, "tags": tags or None}
    async with session.opened(create=session.named_app() is not None, live=wait) as hf:
        named = hf.named(known_task(session, hf, task))
        options: dict[str, Any] = {option: value for option, value in given.items() if value is not None}
        with explaining_arguments(hf.tasks.get(named.name)):
            job = await named.options(**options).enqueue(*args, **kwargs)
        if not wait:
            session.out.done(f"enqueued {job.id}", {"id": job.id, "task": task}, plain=(job.id,))
            if session.app is None and session.url is None and session.out.terminal:
                session.out.note(f"note: no app was named, so nobody has checked that {task!r} exists; -A names one")
            return Exit.OK
        [info] = await follow(hf, [job.id], session.out, app=session.app, timeout_s=timeout, lines=False)
    return _ended(session, info)


def take_app(session: Session, task: str, rest: list[str], *, command: str) -> tuple[str, list[str]]:
    """The task and its arguments; an app that stands before them becomes the session's."""
    if session.app is None and session.url is None and names_an_app(task):
        if not rest:
            names = load_app(task).tasks.names()
            raise Refused(f"which task of {task}?", hint=f"`holdfast {command} {task} TASK ARGS…`; {_choice(names)}")
        session.app, (task, *rest) = task, rest
    return task, rest


def known_task(session: Session, hf: Holdfast, name: str) -> str:
    """The task's name; an app that was named must have it."""
    names = hf.tasks.names()
    if session.app is None or name in names:
        return name
    by_last = {each.rpartition(".")[2]: each for each in names}
    near = difflib.get_close_matches(name, [*names, *by_last], n=1)
    hint = f"`{by_last.get(near[0], near[0])}`" if near else _choice(names)
    raise Refused(f"app {session.app} has no task {name!r}", hint=hint)


def _choice(names: Sequence[str]) -> str:
    return f"its tasks are {', '.join(names[:10]) or 'none'}"


def _ended(session: Session, job: JobInfo) -> Exit:
    if session.out.as_json:
        session.out.document(job_fields(job))
    elif job.state is State.DEAD:
        error = job.error
        raise refusal(JobFailed(job.id, error_type=error.type if error else "", message=error.message if error else ""))
    elif job.state is State.CANCELLED:
        raise refusal(JobCancelled(job.id, reason=job.reason))
    else:
        session.out.document(job.result)
    return ending([job])
