"""An append-only trail of every row that came into or left a state table, by triggers. For tests only.

SQLite runs one writer at a time, so `n` is the order in which things really happened; what was rolled back is
not in the trail. An UPDATE of what identifies a row is written as a delete and an insert.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from tests.history.identity import text_id
from tests.history.records import AuditOp, AuditRow

from holdfast.core.state import State

_TABLE = """
CREATE TABLE audit_trail (
    n        INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id   BLOB NOT NULL,
    tbl      TEXT NOT NULL,
    op       TEXT NOT NULL,
    state    TEXT,
    token    INTEGER,
    worker   BLOB,
    attempt  INTEGER,
    crashes  INTEGER,
    at       REAL NOT NULL
)
"""

#: State tables, and the state that a row of each stands for, as SQL over that row.
TABLES = {
    "ready": f"'{State.READY}'",
    "timer": f"'{State.SCHEDULED}'",
    "active": f"'{State.RUNNING}'",
    "blocked": f"'{State.BLOCKED}'",
    "parked": f"'{State.PARKED}'",
    "done": "{row}.state",
    "dead": f"'{State.DEAD}'",
}
_COLUMNS = ("token", "worker", "attempt", "crashes")
_NOW = "(julianday('now') - 2440587.5) * 86400.0"


def install_audit(path: Path | str) -> None:
    """Add the trail to a migrated database; rows that are there already are noted as found."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as db:
        db.execute("BEGIN IMMEDIATE")
        db.execute(_TABLE)
        db.execute("CREATE INDEX audit_by_job ON audit_trail (job_id)")
        _watch(db, "job", "id", "NULL", watched=("id",))
        for table, state in TABLES.items():
            _watch(db, table, "job_id", state, watched=("job_id", "token", "worker", "state"))
        db.execute("CREATE TABLE audit_worker (worker BLOB PRIMARY KEY, lease_until REAL NOT NULL)")
        db.execute(
            "CREATE TRIGGER audit_worker_delete AFTER DELETE ON worker BEGIN "
            "INSERT INTO audit_worker (worker, lease_until) VALUES (OLD.id, OLD.lease_until); END"
        )
        db.execute("COMMIT")


def read_removed_workers(db: sqlite3.Connection) -> dict[str, float]:
    """When the lease of each worker that was removed would have ended, on the store's clock."""
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'audit_worker'").fetchone():
        return {}
    rows = db.execute("SELECT worker, lease_until FROM audit_worker")
    return {text_id(worker): lease_until for worker, lease_until in rows}


def read_audit(db: sqlite3.Connection, some: str = "") -> tuple[AuditRow, ...] | None:
    """The trail, oldest first; None where none was installed. `some`: a condition with a place for the id's column."""
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'audit_trail'").fetchone():
        return None
    query = "SELECT n, job_id, op, state, token, worker, attempt, crashes, at FROM audit_trail"
    rows = db.execute(f"{query} {some.format('job_id')} ORDER BY n")
    return tuple(
        AuditRow(
            n=n,
            job_id=text_id(job_id),
            op=AuditOp(op),
            state=None if state is None else State(state),
            token=token,
            worker=None if worker is None else text_id(worker),
            attempt=attempt,
            crashes=crashes,
            at=at,
        )
        for n, job_id, op, state, token, worker, attempt, crashes, at in rows
    )


def _watch(db: sqlite3.Connection, table: str, id_column: str, state: str, *, watched: tuple[str, ...]) -> None:
    columns = {row[1] for row in db.execute(f"PRAGMA table_info({table})")}

    def note(op: AuditOp, row: str) -> str:
        values = ", ".join(f"{row}.{name}" if name in columns else "NULL" for name in _COLUMNS)
        return (
            f"INSERT INTO audit_trail (job_id, tbl, op, state, {', '.join(_COLUMNS)}, at) "
            f"SELECT {row}.{id_column}, '{table}', '{op}', {state.format(row=row)}, {values}, {_NOW}"
        )

    db.execute(f"{note(AuditOp.FOUND, table)} FROM {table}")
    inserted, deleted = note(AuditOp.INSERT, "NEW"), note(AuditOp.DELETE, "OLD")
    db.execute(f"CREATE TRIGGER audit_{table}_insert AFTER INSERT ON {table} BEGIN {inserted}; END")
    db.execute(f"CREATE TRIGGER audit_{table}_delete AFTER DELETE ON {table} BEGIN {deleted}; END")
    identity = [name for name in watched if name in columns]
    changed = " OR ".join(f"OLD.{name} IS NOT NEW.{name}" for name in identity)
    db.execute(
        f"CREATE TRIGGER audit_{table}_update AFTER UPDATE OF {', '.join(identity)} ON {table} "
        f"WHEN {changed} BEGIN {deleted}; {inserted}; END"
    )
