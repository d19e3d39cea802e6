"""A report about one waiting job: what lies before it, beside its own row; never used for decisions of the engine."""

from __future__ import annotations

import sqlite3
from uuid import UUID

from holdfast.core.gates_text import read_gates
from holdfast.core.job import JobId
from holdfast.core.loss import alone
from holdfast.core.queue import MOST_COUNTED
from holdfast.stores.flow import LATELY_S, MOST_NAMED, Circumstances
from holdfast.stores.sqlite.statements import load

SQL = load("circumstances")


def circumstances(db: sqlite3.Connection, job_id: JobId, *, now: float) -> Circumstances | None:
    """None: there is no such job. Of what has ended lately the newest are looked at, so far as reports count."""
    row = db.execute(SQL["job"], (job_id.bytes,)).fetchone()
    if row is None:
        return None
    gates, queue, priority, losses = row
    awaited = db.execute(SQL["waits_for"], (job_id.bytes, MOST_NAMED)).fetchall()
    (ended,) = db.execute(SQL["ended_lately"], (now - LATELY_S, MOST_COUNTED, queue, priority)).fetchone()
    return Circumstances(read_gates(gates), tuple(UUID(bytes=each) for (each,) in awaited), alone(losses), ended)
