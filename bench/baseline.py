"""The same tables and statements in a bare loop: no library, no asyncio, no checks; what SQLite itself allows."""

from __future__ import annotations

import json
import sqlite3
import tempfile
import time
import uuid
from pathlib import Path

from holdfast.stores.sqlite.opening import open_writer

_BATCH = 200


def insert_in_bulk(jobs: int) -> float:
    """Jobs per second, a thousand to a transaction."""
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as directory:
        db = open_writer(str(Path(directory) / "baseline.db"))
        began = time.perf_counter()
        _insert(db, jobs)
        rate = jobs / (time.perf_counter() - began)
        db.close()
        return rate


def claim_and_settle(jobs: int) -> float:
    """Jobs per second from `ready` over `active` to `done`, decoding each payload on the way."""
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as directory:
        db = open_writer(str(Path(directory) / "baseline.db"))
        _insert(db, jobs)
        worker = uuid.uuid4().bytes
        began = time.perf_counter()
        token = 0
        while True:
            db.execute("BEGIN IMMEDIATE")
            rows = db.execute(
                "SELECT r.seq, r.job_id, j.payload FROM ready r JOIN job j ON j.id = r.job_id "
                "WHERE r.queue = 'default' AND r.priority = 5 ORDER BY r.tag, r.seq LIMIT ?",
                (_BATCH,),
            ).fetchall()
            db.executemany(
                "DELETE FROM ready WHERE queue = 'default' AND priority = 5 AND tag = 0 AND seq = ?",
                [row[:1] for row in rows],
            )
            db.executemany(
                "INSERT INTO active (job_id, token, worker, attempt, queue, priority, tag, seq, losses, crashes, "
                "started_at) VALUES (?, ?, ?, 1, 'default', 5, 0, ?, 0, 0, 0.0)",
                [(row[1], token + n, worker, row[0]) for n, row in enumerate(rows)],
            )
            db.execute("COMMIT")
            if not rows:
                break
            for row in rows:
                json.loads(row[2])
            db.execute("BEGIN IMMEDIATE")
            db.executemany("DELETE FROM active WHERE job_id = ?", [row[1:2] for row in rows])
            db.executemany(
                "INSERT INTO done (job_id, state, token, attempt, worker, ended_at, result) "
                "VALUES (?, 'succeeded', ?, 1, ?, 0.0, x'6e756c6c')",
                [(row[1], token + n, worker) for n, row in enumerate(rows)],
            )
            db.execute("COMMIT")
            token += len(rows)
        rate = jobs / (time.perf_counter() - began)
        db.close()
        return rate


def _insert(db: sqlite3.Connection, jobs: int) -> None:
    for start in range(0, jobs, 1000):
        ids = [uuid.UUID(int=(time.time_ns() // 1_000_000 << 80) + start + n).bytes for n in range(1000)]
        db.execute("BEGIN IMMEDIATE")
        db.executemany(
            "INSERT INTO job (id, task, queue, priority, payload, created_at) VALUES (?, 'noop', 'default', 5, ?, 0.0)",
            [(job_id, b'{"args":[1],"kwargs":{}}') for job_id in ids],
        )
        db.executemany(
            "INSERT INTO ready (queue, priority, tag, seq, job_id, attempt, losses, crashes, entered_at) "
            "VALUES ('default', 5, 0, ?, ?, 0, 0, 0, 0.0)",
            [(start + n, job_id) for n, job_id in enumerate(ids)],
        )
        db.execute("COMMIT")
