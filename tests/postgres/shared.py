"""One server for a whole test run: the first process that needs it starts it, and it ends with the last of them."""

from __future__ import annotations

import os
import secrets
import tempfile
from pathlib import Path

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
