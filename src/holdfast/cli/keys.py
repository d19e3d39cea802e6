"""`holdfast keys`: who may use the HTTP API, and for what."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from holdfast.cli.fields import key_fields
from holdfast.cli.output import Column, age
from holdfast.cli.session import Session, command, noun
from holdfast.client.keys import NewKey
from holdfast.core.api_key import ApiKey, Scope

_DAY_S = 86_400.0
group = noun("Keys of the HTTP API: make, list, rotate and revoke them.")

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The key's id, as `holdfast keys list` shows it.")]


def state_of(key: ApiKey) -> str:
    """Whether it opens anything now."""
    if key.revoked_at is not None:
        return "revoked"
    return "open" if key.is_valid(datetime.now(UTC)) else "expired"


_COLUMNS = (
    Column[ApiKey]("id", lambda key: key.id),
    Column[ApiKey]("name", lambda key: key.name),
    Column[ApiKey]("state", state_of),
    Column[ApiKey]("scopes", lambda key: ",".join(sorted(key.scopes))),
    Column[ApiKey]("queues", lambda key: None if key.queues is None else ",".join(sorted(key.queues)), rank=2),
    Column[ApiKey]("tenant", lambda key: key.tenant, rank=2),
    Column[ApiKey]("expires", lambda key: key.expires_at, rank=3),
    Column[ApiKey]("used", lambda key: age(key.used_at), rank=1),
    Column[ApiKey]("failed", lambda key: age(key.failed_at), rank=4),
)


@command(group)
async def create(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose it is, for the lists.")],
    scopes: Annotated[
        list[str], typer.Option("--scope", "-s", metavar="SCOPE", help=f"What it may do: {', '.join(Scope)}.")
    ],
    queues: Annotated[
        list[str] | None, typer.Option("--queue", "-q", metavar="QUEUE", help="Only jobs of this queue; repeatable.")
    ] = None,
    tenant: Annotated[str | None, typer.Option("--tenant", metavar="TENANT", help="Only jobs of this tenant.")] = None,
    expires: Annotated[
        float | None, typer.Option("--expires", metavar="DAYS", min=0, help="Days after which it opens nothing.")
    ] = None,
) -> None:
    """Make a key, and print it. It is shown this once: only its hash is kept.

    A key may do what its scopes say, and nothing else; none contains another. With --queue or --tenant it sees and
    touches only jobs of these. Its owner sends it as `Authorization: Bearer KEY`.

    \b
    holdfast keys create "the shop" --scope submit --scope read
    holdfast keys create acme -s submit -s read -s read-payload --tenant acme --expires 90
    """
    expires_s = None if expires is None else expires * _DAY_S
    async with session.opened(create=True) as hf:
        made = await hf.keys.create(name, scopes=scopes, queues=queues or None, tenant=tenant, expires=expires_s)
    _show(session, made)


@command(group, "list")
async def list_keys(session: Session) -> None:
    """List all keys, also those that have expired or were revoked; the newest first.

    In a pipe, a line is: id, name, state, scopes, queues, tenant, expires, used, failed. The last two say how long ago
    it opened something, and how long ago somebody came with its id and another secret.

    \b
    holdfast keys list
    holdfast keys list --json | jq -r 'select(.used_at == null) | .id'
    """
    async with session.opened() as hf:
        found = await hf.keys.list()
    session.out.items(found, _COLUMNS, key_fields, none="there are no keys: `holdfast keys create` makes one")


@command(group)
async def rotate(
    session: Session,
    key: IdArgument,
    grace: Annotated[
        float, typer.Option("--grace", metavar="SECONDS", min=0, help="How long the old secret opens, too.")
    ] = 0.0,
) -> None:
    """Give a key another secret, and print it. Scopes, queues, tenant and expiry stay.

    The old secret opens nothing from now on or, with --grace, for so many seconds yet: time to bring the new one to
    whoever uses it.

    \b
    holdfast keys rotate 6bYt0ZsVq1Xw
    holdfast keys rotate 6bYt0ZsVq1Xw --grace 3600
    """
    async with session.opened() as hf:
        made = await hf.keys.rotate(key, grace=grace)
    _show(session, made)


@command(group)
async def revoke(session: Session, key: IdArgument) -> None:
    """End a key, for good. Within a second no process accepts it any more.

    \b
    holdfast keys revoke 6bYt0ZsVq1Xw
    """
    async with session.opened() as hf:
        revoked = await hf.keys.revoke(key)
    session.out.done(f"key {revoked.id} ({revoked.name}) is revoked", key_fields(revoked))


def _show(session: Session, made: NewKey) -> None:
    session.out.done(made.text, {"key": made.text, **key_fields(made.key)})
    session.out.note("note: keep it now: it cannot be shown again")
