"""The PostgreSQL that is measured on, with everything durable, and what it uses."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path

import asyncpg

from bench.race import Cost
from holdfast.local import LocalPostgres

# As a small production server: every commit is on disk before it is answered (which is also the default). Checkpoints
# are far apart, because the whole pages that follow one would make WAL per job a matter of luck.
SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "shared_buffers": "512MB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "1h",
}


@contextlib.contextmanager
def running() -> Iterator[LocalPostgres]:
    """A server for a whole run of measurements."""
    directory = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    with LocalPostgres(directory, settings=SETTINGS, temporary=True) as server:
        yield server


def fresh_database(server: LocalPostgres) -> str:
    """Its url; it goes with the server."""
    return server.create_database(f"bench_{secrets.token_hex(4)}")


def cost(server: LocalPostgres) -> Cost:
    """CPU of the postmaster, of the children that it has reaped, and of those that live; and the place in the WAL."""
    postmaster, *children = server.processes()
    fields = _times(postmaster)
    ticks = sum(fields) + sum(sum(_times(child)[:2]) for child in children)
    return Cost(ticks / os.sysconf("SC_CLK_TCK"), asyncio.run(_wal_position(server.url)))


def _times(pid: int) -> list[int]:
    """User and system time of its own, then of its children that have ended, in ticks."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):  # reaped since: then the postmaster's own line has it, or will have
        return [0, 0, 0, 0]
    return [int(field) for field in stat.rpartition(")")[2].split()[11:15]]


async def _wal_position(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        position = await connection.fetchval("SELECT pg_current_wal_insert_lsn() - '0/0'")
    finally:
        await connection.close()
    return int(position)
