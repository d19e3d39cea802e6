"""Settings of queues and reports on queues and workers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeAlias

from holdfast.core.queue import (
    MOST_COUNTED,
    MOST_SAMPLED,
    RATES_OVER_S,
    QueueInfo,
    QueueRates,
    QueueSettings,
    last_priorities,
)
from holdfast.core.worker import WorkerInfo
from holdfast.stores.base import Hint
from holdfast.stores.postgres.rules import record_change
from holdfast.stores.postgres.transaction import Tx
from holdfast.stores.queue_rows import COLUMNS, changed, from_row, rates_of, to_row
from holdfast.stores.rule_rows import queue_words

if TYPE_CHECKING:
    from asyncpg import Record


Lanes: TypeAlias = tuple[list[str], list[int]]
"""Their queues and their priorities, as statements take them."""


async def set_queue(tx: Tx, queue: str, settings: QueueSettings, *, only: Collection[str] | None, by: str) -> None:
    """Replace a queue's settings, or only some of them; gates follow at the next insert or claim."""
    await tx.fetch("rules.alone")
    found = await tx.fetch("queues.setting", queue)
    current = from_row(*found[0]) if found else QueueSettings()
    settings = changed(current, settings, only)
    await tx.fetch("queues.put", queue, *to_row(settings))
    await record_change(tx, by, "queue", queue, queue_words(current), queue_words(settings))
    tx.hints |= Hint.SETTINGS | Hint.READY | Hint.OPENED


def last_lanes(rows: Sequence[Record]) -> Lanes:
    """Queues and priorities of which jobs are started only when nothing else is ready."""
    lanes = [(queue, priority) for queue, *row in rows for priority in last_priorities(from_row(*row))]
    return [queue for queue, _ in lanes], [priority for _, priority in lanes]


def settings_of(rows: Sequence[Record]) -> dict[str, QueueSettings]:
    """Every queue that has settings or has ever had a job."""
    return {queue: from_row(*row) for queue, *row in rows}


async def list_queues(tx: Tx) -> list[QueueInfo]:
    """All queues with their depths, in one snapshot, with bounded work for each."""
    await tx.fetch("list_jobs.pin")
    rows = await tx.fetch("queues.overview", MOST_COUNTED)
    lanes: defaultdict[str, dict[int, int]] = defaultdict(dict)
    oldest: dict[str, datetime] = {}
    for queue, priority, count, entered_at in await tx.fetch("queues.lanes", MOST_COUNTED, [row[0] for row in rows]):
        lanes[queue][priority] = count
        oldest[queue] = min(entered_at, oldest.get(queue, entered_at))
    return [
        QueueInfo(
            name=row["queue"],
            accepting=not row["closed"] and not row.get("draining"),
            oldest_ready_s=_age_s(tx.now, oldest.get(row["queue"])),
            by_priority=lanes[row["queue"]],
            settings=from_row(*map(row.get, COLUMNS)),
            **{name: row[name] for name in ("ready", "scheduled", "blocked", "parked", "running", "dead")},
        )
        for row in rows
    ]


async def queue_rates(tx: Tx, *, most: int = MOST_SAMPLED) -> dict[str, QueueRates]:
    """How quickly jobs came, began and ended lately."""
    rows = await tx.fetch("queues.rates", most, tx.now - timedelta(seconds=RATES_OVER_S))
    return {
        queue: rates_of(*counts, over_s=(tx.now - since).total_seconds()) for queue, *counts, since in map(tuple, rows)
    }


def _age_s(now: datetime, then: datetime | None) -> float | None:
    return None if then is None else max(0.0, (now - then).total_seconds())


async def list_workers(tx: Tx) -> list[WorkerInfo]:
    """Registered workers, also those whose lease has just run out."""
    return [
        WorkerInfo(
            id=row["id"],
            host=row["host"],
            pid=row["pid"],
            concurrency=row["concurrency"],
            queues=tuple(row["queues"]),
            started_at=row["started_at"],
            lease_until=row["lease_until"],
            lag_s=row["lag_s"],
            running=row["count"],
        )
        for row in await tx.fetch("queues.workers")
    ]
