"""Reports on gates: who holds them, and how many wait there; never used for decisions of the engine."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from holdfast.core.gates import Barrier, Place
from holdfast.core.queue import MOST_COUNTED
from holdfast.stores.flow import GateInfo
from holdfast.stores.sqlite.statements import load

SQL = load("gate_reports")


def gates(db: sqlite3.Connection, places: Sequence[Place] | None, *, limit: int, now: float) -> list[GateInfo]:
    """The gates in use among these; None: any, up to a limit."""
    if places is None:
        bounds = {"limit": limit, "most": limit + len(Barrier), "now": now}
        places = [Place(Barrier(kind), key) for kind, key in db.execute(SQL["in_use"], bounds)]
    found = [GateInfo(place, *db.execute(SQL["gate"], (*place, MOST_COUNTED, now)).fetchone()) for place in places]
    return [gate for gate in found if gate.held or gate.waiting or gate.full_at is not None][:limit]
