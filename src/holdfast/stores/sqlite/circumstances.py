"""A report about one waiting job: what lies before it, beside its own row; never used for decisions of the engine."""

from __future__ import annotations

import sqlite3
from uuid import UUID

from holdfast.core.gates import Barrier, Place
from holdfast.core.gates_text import limit_in_text, read_gates
from holdfast.core.job import JobId
from holdfast.core.loss import alone
from holdfast.core.queue import MOST_COUNTED
from holdfast.stores.flow import LATELY_S, MOST_ENDED, MOST_NAMED, STILL_S, Circumstances, Lately
from holdfast.stores.sqlite.statements import load

SQL = load("circumstances")


def circumstances(db: sqlite3.Connection, job_id: JobId, *, now: float) -> Circumstances | None:
    """None: there is no such job. Of what has ended lately the newest are looked at."""
    row = db.execute(SQL["job"], (job_id.bytes,)).fetchone()
    if row is None:
        return None
    gates, queue, priority, losses, reason, limit = row
    awaited = db.execute(SQL["waits_for"], (job_id.bytes, MOST_NAMED)).fetchall()
    held = db.execute(SQL["holds"], (job_id.bytes,)).fetchall()
    ahead, beside = _line(db, job_id)
    if reason != Barrier.LIMIT:
        limit = None
    bounds = {"since": now - LATELY_S, "still_since": now - STILL_S, "most": MOST_ENDED}
    which = {"queue": queue, "priority": priority, "limit": limit, "text": limit and limit_in_text(limit)}
    *counts, since = db.execute(SQL["lately"], {**bounds, **which}).fetchone()
    return Circumstances(
        gates=read_gates(gates),
        waits_for=tuple(UUID(bytes=each) for (each,) in awaited),
        alone=alone(losses),
        holds=frozenset(Place(Barrier(kind), key) for kind, key in held),
        line_ahead=ahead,
        line_beside=beside,
        lately=Lately(now - since, *counts),
    )


def _line(db: sqlite3.Connection, job_id: JobId) -> tuple[int, int]:
    """Of those who wait where it does: who comes first in its lane, and who is of others, which take turns with it."""
    row = db.execute(SQL["line"], (job_id.bytes,)).fetchone()
    if row is None:
        return 0, 0
    *lane, tenant, line, seq = row
    if line:
        (older,) = db.execute(SQL["older"], (*lane, tenant, seq, MOST_COUNTED)).fetchone()
        (ahead,) = db.execute(SQL["ahead_of_tag"], (*lane, tenant, older, MOST_COUNTED)).fetchone()
    else:
        (ahead,) = db.execute(SQL["ahead_of_place"], (*lane, seq, MOST_COUNTED)).fetchone()
    (beside,) = db.execute(SQL["beside"], (*lane, MOST_COUNTED)).fetchone()
    return ahead, min(beside, MOST_COUNTED)
