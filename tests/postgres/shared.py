"""One server for a whole test run: the first process that needs it starts it, and it ends with the last of them."""

from __future__ import annotations

import os
import secrets
import tempfile
from pathlib import Path

import psycopg
from psycopg import sql

from holdfast.local import LocalPostgres
from holdfast.local.binaries import wheel_binaries

#: The server's processes may be killed all the same: what they have written is safe in the kernel's hands.
QUICK = {"fsync": "off", "full_page_writes": "off", "max_connections": "300", "max_wal_size": "4GB"}
#: What was committed is on the disk.
DURABLE = QUICK | {"fsync": "on", "full_page_writes": "on"}

# Not pytest's own directories: a server that root starts runs as somebody else, who cannot reach them.
_PLACE = Path(tempfile.gettempdir())


def chosen_binaries() -> Path:
    """The wheel's newest PostgreSQL, or what HOLDFAST_TEST_POSTGRES_BINARIES names: one of its versions, or a path."""
    named = os.environ.get("HOLDFAST_TEST_POSTGRES_BINARIES", "")
    if named.isdecimal():
        return wheel_binaries(int(named))
    return Path(named) if named else wheel_binaries()


def shared_server() -> LocalPostgres:
    """To be entered: the first to do so starts it, the others join."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or secrets.token_hex(16)
    directory = _PLACE / f"holdfast-test-{run}"
    return LocalPostgres(directory, settings=QUICK, binaries=chosen_binaries(), temporary=True)


def own_directory() -> Path:
    """A fresh place for one more server."""
    return Path(tempfile.mkdtemp(prefix="holdfast-test-", dir=_PLACE))


def make_logins_cheap(server: LocalPostgres) -> None:
    """One round of hashing in place of thousands, where the server knows how: they were most of what a login costs.

    Against guessing they would help a weak password; ours is long and random.
    """
    password = psycopg.conninfo.conninfo_to_dict(server.url)["password"]
    with psycopg.connect(server.url, autocommit=True) as connection:
        if connection.info.server_version < 160_000:
            return
        # Whoever joins the server does it again: one after the other, or PostgreSQL refuses the later one.
        connection.execute("SELECT pg_advisory_lock(1)")
        connection.execute("SET scram_iterations = 1")
        connection.execute(sql.SQL("ALTER ROLE CURRENT_USER PASSWORD {}").format(sql.Literal(password)))
