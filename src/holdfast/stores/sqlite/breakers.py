"""Circuit breakers: what the ends of runs, and operators, make of them. Rules: `core.breaker`."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from holdfast.core.breaker import CLOSED, BreakerMark, BreakerState, after_mark
from holdfast.core.queue import MOST_COUNTED
from holdfast.stores.flow import BreakerInfo
from holdfast.stores.gate_rows import breaker_of
from holdfast.stores.sqlite.statements import load
from holdfast.stores.sqlite.transaction import Tx

SQL = load("breakers")


def read(db: sqlite3.Connection, name: str) -> BreakerState:
    """Closed, where it has never failed."""
    row = db.execute(SQL["state"], (name,)).fetchone()
    return CLOSED if row is None else breaker_of(*row)


def write(tx: Tx, name: str, state: BreakerState) -> None:
    """Whoever writes a state that lets more or fewer through makes the gate due."""
    tx.db.execute(SQL["set"], (name, json.dumps(state.recent), state.open_until, state.held))


def mark(tx: Tx, marks: Sequence[BreakerMark]) -> dict[str, BreakerState]:
    """What these ends of runs make of their breakers; those that opened or closed are told."""
    turned: dict[str, BreakerState] = {}
    for name in sorted({mark.breaker.name for mark in marks}):
        before = state = read(tx.db, name)
        for each in marks:
            if each.breaker.name == name:
                state = after_mark(state, tx.now, each)
        if state != before:
            write(tx, name, state)
        if state.open_until != before.open_until:
            turned[name] = state
    return turned


def breakers(db: sqlite3.Connection, *, now: float) -> list[BreakerInfo]:
    """All of them, by name."""
    return [
        BreakerInfo(name, state, state.phase(now), waiting)
        for name, *row, waiting in db.execute(SQL["list"], (MOST_COUNTED,))
        if isinstance(name, str)
        for state in [breaker_of(*row)]
    ]
