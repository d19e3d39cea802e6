"""Reports on gates: who holds them, and how many wait there; never used for decisions of the engine."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from uuid import UUID

from holdfast.core.gates import Barrier, Place
from holdfast.core.gates_text import read_gates
from holdfast.core.job import JobId
from holdfast.core.loss import ALONE_FROM
from holdfast.core.queue import MOST_COUNTED
from holdfast.stores.flow import LATELY_S, MOST_NAMED, Circumstances, GateInfo
from holdfast.stores.sqlite.statements import load

SQL = load("gate_reports")


def circumstances(db: sqlite3.Connection, job_id: JobId, *, now: float) -> Circumstances | None:
    """What a report about one waiting job needs."""
    row = db.execute(SQL["of_job"], (job_id.bytes, ALONE_FROM)).fetchone()
    if row is None:
        return None
    gates_text, alone, queue, priority = row
    waits_for = db.execute(SQL["waits_for"], (job_id.bytes, MOST_NAMED)).fetchall()
    (ended,) = db.execute(SQL["ended_lately"], (now - LATELY_S, MOST_COUNTED, queue, priority)).fetchone()
    return Circumstances(read_gates(gates_text), tuple(UUID(bytes=each) for (each,) in waits_for), bool(alone), ended)


def gates(db: sqlite3.Connection, places: Sequence[Place] | None, *, limit: int, now: float) -> list[GateInfo]:
    """The gates in use among these; None: any, up to a limit."""
    if places is None:
        bounds = {"limit": limit, "most": limit + len(Barrier), "now": now}
        places = [Place(Barrier(kind), key) for kind, key in db.execute(SQL["in_use"], bounds)]
    found = [GateInfo(place, *db.execute(SQL["gate"], (*place, MOST_COUNTED, now)).fetchone()) for place in places]
    return [gate for gate in found if gate.held or gate.waiting or gate.full_at is not None][:limit]
