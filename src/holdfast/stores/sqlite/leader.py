"""Who leads: one holder per role, for one lease at a time."""

from __future__ import annotations

import sqlite3

from holdfast.core.job import WorkerId
from holdfast.stores.base import Lead
from holdfast.stores.sqlite.statements import load
from holdfast.stores.sqlite.transaction import Tx

SQL = load("leader")


def lead(tx: Tx, role: str, holder: WorkerId, *, lease_s: float) -> Lead | None:
    """Take or prolong the lead; None where somebody else holds it."""
    asked = {"role": role, "holder": holder.bytes, "now": tx.now, "lease_s": lease_s}
    row = tx.db.execute(SQL["lead"], asked).fetchone()
    return None if row is None else Lead(row[0])


def resign(tx: Tx, role: str, holder: WorkerId) -> None:
    """End one's own lead."""
    tx.db.execute(SQL["resign"], {"role": role, "holder": holder.bytes, "now": tx.now})


def leading(db: sqlite3.Connection, role: str, *, now: float) -> Lead | None:
    """The lead that somebody has now."""
    row = db.execute(SQL["leading"], {"role": role, "now": now}).fetchone()
    return None if row is None else Lead(row[0])
