"""Looks at the server and the schema before the first verb: the checks that give clear errors, and migrations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from holdfast.core.errors import StoreBroken
from holdfast.stores.base import StoreStatus
from holdfast.stores.postgres.statements import migrations

if TYPE_CHECKING:
    from asyncpg import Connection

OLDEST_SERVER = 140000
_LOCK_TIMEOUT = "5s"

_VERSION = "SELECT version FROM {schema}.migration ORDER BY version DESC LIMIT 1"
_EXISTS = "SELECT to_regclass($1) IS NOT NULL"


def place_of(url: str, schema: str) -> str:
    """The store in words, without a password."""
    parts = urlsplit(url)
    host = parts.hostname or "local socket"
    port = f":{parts.port}" if parts.port else ""
    return f"{host}{port}{parts.path or ''} (schema {schema})"


async def schema_version(connection: Connection[Any], schema: str) -> int:
    """0 where there is none yet."""
    if not await connection.fetchval(_EXISTS, f"{schema}.migration"):
        return 0
    return int(await connection.fetchval(_VERSION.format(schema=schema)) or 0)


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


async def check_schema_version(connection: Connection[Any], schema: str, place: str) -> None:
    """StoreBroken where the tables are missing, or not those that this version needs."""
    current, newest = await schema_version(connection, schema), migrations(schema)[-1][0]
    if current < newest:
        what = (
            "has no tables yet" if current == 0 else f"has schema version {current}, and this Holdfast needs {newest}"
        )
        raise StoreBroken(f"PostgreSQL store {place} {what}: run `holdfast migrate`")


async def migrate(connection: Connection[Any], schema: str, place: str) -> list[str]:
    """Bring the schema up to date; the names of what was applied. Several processes may try at once.

    Each step is a transaction under one lock. It waits for a table that somebody uses for some seconds at most, because
    everybody else would wait behind it meanwhile.
    """
    applied: list[str] = []
    for version, name, script in migrations(schema):
        async with connection.transaction(isolation="read_committed"):
            await connection.execute(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT}'")
            await connection.fetchval("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", f"holdfast {schema}")
            if await schema_version(connection, schema) >= version:  # asked again, now that we hold the lock
                continue
            if version == 1:
                await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
                await connection.execute(
                    f"CREATE TABLE {schema}.migration (version int4 PRIMARY KEY, name text NOT NULL, "
                    "applied_at timestamptz NOT NULL DEFAULT now())"
                )
            await connection.execute(script)
            await connection.execute(
                f"INSERT INTO {schema}.migration (version, name) VALUES ($1, $2)",  # noqa: S608
                version,
                name,
            )
            applied.append(name)
    return applied


async def status(connection: Connection[Any], schema: str, place: str) -> StoreStatus:
    """What is there, read without changing it."""
    version = await schema_version(connection, schema)
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
