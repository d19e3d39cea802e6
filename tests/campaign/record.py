"""What the store says while the campaign goes on, by plain SELECTs, past all of the store's code."""

from __future__ import annotations

import sqlite3
import time
from abc import ABC, abstractmethod
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from tests.history.postgres_audit import looking_into

LIVE = ("ready", "timer", "active", "blocked", "parked")
ENDED = ("done", "dead")
_PATIENCE_S = 30.0


class Glance(ABC):
    """A reader of one store, which never holds anything up."""

    _MOVES = "SELECT max(n) FROM audit_trail"

    def counts(self) -> dict[str, int]:
        """How many rows there are in each table of jobs and of workers."""
        tables = ("job", *LIVE, *ENDED, "worker")
        [row] = self.query(f"SELECT {', '.join(f'(SELECT count(*) FROM {table})' for table in tables)}")
        return dict(zip(tables, row, strict=True))

    def live_counts(self) -> dict[str, int]:
        """The same of those tables alone that stay small."""
        tables = (*LIVE, "worker")
        [row] = self.query(f"SELECT {', '.join(f'(SELECT count(*) FROM {table})' for table in tables)}")
        return dict(zip(tables, row, strict=True))

    def live(self) -> int:
        """Jobs that have not ended."""
        counts = self.live_counts()
        return sum(counts[table] for table in LIVE)

    def moves(self) -> int:
        """How many rows have come and gone, if there is a trail: at least; some may have been rolled back."""
        [(count,)] = self.query(self._MOVES)
        return int(count or 0)

    def identity(self, pid: int) -> UUID | None:
        """Under which identity a process is registered now."""
        rows = self.query("SELECT id FROM worker WHERE pid = ? ORDER BY started_at DESC LIMIT 1", pid)
        return _uuid(rows[0][0]) if rows else None

    def is_registered(self, worker: UUID | str) -> bool:
        return bool(self.query("SELECT 1 FROM worker WHERE id = ?", UUID(str(worker))))

    def some(self, table: str, limit: int) -> list[UUID]:
        """A few jobs of one table."""
        rows = self.query(f"SELECT job_id FROM {table} ORDER BY random() LIMIT ?", limit)
        return [_uuid(job_id) for (job_id,) in rows]

    @abstractmethod
    def query(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a statement with question marks in it, which may also be one that changes something."""

    @abstractmethod
    def integrity(self) -> str:
        """ "ok", or what is wrong with the files themselves."""


class SqliteGlance(Glance):
    """A connection per look."""

    def __init__(self, database: Path) -> None:
        self._database = database

    def query(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        plain = [value.bytes if isinstance(value, UUID) else value for value in values]
        with closing(sqlite3.connect(self._database, isolation_level=None, timeout=_PATIENCE_S)) as db:
            return db.execute(statement, plain).fetchall()

    def integrity(self) -> str:
        [(answer,)] = self.query("PRAGMA integrity_check")
        return str(answer)


class PostgresGlance(Glance):
    """A connection per look, too: the server may be gone between two of them, and is waited for."""

    _MOVES = "SELECT last_value FROM audit_trail_n_seq"

    def __init__(self, url: str, schema: str) -> None:
        self._url = url
        self._schema = schema

    def query(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        deadline: float | None = None  # from the first failure: on a busy machine an answer may take its time
        while True:
            try:
                with looking_into(self._url, self._schema) as db:
                    found = db.execute(statement.replace("?", "%s"), values)  # type: ignore[call-overload]
                    return found.fetchall() if found.description else []
            except psycopg.OperationalError:  # also the server's end amid the query
                deadline = deadline or time.monotonic() + _PATIENCE_S
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def integrity(self) -> str:
        return "ok"  # the server checks its pages when it reads them, and reading all of them is what the judge does


def _uuid(stored: Any) -> UUID:
    return UUID(bytes=stored) if isinstance(stored, bytes) else UUID(str(stored))
