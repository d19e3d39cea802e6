"""The trail of `audit.py` for a PostgreSQL store, by triggers in its schema. For tests only.

`n` comes from a sequence when a row moves, not when its transaction commits. A job's next move needs the row that the
last one left behind, so it comes after that commit: for each job, and for each limit, `n` is the true order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from tests.history.records import AuditOp, AuditRow

from holdfast.core.state import State

_COLUMNS = ("token", "worker", "attempt", "crashes")
_NULL = "NULL"
# Much quicker than asking the enumerations, and there are millions of rows.
_OPS = {str(op): op for op in AuditOp}
_STATES = {None: None} | {str(state): state for state in State}
#: Per table: the column that names the job, the state as SQL over {row}, and which of `_COLUMNS` it has.
_TABLES = {
    "job": ("id", _NULL, ()),
    "ready": ("job_id", f"'{State.READY}'", ("attempt", "crashes")),
    "timer": ("job_id", f"'{State.SCHEDULED}'", ("attempt", "crashes")),
    "active": ("job_id", f"'{State.RUNNING}'", _COLUMNS),
    "blocked": ("job_id", f"'{State.BLOCKED}'", ()),
    "parked": ("job_id", f"'{State.PARKED}'", ("attempt", "crashes")),
    "done": (
        "job_id",
        f"CASE WHEN {{row}}.cancelled THEN '{State.CANCELLED}' ELSE '{State.SUCCEEDED}' END",
        ("token", "worker", "attempt"),
    ),
    "dead": ("job_id", f"'{State.DEAD}'", ("token", "worker", "attempt")),
}


@contextmanager
def looking_into(url: str, schema: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection on which the schema's tables go by their plain names."""
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("SELECT set_config('search_path', %s, false)", [schema])
        yield db


def install_postgres_audit(url: str, schema: str) -> None:
    """Add the trail to migrated tables; rows that are there already are noted as found."""
    with looking_into(url, schema) as db, db.transaction():
        _remove(db)
        _run(
            db,
            "CREATE TABLE audit_trail (n bigserial PRIMARY KEY, job_id uuid, tbl text, op text, state text, "
            "token int8, worker uuid, attempt int4, crashes int4, at float8)",
        )
        _run(db, "CREATE INDEX audit_by_job ON audit_trail (job_id)")
        for table in _TABLES:
            _watch(db, table, schema)
        _run(db, "CREATE TABLE audit_worker (worker uuid PRIMARY KEY, lease_until float8 NOT NULL)")
        _trigger(
            db,
            "worker",
            "DELETE",
            f"INSERT INTO {schema}.audit_worker VALUES (OLD.id, extract(epoch FROM OLD.lease_until))",
        )


def remove_postgres_audit(url: str, schema: str) -> None:
    """As if there had never been one: the tables are used by others afterwards."""
    with looking_into(url, schema) as db, db.transaction():
        _remove(db)


def read_postgres_audit(db: psycopg.Connection[Any], ids: Sequence[str] | None = None) -> tuple[AuditRow, ...] | None:
    """The whole trail, or that of some jobs, oldest first; None where none was installed."""
    [(there,)] = db.execute("SELECT to_regclass('audit_trail') IS NOT NULL").fetchall()
    if not there:
        return None
    some = "" if ids is None else "WHERE job_id = ANY (%s::uuid[])"
    query = f"SELECT n, job_id::text, op, state, token, worker::text, attempt, crashes, at FROM audit_trail {some}"
    rows = db.execute(f"{query} ORDER BY n", [] if ids is None else [ids])  # type: ignore[call-overload]
    return tuple(AuditRow(n, job_id, _OPS[op], _STATES[state], *rest) for n, job_id, op, state, *rest in rows)


def _watch(db: psycopg.Connection[Any], table: str, schema: str) -> None:
    """Whole statements are noted at a time: row by row, the trail would cost the server more than the jobs do."""
    key, state, has = _TABLES[table]

    def note(op: AuditOp, row: str, source: str = "") -> str:
        values = ", ".join(f"{row}.{name}" if name in has else _NULL for name in _COLUMNS)
        return (
            f"INSERT INTO {schema}.audit_trail (job_id, tbl, op, state, {', '.join(_COLUMNS)}, at) "
            f"SELECT {row}.{key}, '{table}', '{op}', {state.format(row=row)}, {values}, "
            f"extract(epoch FROM clock_timestamp()) {source}"
        )

    _run(db, note(AuditOp.FOUND, table, f"FROM {table}"))
    each = "REFERENCING {} TABLE AS r FOR EACH STATEMENT"
    _trigger(db, table, "INSERT", note(AuditOp.INSERT, "r", "FROM r"), each=each.format("NEW"))
    _trigger(db, table, "DELETE", note(AuditOp.DELETE, "r", "FROM r"), each=each.format("OLD"))
    identity = [key, *(name for name in ("token", "worker") if name in has)]
    changed = " OR ".join(f"OLD.{name} IS DISTINCT FROM NEW.{name}" for name in identity)
    action = f"{note(AuditOp.DELETE, 'OLD')}; {note(AuditOp.INSERT, 'NEW')}"
    _trigger(db, table, "UPDATE", action, each=f"FOR EACH ROW WHEN ({changed})")


def _trigger(db: psycopg.Connection[Any], table: str, event: str, action: str, *, each: str = "FOR EACH ROW") -> None:
    name = f"audit_{table}_{event.lower()}"
    _run(db, f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {action}; RETURN NULL; END $$")
    _run(db, f"CREATE TRIGGER {name} AFTER {event} ON {table} {each} EXECUTE FUNCTION {name}()")


def _remove(db: psycopg.Connection[Any]) -> None:
    for table in (*_TABLES, "worker"):
        for event in ("insert", "delete", "update"):
            _run(db, f"DROP FUNCTION IF EXISTS audit_{table}_{event} CASCADE")
    _run(db, "DROP TABLE IF EXISTS audit_trail, audit_worker")


def _run(db: psycopg.Connection[Any], statement: str) -> None:
    db.execute(statement)  # type: ignore[call-overload]
