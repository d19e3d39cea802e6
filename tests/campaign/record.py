"""What the store's file says while the campaign goes on, by plain SELECTs, past all of the store's code."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from uuid import UUID

LIVE = ("ready", "timer", "active", "blocked", "parked")
ENDED = ("done", "dead")


class Glance:
    """A reader of one database file; a connection per look, so that it never holds anything up."""

    def __init__(self, database: Path) -> None:
        self._database = database

    def counts(self) -> dict[str, int]:
        """How many rows there are in each table of jobs and of workers."""
        tables = ("job", *LIVE, *ENDED, "worker")
        [row] = self._query(f"SELECT {', '.join(f'(SELECT count(*) FROM {table})' for table in tables)}")
        return dict(zip(tables, row, strict=True))

    def live(self) -> int:
        """Jobs that have not ended."""
        counts = self.counts()
        return sum(counts[table] for table in LIVE)

    def identity(self, pid: int) -> UUID | None:
        """Under which identity a process is registered now."""
        rows = self._query("SELECT id FROM worker WHERE pid = ? ORDER BY started_at DESC LIMIT 1", pid)
        return UUID(bytes=rows[0][0]) if rows else None

    def is_registered(self, worker: UUID) -> bool:
        return bool(self._query("SELECT 1 FROM worker WHERE id = ?", worker.bytes))

    def some(self, table: str, limit: int) -> list[UUID]:
        """A few jobs of one table."""
        rows = self._query(f"SELECT job_id FROM {table} ORDER BY random() LIMIT ?", limit)
        return [UUID(bytes=job_id) for (job_id,) in rows]

    def integrity(self) -> str:
        [(answer,)] = self._query("PRAGMA integrity_check")
        return str(answer)

    def _query(self, statement: str, *values: object) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(self._database, isolation_level=None, timeout=30)) as db:
            return db.execute(statement, values).fetchall()  # type: ignore[no-any-return]
