"""`holdfast migrate`: brings the store's schema up to date, or says what that would do."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.exits import Exit
from holdfast.cli.session import Session, command


def add_to(root: typer.Typer) -> None:
    """Add the command to the tree."""
    command(root)(migrate)


async def migrate(
    session: Session,
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; exit code 1 if there is something to do.")
    ] = False,
) -> Exit:
    """Make the store, or bring its schema up to date.

    Every program that opens a SQLite store does the same by itself; this is for those who want it to happen at a moment
    of their own, and to see it.

    \b
    holdfast migrate --url sqlite:////var/lib/shop/jobs.db
    holdfast migrate --check
    """
    hf = session.load_for_store(create=True)
    before = await hf.store_status()
    pending = list(before.pending)
    if not check and pending:
        await hf.migrate()
    fields = {
        "place": before.place,
        "schema": before.schema if check else before.newest,
        "newest": before.newest,
        "pending" if check else "applied": pending,
    }
    if not pending:
        sentence = f"{before.place} is up to date: schema version {before.schema}"
    elif check:
        sentence = f"{before.place} has schema version {before.schema}; to be applied: {', '.join(pending)}"
    else:
        sentence = f"{before.place} has schema version {before.newest}; applied: {', '.join(pending)}"
    session.out.done(sentence, fields)
    return Exit.FAILED if check and pending else Exit.OK
