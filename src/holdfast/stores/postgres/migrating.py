"""Brings the schema up to date: one transaction for each step, one process at a time; or says what that would run.

A step's file may say `-- oldest: N`: programs that know the schema up to version N go on working on it. One that says
nothing is for programs that know it, only.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import asyncpg

from holdfast.core.errors import StoreBroken, StoreUnavailable
from holdfast.runtime.failpoints import FailpointHit, afailpoint
from holdfast.stores.moments import MIGRATE_BEGIN, MIGRATE_COMMITTED, MIGRATE_INSIDE, struck
from holdfast.stores.postgres.statements import migrations

if TYPE_CHECKING:
    from asyncpg import Connection

#: For the process that is migrating just now, and for a table that somebody uses: everybody else would wait behind us.
_TURN_TIMEOUT, _LOCK_TIMEOUT = "30s", "5s"
_OLDEST = re.compile(r"^-- oldest: (\d+)$", re.MULTILINE)

_EXISTS = "SELECT to_regclass($1) IS NOT NULL"
_VERSION = "SELECT version, oldest FROM {schema}.migration ORDER BY version DESC LIMIT 1"
_FIRST = """CREATE SCHEMA IF NOT EXISTS {schema};
CREATE TABLE {schema}.migration (
    version     int4 PRIMARY KEY,
    oldest      int4 NOT NULL,
    name        text NOT NULL,
    applied_at  timestamptz NOT NULL DEFAULT now()
);
"""
_STEP = """{script}
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} FROM PUBLIC;
INSERT INTO {schema}.migration (version, oldest, name) VALUES ({version}, {oldest}, '{name}');
"""
_TURN = """SET LOCAL lock_timeout = '{turn}';
SELECT pg_advisory_xact_lock(hashtextextended('holdfast {schema}', 0));
SET LOCAL lock_timeout = '{lock}';
SELECT set_config('transaction_timeout', '0', true) WHERE current_setting('server_version_num')::int >= 170000;
"""


class SchemaVersion(NamedTuple):
    """What a schema is, and who can work on it."""

    version: int
    """0 where there is none yet."""
    oldest: int
    """The least version that a program has to know."""


class Step(NamedTuple):
    """One migration as it is run."""

    version: int
    name: str
    sql: str


def steps(schema: str) -> list[Step]:
    """All of them, in order."""
    found = []
    for version, name, script in migrations(schema):
        said = _OLDEST.search(script)
        text = _STEP.format(
            script=script, schema=schema, version=version, name=name, oldest=said[1] if said else version
        )
        found.append(Step(version, name, (_FIRST.format(schema=schema) if version == 1 else "") + text))
    return found


async def schema_version(connection: Connection[Any], schema: str) -> SchemaVersion:
    """Read without changing anything."""
    if not await connection.fetchval(_EXISTS, f"{schema}.migration"):
        return SchemaVersion(0, 0)
    row = await connection.fetchrow(_VERSION.format(schema=schema))
    return SchemaVersion(0, 0) if row is None else SchemaVersion(*row)


async def check_schema_version(connection: Connection[Any], schema: str, place: str) -> None:
    """StoreBroken where the tables are missing, or not such as this version can work on."""
    current, known = await schema_version(connection, schema), migrations(schema)[-1][0]
    if current.version < known:
        what = f"has schema version {current.version}, and this Holdfast needs {known}"
        raise StoreBroken(
            f"PostgreSQL store {place} {what if current.version else 'has no tables yet'}: run `holdfast migrate`"
        )
    if current.oldest > known:
        raise StoreBroken(
            f"PostgreSQL store {place} has schema version {current.version}, which is for programs that know version "
            f"{current.oldest}, and this Holdfast knows {known}: upgrade the holdfast package"
        )


async def plan(connection: Connection[Any], schema: str) -> str:
    """The SQL that `migrate` would run now, as a script; empty where there is nothing to do."""
    current = await schema_version(connection, schema)
    turn = _turn(schema)
    pending = [step for step in steps(schema) if step.version > current.version]
    return "\n".join(f"-- {step.name}\nBEGIN;\n{turn}{step.sql}COMMIT;\n" for step in pending)


async def migrate(connection: Connection[Any], schema: str, place: str) -> list[str]:
    """Bring the schema up to date; the names of what was applied. Several processes may try at once."""
    applied: list[str] = []
    for step in steps(schema):
        try:
            await afailpoint(MIGRATE_BEGIN)
            async with connection.transaction(isolation="read_committed"):
                await connection.execute(_turn(schema))
                if (await schema_version(connection, schema)).version < step.version:  # now that it is our turn
                    await connection.execute(step.sql)
                    applied.append(step.name)
                await afailpoint(MIGRATE_INSIDE)
            await afailpoint(MIGRATE_COMMITTED)
        except FailpointHit as hit:
            raise struck(hit) from hit
        except asyncpg.LockNotAvailableError as error:
            raise StoreUnavailable(
                f"PostgreSQL store {place}: migration {step.name} waits for a lock that somebody holds, and was given "
                "up so that nobody waits behind it; it changed nothing: try again, or end the transaction that holds "
                "the lock (pg_stat_activity, pg_blocking_pids)"
            ) from error
    return applied


def _turn(schema: str) -> str:
    return _TURN.format(schema=schema, turn=_TURN_TIMEOUT, lock=_LOCK_TIMEOUT)
