"""Reports on gates: who holds them, and how many wait there; never used for decisions of the engine."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from holdfast.core.gates import Barrier, Place
from holdfast.core.queue import MOST_COUNTED
from holdfast.stores.flow import GateInfo
from holdfast.stores.gate_rows import places_of_rows, seconds_of
from holdfast.stores.sqlite.statements import load

SQL = load("gate_reports")


def gates(db: sqlite3.Connection, places: Sequence[Place] | None, *, limit: int, now: float) -> list[GateInfo]:
    """The gates in use among these; None: any, up to a limit."""
    if places is None:
        bounds = {"limit": limit, "most": limit + len(Barrier), "now": now}
        places = places_of_rows(db.execute(SQL["in_use"], bounds))
    found = [_gate(place, *db.execute(SQL["gate"], (*place, MOST_COUNTED, now)).fetchone()) for place in places]
    return [gate for gate in found if gate.held or gate.waiting or gate.full_at is not None][:limit]


def _gate(place: Place, held: int, waiting: int, full_at: Any) -> GateInfo:
    return GateInfo(place, held, waiting, seconds_of(full_at))
