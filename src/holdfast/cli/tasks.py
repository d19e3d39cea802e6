"""`holdfast tasks`: which there are, and pausing single ones while everything runs."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.app import Holdfast
from holdfast.cli.fields import task_fields
from holdfast.cli.output import Column
from holdfast.cli.session import Session, command, noun
from holdfast.client.tasks import TaskInfo

group = noun("Tasks: which there are; pause and resume them.")

NameArgument = Annotated[str, typer.Argument(metavar="TASK", help="The task's name.")]

_COLUMNS = (
    Column[TaskInfo]("task", lambda task: task.name),
    Column[TaskInfo]("state", lambda task: "paused" if task.paused else "open"),
    Column[TaskInfo]("queue", lambda task: task.queue, rank=1),
)


@command(group, "list")
async def list_tasks(session: Session) -> None:
    """List the tasks of an app, and those that are paused.

    Without an app only the paused ones are known. In a pipe, a line is: task, state, queue.

    \b
    holdfast tasks list -A shop.jobs:hf
    """
    async with session.opened() as hf:
        found = await hf.tasks.list()
    session.out.items(found, _COLUMNS, task_fields, none="no task is paused; with -A, those of the app are shown")


@command(group)
async def pause(session: Session, task: NameArgument) -> None:
    """Start nothing more of a task, in any queue and process.

    What runs goes on, and jobs may still be enqueued.

    \b
    holdfast tasks pause shop.charge
    """
    async with session.opened() as hf:
        await hf.tasks.pause(task)
        is_known = await _is_known(hf, task)
    session.out.done(f"task {task} is paused", {"name": task, "paused": True})
    if not is_known:
        session.out.note(f"note: task {task} has had no job yet")


@command(group)
async def resume(session: Session, task: NameArgument) -> None:
    """Start jobs of a paused task again, those that waited first.

    \b
    holdfast tasks resume shop.charge
    """
    async with session.opened() as hf:
        await hf.tasks.resume(task)
    session.out.done(f"task {task} is open", {"name": task, "paused": False})


async def _is_known(hf: Holdfast, task: str) -> bool:
    return hf.tasks.get(task) is not None or bool(await hf.jobs.list(task=task, limit=1))
