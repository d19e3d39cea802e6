"""What a store has on record of jobs that ended, read past the library: SQLite by file, PostgreSQL by SQL."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from typing import Any

import asyncpg


def all_ended(url: str) -> bool:
    """Whether nothing waits or runs."""
    if url.startswith("sqlite"):
        [[left]] = _rows(url, "SELECT EXISTS (SELECT 1 FROM ready) OR EXISTS (SELECT 1 FROM active)")
    else:
        [[left]] = _rows(url, "SELECT EXISTS (SELECT FROM holdfast.ready) OR EXISTS (SELECT FROM holdfast.active)")
    return not left


def when_ended(url: str, *, since_s: float) -> list[float]:
    """When each job ended that did so since then, in seconds, in that order."""
    if url.startswith("sqlite"):
        rows = _rows(url, "SELECT ended_at FROM done ORDER BY 1")
    else:
        rows = _rows(url, "SELECT extract(epoch FROM ended_at)::float8 FROM holdfast.done ORDER BY 1")
    return [row[0] for row in rows if row[0] >= since_s]


def _rows(url: str, query: str) -> list[Any]:
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(f"file:{url.removeprefix('sqlite:///')}?mode=ro", uri=True)) as db:
            return db.execute(query).fetchall()
    return asyncio.run(_fetch(url, query))


async def _fetch(url: str, query: str) -> list[Any]:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetch(query)
    finally:
        await connection.close()
