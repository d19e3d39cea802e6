"""Circuit breakers: what the ends of runs, and operators, make of them. Rules: `core.breaker`."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from holdfast.core.breaker import CLOSED, NO_FIGURES, BreakerFigures, BreakerMark, BreakerState, after_mark
from holdfast.core.queue import MOST_COUNTED
from holdfast.stores.flow import BreakerInfo
from holdfast.stores.gate_rows import breaker_of, figures_of
from holdfast.stores.rule_rows import breaker_info
from holdfast.stores.sqlite.statements import load
from holdfast.stores.sqlite.texts import text_of
from holdfast.stores.sqlite.transaction import Tx

SQL = load("breakers")


def read(db: sqlite3.Connection, name: str) -> BreakerState:
    """Closed, where it has never failed."""
    row = db.execute(SQL["state"], (name,)).fetchone()
    return CLOSED if row is None else breaker_of(*row)


def write(tx: Tx, name: str, state: BreakerState) -> None:
    """Whoever writes a state that lets more or fewer through makes the gate due."""
    tx.db.execute(SQL["set"], (name, json.dumps(state.recent), state.open_until, state.held))


def figures(db: sqlite3.Connection, name: str) -> BreakerFigures:
    """What operators say of how it counts."""
    row = db.execute(SQL["figures"], (name,)).fetchone()
    return NO_FIGURES if row is None else figures_of(*row)


def write_figures(tx: Tx, name: str, said: BreakerFigures) -> None:
    """From the next mark on."""
    if said == NO_FIGURES:
        tx.db.execute(SQL["drop_figures"], (name,))
    else:
        tx.db.execute(SQL["set_figures"], (name, *said))


def mark(tx: Tx, marks: Sequence[BreakerMark]) -> dict[str, BreakerState]:
    """What these ends of runs make of their breakers; those that opened or closed are told."""
    turned: dict[str, BreakerState] = {}
    for name in sorted({mark.breaker.name for mark in marks}):
        before, said = read(tx.db, name), figures(tx.db, name)
        state = before
        for each in marks:
            if each.breaker.name == name:
                state = after_mark(state, tx.now, each, said)
        if state != before:
            write(tx, name, state)
        if state.open_until != before.open_until:
            turned[name] = state
    return turned


def breakers(db: sqlite3.Connection, *, now: float) -> list[BreakerInfo]:
    """All of them, by name."""
    return [
        breaker_info(name, breaker_of(recent, open_until, held), figures_of(*said), waiting, now=now)
        for stored, recent, open_until, held, waiting, *said in db.execute(SQL["list"], (MOST_COUNTED,))
        if (name := text_of(stored)) is not None
    ]
