"""The third history: what a SQLite store has on record, by plain SELECTs, past all of the store's code."""

from __future__ import annotations

import sqlite3
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.history.audit import read_audit, read_removed_workers
from tests.history.identity import text_id
from tests.history.records import AttemptRow, JobRecord, KeyRow, Place, StoreRecord

from holdfast.core.gates_text import read_gates
from holdfast.core.state import State

#: For every state table: the columns of a `Place`, in its order; a literal where the table has none.
_PLACES = {
    "ready": "'ready', NULL, NULL, attempt, crashes, NULL, NULL, 0.0",
    "timer": "'scheduled', NULL, NULL, attempt, crashes, due_at, NULL, 0.0",
    "active": "'running', token, worker, attempt, crashes, NULL, NULL, started_at",
    "blocked": "'blocked', NULL, NULL, 0, 0, NULL, NULL, 0.0",
    "parked": "'parked', NULL, NULL, attempt, crashes, NULL, reason, 0.0",
    "done": "state, token, worker, attempt, 0, NULL, reason, coalesce(started_at, 0.0)",
    "dead": "'dead', token, worker, attempt, 0, NULL, reason, coalesce(started_at, 0.0)",
}
RULED = "SELECT DISTINCT name FROM setting_change WHERE what = 'limit'"


def read_sqlite(path: Path | str, *, as_of: float | None = None, ids: Sequence[str] | None = None) -> StoreRecord:
    """Read the record, or that of some jobs, in one transaction.

    `as_of`: now, where the store's clock is not the machine's.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path}: there is no database to read a record from")
    with closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as db:
        some = ""
        if ids is not None:
            db.execute("CREATE TEMP TABLE wanted (id BLOB PRIMARY KEY)")
            db.executemany("INSERT INTO wanted VALUES (?)", [(UUID(job_id).bytes,) for job_id in ids])
            some = "WHERE {} IN (SELECT id FROM wanted)"
        db.execute("BEGIN")
        return StoreRecord(
            jobs=_jobs(db, some),
            depth=dict(db.execute("SELECT queue, ready FROM depth")),
            keys=tuple(
                KeyRow(tenant, key, text_id(job_id))
                for tenant, key, job_id in db.execute("SELECT tenant, key, job_id FROM idempotency_key")
            ),
            audit=read_audit(db, some),
            removed_workers=read_removed_workers(db),
            as_of=time.time() if as_of is None else as_of,
            ruled=frozenset(name for (name,) in db.execute(RULED)),
        )


def _jobs(db: sqlite3.Connection, some: str) -> dict[str, JobRecord]:
    places = [
        (text_id(job_id), _place(*row))
        for table, columns in _PLACES.items()
        for job_id, *row in db.execute(f"SELECT job_id, {columns} FROM {table} {some.format('job_id')}")
    ]
    attempts = [
        (text_id(job_id), AttemptRow(token, number, cause, _worker(worker), *times))
        for job_id, token, number, cause, worker, *times in db.execute(
            "SELECT job_id, token, number, cause, worker, coalesce(started_at, 0.0), ended_at FROM attempt "
            + some.format("job_id")
        )
    ]
    waits = db.execute("SELECT join_id, job_id FROM member EXCEPT SELECT join_id, job_id FROM arrival")
    bodies = db.execute(f"SELECT id, queue, max_attempts, gates, task FROM job {some.format('id')}")
    return assemble(
        [(text_id(job_id), *rest) for job_id, *rest in bodies],
        places,
        attempts,
        [(text_id(join_id), text_id(job_id)) for join_id, job_id in waits],
    )


def assemble(
    bodies: Iterable[tuple[Any, ...]],
    places: Iterable[tuple[str, Place]],
    attempts: Iterable[tuple[str, AttemptRow]],
    waits: Iterable[tuple[Any, ...]],
) -> dict[str, JobRecord]:
    """The jobs by their ids, from rows that begin with one; bodies are (id, queue, max_attempts, gates, task)."""
    placed, tried, waiting = _grouped(places), _grouped(attempts), _grouped(waits)
    described = {job_id: rest for job_id, *rest in bodies}
    records = {}
    for job_id in described.keys() | placed.keys():  # a row without its body is still a job that exists
        queue, max_attempts, gates, task = described.get(job_id, ("", None, None, ""))
        records[job_id] = JobRecord(
            job_id=job_id,
            queue=queue,
            places=tuple(placed[job_id]),
            attempts=tuple(tried[job_id]),
            max_attempts=max_attempts,
            waits_for=tuple(waiting[job_id]),
            gates=read_gates(gates),
            task=task or "",
        )
    return records


def _grouped(rows: Iterable[tuple[Any, ...]]) -> defaultdict[str, list[Any]]:
    groups: defaultdict[str, list[Any]] = defaultdict(list)
    for job_id, row in rows:
        groups[job_id].append(row)
    return groups


def _place(state: str, token: int | None, worker: bytes | None, *rest: Any) -> Place:
    return Place(State(state), token, _worker(worker), *rest)


def _worker(stored: bytes | None) -> str | None:
    return None if stored is None else text_id(stored)
