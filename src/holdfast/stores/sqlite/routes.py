"""Where jobs go, as operators say it; every change is on record in the transaction that makes it."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection

from holdfast.core.routing import MOST_AT_RUN_TIME, Rule
from holdfast.stores.route_rows import refuse_more, rerouted, route_of, route_words, row_of, rules_of_rows
from holdfast.stores.routes import Rerouted
from holdfast.stores.sqlite.rules import record_change
from holdfast.stores.sqlite.statements import load
from holdfast.stores.sqlite.texts import as_text
from holdfast.stores.sqlite.transaction import Tx

SQL = load("routes")


def routes(db: sqlite3.Connection) -> tuple[Rule, ...]:
    """All that make sense."""
    return rules_of_rows(map(as_text, db.execute(SQL["all"], (MOST_AT_RUN_TIME,))))


def set_route(
    tx: Tx, pattern: str, *, queue: str | None, priority: int | None, by: str, only: Collection[str] | None
) -> Rerouted:
    """The whole of what is said for a pattern, or only a part of it."""
    row = tx.db.execute(SQL["one"], (pattern,)).fetchone()
    before = None if row is None else route_of(*as_text(row))
    after = rerouted(before, queue, priority, only)
    if after is None:
        tx.db.execute(SQL["drop"], (pattern,))
    else:
        if row is None:
            refuse_more(tx.db.execute(SQL["count"]).fetchone()[0])
        tx.db.execute(SQL["set"], (pattern, *row_of(after)))
    record_change(tx, by=by, what="route", name=pattern, before=route_words(before), after=route_words(after))
    return Rerouted(before, after)
