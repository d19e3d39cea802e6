"""`holdfast migrate`: brings the store's schema up to date, or says what that would do."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.app import Holdfast, backends
from holdfast.cli.exits import Exit, Refused
from holdfast.cli.session import Session, command


def add_to(root: typer.Typer) -> None:
    """Add the command to the tree."""
    command(root)(migrate)


async def migrate(
    session: Session,
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; exit code 1 if there is something to do.")
    ] = False,
    plan: Annotated[bool, typer.Option("--plan", help="Change nothing; print the SQL that would run.")] = False,
    print_grants: Annotated[
        list[str] | None,
        typer.Option(
            "--print-grants",
            metavar="DUTY=ROLE",
            help="Change nothing; print the SQL that gives a role what its duty needs (PostgreSQL). May be repeated.",
        ),
    ] = None,
) -> Exit:
    """Make the store, or bring its schema up to date.

    Every program that opens a SQLite store does the same by itself; this is for those who want it to happen at a moment
    of their own, and to see it. PostgreSQL stores are made by this alone.

    The duties of roles are api, worker, operator, dashboard and migrator. The SQL is printed for whoever gives rights
    in the database to look at and to run, after each migration.

    \b
    holdfast migrate --url sqlite:////var/lib/shop/jobs.db
    holdfast migrate --check
    holdfast migrate --plan | less
    holdfast migrate --print-grants worker=shop_worker --print-grants api=shop_web | psql
    """
    if check + plan + bool(print_grants) > 1:
        raise Refused("--check, --plan and --print-grants are three questions", hint="ask one at a time")
    hf = session.load_for_store(create=True)
    if print_grants:
        session.out.script(backends.grants(hf.config, [_role(word) for word in print_grants]))
        return Exit.OK
    if plan:
        session.out.script(await backends.migration_plan(hf.config))
        return Exit.OK
    return await _migrate(session, hf, check=check)


async def _migrate(session: Session, hf: Holdfast, *, check: bool) -> Exit:
    before = await hf.store_status()
    pending = list(before.pending)
    if not check and pending:
        await hf.migrate()
    fields = {
        "place": before.place,
        "schema": before.schema if check else max(before.schema, before.newest),
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


def _role(word: str) -> tuple[str, str]:
    duty, equals, role = word.partition("=")
    if not equals or not role:
        raise Refused(f"{word!r} is not a duty and a role", hint="write it as in `worker=shop_worker`")
    return duty, role
