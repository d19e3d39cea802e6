"""What operators say about limits, pauses and breakers; every change is on record in the transaction that makes it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

from holdfast.core.breaker import CLOSED, BreakerFigures
from holdfast.core.gates import Barrier, Place
from holdfast.core.rate import Pace
from holdfast.stores.base import Hint
from holdfast.stores.flow import SettingChange
from holdfast.stores.gate_rows import seconds_of
from holdfast.stores.job_reports import metadata_of
from holdfast.stores.rule_rows import (
    LIMIT,
    PAUSED_TASK,
    PAUSED_TENANT,
    breaker_words,
    changed_figures,
    figure_words,
    limit_words,
    pause_words,
    rules_of,
)
from holdfast.stores.sqlite import breakers
from holdfast.stores.sqlite.gates import make_all_due, make_due
from holdfast.stores.sqlite.statements import load
from holdfast.stores.sqlite.transaction import Tx

SQL = load("rules")

Words = dict[str, Any] | None


def record_change(tx: Tx, *, by: str, what: str, name: str, before: Words, after: Words) -> None:
    """Who changed what, from what to what; saying the same again, as after a lost answer, changes nothing."""
    if before == after:
        return
    texts = (None if words is None else json.dumps(words) for words in (before, after))
    tx.db.execute(SQL["record"], (tx.now, by, what, name, *texts))


def setting_changes(db: sqlite3.Connection, *, limit: int, before: int | None) -> list[SettingChange]:
    """Newest first."""
    return [
        SettingChange(number, datetime.fromtimestamp(at_s, UTC), by, what, name, metadata_of(old), metadata_of(new))
        for number, at, by, what, name, old, new in db.execute(SQL["changes"], (before, limit))
        if (at_s := seconds_of(at)) is not None
    ]


def set_limit(
    tx: Tx, name: str, *, size: int | None, pace: Pace | None, by: str, only: Collection[str] | None
) -> tuple[int | None, Pace | None]:
    """The whole of what operators say about a limit, or only a part of it."""
    row = tx.db.execute(SQL["rule"], (LIMIT, name)).fetchone()
    known = rules_of([] if row is None else [(LIMIT, name, *row)])
    before = limit_words(known.sizes.get(name), known.paces.get(name))
    if only is not None:
        size = size if "size" in only else known.sizes.get(name)
        pace = pace if "pace" in only else known.paces.get(name)
    if size is None and pace is None:
        tx.db.execute(SQL["drop"], (LIMIT, name))
    else:
        tx.db.execute(SQL["set"], (LIMIT, name, size, *(pace or (None, None, None))))
    record_change(tx, by=by, what="limit", name=name, before=before, after=limit_words(size, pace))
    _tell(tx)
    return size, pace


def set_paused(tx: Tx, *, task: str | None, tenant: str | None, paused: bool, by: str) -> None:
    """Nothing more of this task, or of this tenant, is started; or it is again."""
    for what, name in ((PAUSED_TASK, task), (PAUSED_TENANT, tenant)):
        if name is None:
            continue
        before = tx.db.execute(SQL["rule"], (what, name)).fetchone() is not None
        if paused:
            tx.db.execute(SQL["set"], (what, name, None, None, None, None))
        else:
            tx.db.execute(SQL["drop"], (what, name))
        words = {"before": pause_words(paused=before), "after": pause_words(paused=paused)}
        record_change(tx, by=by, what="pause", name=f"{what}:{name}", **words)
    _tell(tx)


def set_breaker(tx: Tx, name: str, *, closed: bool, by: str) -> None:
    """Close a breaker, as if it had never failed; or hold it open until somebody closes it."""
    before = breakers.read(tx.db, name)
    after = CLOSED if closed else before._replace(held=True)
    breakers.write(tx, name, after)
    words = {"before": breaker_words(before, tx.now), "after": breaker_words(after, tx.now)}
    record_change(tx, by=by, what="breaker", name=name, **words)
    make_due(tx, Place(Barrier.BREAKER, name), tx.now)
    tx.hints |= Hint.SETTINGS


def set_breaker_figures(
    tx: Tx, name: str, figures: BreakerFigures, *, by: str, only: Collection[str] | None
) -> BreakerFigures:
    """The whole of what operators say of how a breaker counts, or only a part of it."""
    before = breakers.figures(tx.db, name)
    after = changed_figures(before, figures, only)
    breakers.write_figures(tx, name, after)
    words = {"before": figure_words(before), "after": figure_words(after)}
    record_change(tx, by=by, what="breaker", name=name, **words)
    return after


def _tell(tx: Tx) -> None:
    make_all_due(tx)
    tx.hints |= Hint.SETTINGS | Hint.READY
