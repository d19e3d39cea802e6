"""Looks at the server before the first verb: the checks that give clear errors, and what can be told of a store."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from holdfast.core.errors import ConfigError, StoreBroken
from holdfast.stores.postgres.migrating import schema_version
from holdfast.stores.postgres.statements import migrations
from holdfast.stores.status import StoreStatus

if TYPE_CHECKING:
    from asyncpg import Connection

OLDEST_SERVER = 140000

_HIGHEST_PORT = 65_535
_PORT = re.compile(r":([^:\]]+)$")
_ENCODE = (
    "the URL of the PostgreSQL store cannot be taken apart: in its user and password write / as %2F, # as %23, "
    "? as %3F, @ as %40 and [ as %5B"
)


def place_of(url: str, schema: str) -> str:
    """The store in words, without a password; ConfigError where the URL cannot be taken apart."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ConfigError(_ENCODE) from None
    _, login, hosts = parts.netloc.rpartition("@")
    behind = parts.path + parts.fragment + ("" if parts.path else parts.query)
    if hosts and not login and "@" in behind:  # what looks like a host is a user and a piece of the password
        raise ConfigError(_ENCODE)
    for host in hosts.split(","):
        port = _PORT.search(host)
        if port is not None and not (port[1].isdecimal() and int(port[1]) <= _HIGHEST_PORT):
            raise ConfigError("the URL of the PostgreSQL store has a port that is not a number from 0 to 65535")
    return f"{hosts or 'local socket'}{parts.path or ''} (schema {schema})"


async def check_server(connection: Connection[Any], place: str, *, pooled: bool) -> None:
    """StoreBroken where this server cannot keep the promises."""
    number = int(await connection.fetchval("SELECT current_setting('server_version_num')"))
    if number < OLDEST_SERVER:
        raise StoreBroken(
            f"PostgreSQL store {place}: the server is version {number // 10000}, and Holdfast needs "
            f"{OLDEST_SERVER // 10000} or newer"
        )
    if await connection.fetchval("SELECT pg_is_in_recovery()"):
        raise StoreBroken(f"PostgreSQL store {place}: this server is a standby, which cannot be written to")
    encoding = await connection.fetchval("SELECT current_setting('server_encoding')")
    if encoding != "UTF8":
        raise StoreBroken(f"PostgreSQL store {place}: the database's encoding is {encoding}; it needs to be UTF8")
    if pooled:
        await _check_defaults(connection, place)


async def _check_defaults(connection: Connection[Any], place: str) -> None:
    """What we set for a connection of our own has to be the default where connections are shared."""
    if await connection.fetchval("SELECT current_setting('synchronous_commit')") in ("off", "local"):
        raise StoreBroken(
            f"PostgreSQL store {place}: synchronous_commit is off, so that accepted jobs could be lost, and it cannot "
            "be set through a pooler: ALTER ROLE … SET synchronous_commit = on"
        )
    isolation = await connection.fetchval("SELECT current_setting('default_transaction_isolation')")
    if isolation != "read committed":
        raise StoreBroken(
            f"PostgreSQL store {place}: default_transaction_isolation is {isolation}, and Holdfast needs read "
            "committed, which it cannot set through a pooler: ALTER ROLE … SET default_transaction_isolation = "
            "'read committed'"
        )


async def status(connection: Connection[Any], schema: str, place: str) -> StoreStatus:
    """What is there, read without changing it."""
    version = (await schema_version(connection, schema)).version
    known = migrations(schema)
    release = await connection.fetchval("SELECT current_setting('server_version')")
    return StoreStatus(
        place=place,
        exists=version > 0,
        schema=version,
        newest=known[-1][0],
        pending=tuple(name for number, name, _ in known if number > version),
        engine=f"PostgreSQL {release}",
    )
