"""The third history where it is PostgreSQL's: what the store has on record, by plain SELECTs, past all of its code."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import psycopg
from tests.history.postgres_audit import looking_into, read_postgres_audit
from tests.history.records import AttemptRow, JobRecord, KeyRow, Place, StoreRecord
from tests.history.store_record import RULED, assemble

from holdfast.core.state import State

_STATES = {str(state): state for state in State}
_STARTED = "coalesce(extract(epoch FROM started_at), 0.0)::float8"
#: For every state table: the columns of a `Place`, in its order; a literal where the table has none.
_PLACES = {
    "ready": "'ready', NULL, NULL, attempt, crashes, NULL, NULL, 0.0::float8",
    "timer": "'scheduled', NULL, NULL, attempt, crashes, extract(epoch FROM due_at)::float8, NULL, 0.0::float8",
    "active": f"'running', token, worker::text, attempt, crashes, NULL, NULL, {_STARTED}",
    "blocked": "'blocked', NULL, NULL, 0, 0, NULL, NULL, 0.0::float8",
    "parked": "'parked', NULL, NULL, attempt, crashes, NULL, reason, 0.0::float8",
    "done": "CASE WHEN cancelled THEN 'cancelled' ELSE 'succeeded' END, token, worker::text, attempt, 0, NULL, reason, "
    + _STARTED,
    "dead": f"'dead', token, worker::text, attempt, 0, NULL, reason, {_STARTED}",
}


def read_postgres(
    url: str, schema: str, *, as_of: float | None = None, ids: Sequence[str] | None = None
) -> StoreRecord:
    """Read the record, or that of some jobs, in one transaction.

    `as_of`: now, where the store's clock is not the machine's.
    """
    with looking_into(url, schema) as db:
        db.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        with db.transaction():
            return _read(db, ids, time.time() if as_of is None else as_of)


def _read(db: psycopg.Connection[Any], ids: Sequence[str] | None, as_of: float) -> StoreRecord:
    audit = read_postgres_audit(db, ids)
    removed = [] if audit is None else _rows(db, "SELECT worker::text, lease_until FROM audit_worker")
    depth = (
        "SELECT queue, sum(ready)::int8 FROM (SELECT queue, ready FROM depth "
        "UNION ALL SELECT queue, change FROM depth_change) d GROUP BY queue"
    )
    effects: dict[str, tuple[int, ...]] = {}
    orders: frozenset[str] = frozenset()
    [(users_tables,)] = _rows(db, "SELECT to_regclass('campaign_effect') IS NOT NULL")
    if users_tables:
        for job_id, token in _some(db, "SELECT job_id::text, token FROM campaign_effect", "job_id", ids):
            effects[job_id] = (*effects.get(job_id, ()), token)
        orders = frozenset(job_id for (job_id,) in _some(db, "SELECT job_id::text FROM campaign_order", "job_id", ids))
    return StoreRecord(
        jobs=_jobs(db, ids),
        depth=dict(_rows(db, depth)),
        keys=tuple(KeyRow(*row) for row in _rows(db, "SELECT tenant, key, job_id::text FROM idempotency_key")),
        audit=audit,
        removed_workers=dict(removed),
        as_of=as_of,
        effects=effects,
        ruled=frozenset(name for (name,) in _rows(db, RULED)),
        orders=orders,
    )


def _jobs(db: psycopg.Connection[Any], ids: Sequence[str] | None) -> dict[str, JobRecord]:
    places = [
        (job_id, Place(_STATES[state], *rest))
        for table, columns in _PLACES.items()
        for job_id, state, *rest in _some(db, f"SELECT job_id::text, {columns} FROM {table}", "job_id", ids)
    ]
    attempts = [
        (job_id, AttemptRow(*rest))
        for job_id, *rest in _some(
            db,
            f"SELECT job_id::text, token, number, cause, worker::text, {_STARTED}, "
            "extract(epoch FROM ended_at)::float8 FROM attempt",
            "job_id",
            ids,
        )
    ]
    waits = _rows(
        db, "SELECT join_id::text, job_id::text FROM (TABLE member EXCEPT SELECT job_id, join_id FROM arrival) w"
    )
    bodies = _some(db, "SELECT id::text, queue, max_attempts, gates, task FROM job", "id", ids)
    return assemble(bodies, places, attempts, waits)


def _some(db: psycopg.Connection[Any], query: str, key: str, ids: Sequence[str] | None) -> list[tuple[Any, ...]]:
    """The rows of these jobs, or of all."""
    if ids is None:
        return _rows(db, query)
    return db.execute(f"{query} WHERE {key} = ANY (%s::uuid[])", [ids]).fetchall()  # type: ignore[call-overload,no-any-return]


def _rows(db: psycopg.Connection[Any], query: str) -> list[tuple[Any, ...]]:
    return db.execute(query).fetchall()  # type: ignore[call-overload,no-any-return]
