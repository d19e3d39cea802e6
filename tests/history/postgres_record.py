"""The third history where it is PostgreSQL's: what the store has on record, by plain SELECTs, past all of its code."""

from __future__ import annotations

import time
from typing import Any

import psycopg
from tests.history.postgres_audit import looking_into, read_postgres_audit
from tests.history.records import AttemptRow, JobRecord, KeyRow, Place, StoreRecord
from tests.history.store_record import assemble

from holdfast.core.state import State

_STARTED = "coalesce(extract(epoch FROM started_at), 0.0)::float8"
#: For every state table: the columns of a `Place`, in its order; a literal where the table has none.
_PLACES = {
    "ready": "'ready', NULL, NULL, attempt, crashes, NULL, NULL, 0.0::float8",
    "timer": "'scheduled', NULL, NULL, attempt, crashes, extract(epoch FROM due_at)::float8, NULL, 0.0::float8",
    "active": f"'running', token, worker, attempt, crashes, NULL, NULL, {_STARTED}",
    "blocked": "'blocked', NULL, NULL, 0, 0, NULL, NULL, 0.0::float8",
    "parked": "'parked', NULL, NULL, attempt, crashes, NULL, reason, 0.0::float8",
    "done": "CASE WHEN cancelled THEN 'cancelled' ELSE 'succeeded' END, token, worker, attempt, 0, NULL, reason, "
    + _STARTED,
    "dead": f"'dead', token, worker, attempt, 0, NULL, reason, {_STARTED}",
}


def read_postgres(url: str, schema: str, *, as_of: float | None = None) -> StoreRecord:
    """Read the whole record in one transaction. `as_of`: now, where the store's clock is not the machine's."""
    with looking_into(url, schema) as db:
        db.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        with db.transaction():
            audit = read_postgres_audit(db)
            removed = [] if audit is None else _rows(db, "SELECT worker::text, lease_until FROM audit_worker")
            return StoreRecord(
                jobs=_jobs(db),
                depth=dict(
                    _rows(
                        db,
                        "SELECT queue, sum(ready)::int8 FROM (SELECT queue, ready FROM depth "
                        "UNION ALL SELECT queue, change FROM depth_change) d GROUP BY queue",
                    )
                ),
                keys=tuple(KeyRow(*row) for row in _rows(db, "SELECT tenant, key, job_id::text FROM idempotency_key")),
                audit=audit,
                removed_workers=dict(removed),
                as_of=time.time() if as_of is None else as_of,
            )


def _jobs(db: psycopg.Connection[Any]) -> dict[str, JobRecord]:
    places = [
        (job_id, Place(State(state), token, worker and str(worker), *rest))
        for table, columns in _PLACES.items()
        for job_id, state, token, worker, *rest in _rows(db, f"SELECT job_id::text, {columns} FROM {table}")
    ]
    attempts = [
        (job_id, AttemptRow(*rest))
        for job_id, *rest in _rows(
            db,
            f"SELECT job_id::text, token, number, cause, worker::text, {_STARTED}, "
            "extract(epoch FROM ended_at)::float8 FROM attempt",
        )
    ]
    waits = _rows(
        db, "SELECT join_id::text, job_id::text FROM (TABLE member EXCEPT SELECT job_id, join_id FROM arrival) w"
    )
    bodies = _rows(db, "SELECT id::text, queue, max_attempts, limit_key, limit_size FROM job")
    return assemble(bodies, places, attempts, waits)


def _rows(db: psycopg.Connection[Any], query: str) -> list[tuple[Any, ...]]:
    return db.execute(query).fetchall()  # type: ignore[call-overload,no-any-return]
