"""`holdfast audit`: who changed what while everything ran."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.fields import change_fields
from holdfast.cli.output import Column
from holdfast.cli.session import Session, command
from holdfast.cli.which_jobs import LimitOption
from holdfast.stores.flow import SettingChange

_COLUMNS = (
    Column[SettingChange]("number", lambda change: change.number, rank=4),
    Column[SettingChange]("at", lambda change: change.at),
    Column[SettingChange]("by", lambda change: change.by, rank=2),
    Column[SettingChange]("what", lambda change: change.what),
    Column[SettingChange]("name", lambda change: change.name),
    Column[SettingChange]("before", lambda change: _changed(change.before, change.after), rank=3),
    Column[SettingChange]("after", lambda change: _changed(change.after, change.before), rank=1),
)


def add_to(root: typer.Typer) -> None:
    """Add the command to the tree."""
    command(root)(audit)


async def audit(
    session: Session,
    limit: LimitOption = 50,
    before: Annotated[
        int | None,
        typer.Option("--before", metavar="NUMBER", min=1, help="The next page: the last of this one."),
    ] = None,
) -> None:
    """List what operators have changed, newest first.

    Of queues, tenants, tasks, limits, breakers and keys: who, when, and what it was before; and what was done to jobs,
    as to cancel, to move or to purge, with how many there were. In a pipe, a line is: number, at, by,
    what, name, before, after; of the last two only what differs.

    \b
    holdfast audit
    holdfast audit --json | jq -r 'select(.what == "limit")'
    """
    async with session.opened() as hf:
        found = await hf.audit.list(limit=limit, before=before)
    session.out.items(found, _COLUMNS, change_fields, none="nothing was ever changed")


def _changed(these: dict[str, object] | None, others: dict[str, object] | None) -> object:
    """What is not the same in both."""
    if these is None:
        return None
    return {name: value for name, value in these.items() if others is None or others.get(name) != value} or None
