"""Settings of queues and reports on queues and workers."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from holdfast.core.queue import MOST_SAMPLED, RATES_OVER_S, QueueInfo, QueueRates, QueueSettings, last_priorities
from holdfast.core.queue_options import NO_QUEUE_OPTIONS
from holdfast.core.worker import WorkerInfo
from holdfast.stores.base import Hint
from holdfast.stores.job_reports import value_of
from holdfast.stores.queue_rows import changed, from_row, rates_of, to_row
from holdfast.stores.rule_rows import queue_words
from holdfast.stores.sqlite.gates import free_left_to_last, free_reserved
from holdfast.stores.sqlite.rules import record_change
from holdfast.stores.sqlite.statements import load
from holdfast.stores.sqlite.texts import text_of
from holdfast.stores.sqlite.transaction import Tx

SQL = load("queues")


def set_queue(tx: Tx, queue: str, settings: QueueSettings, *, only: Collection[str] | None, by: str) -> None:
    """Replace a queue's settings, or only some of them; gates follow at the next insert or claim."""
    before = queue_settings(tx.db).get(queue, QueueSettings())
    settings = changed(before, settings, only)
    *row, concurrency, retry_budget, bypass_priority = to_row(settings)
    tx.db.execute(SQL["set"], (queue, *row))
    if settings.options == NO_QUEUE_OPTIONS:
        tx.db.execute(SQL["drop_options"], (queue,))
    else:
        tx.db.execute(SQL["set_options"], (queue, concurrency, retry_budget, bypass_priority))
    record_change(tx, by=by, what="queue", name=queue, before=queue_words(before), after=queue_words(settings))
    if settings.paused:
        free_reserved(tx, queue)
    elif last := last_priorities(settings):
        free_left_to_last(tx, queue, last)
    tx.hints |= Hint.SETTINGS | Hint.READY | Hint.OPENED


def queue_settings(db: sqlite3.Connection) -> dict[str, QueueSettings]:
    """Every queue that has settings or has ever had a job."""
    rows = [(text_of(name), *row) for name, *row in db.execute(SQL["settings"])]
    return {name: from_row(*row) for name, *row in rows if name is not None}


def list_queues(db: sqlite3.Connection, *, now: float) -> list[QueueInfo]:
    """All queues with their depths, in one read transaction of the caller."""
    settings = queue_settings(db)
    ready: dict[str, dict[int, int]] = {name: {} for name in settings}
    oldest: dict[str, float] = {}
    for queue, priority, count, entered_at in db.execute(SQL["depths"]):
        ready.setdefault(queue, {})[priority] = count
        oldest[queue] = min(entered_at, oldest.get(queue, entered_at))
    counts: dict[str, dict[str, int]] = {name: {} for name in ready}
    for queue, state, count in db.execute(SQL["others"]):
        counts.setdefault(queue, {})[state] = count
    closed = dict(db.execute(SQL["closed"]).fetchall())
    return [
        QueueInfo(
            name=queue,
            ready=sum(ready.get(queue, {}).values()),
            accepting=not closed.get(queue) and not settings.get(queue, QueueSettings()).draining,
            oldest_ready_s=max(0.0, now - oldest[queue]) if queue in oldest else None,
            by_priority=ready.get(queue, {}),
            settings=settings.get(queue, QueueSettings()),
            **{state: counts[queue].get(state, 0) for state in ("scheduled", "blocked", "parked", "running", "dead")},
        )
        for queue in sorted(counts)
    ]


def queue_rates(db: sqlite3.Connection, *, now: float, most: int = MOST_SAMPLED) -> dict[str, QueueRates]:
    """How quickly jobs came, began and ended lately."""
    rows = db.execute(SQL["rates"], {"most": most, "since": now - RATES_OVER_S})
    return {queue: rates_of(*counts, over_s=now - since) for queue, *counts, since in rows}


def list_workers(db: sqlite3.Connection) -> list[WorkerInfo]:
    """Registered workers, also those whose lease has just run out."""
    return [
        WorkerInfo(
            id=UUID(bytes=row[0]),
            host=row[1],
            pid=row[2],
            concurrency=row[3],
            queues=_queues(row[4]),
            started_at=datetime.fromtimestamp(row[5], UTC),
            lease_until=datetime.fromtimestamp(row[6], UTC),
            lag_s=row[7],
            running=row[8],
        )
        for row in db.execute(SQL["workers"])
    ]


def _queues(text: Any) -> tuple[str, ...]:
    found = value_of(text)
    return tuple(map(str, found)) if isinstance(found, list) else ()
