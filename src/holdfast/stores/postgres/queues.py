"""Settings of queues and reports on queues and workers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from holdfast.core.queue import QueueInfo, QueueSettings
from holdfast.core.worker import WorkerInfo
from holdfast.stores.base import Hint
from holdfast.stores.postgres.transaction import Tx
from holdfast.stores.queue_rows import from_row, to_row

if TYPE_CHECKING:
    from asyncpg import Record


async def set_queue(tx: Tx, queue: str, settings: QueueSettings, *, only: Collection[str] | None) -> None:
    """Replace a queue's settings, or only some of them; gates follow at the next insert or claim."""
    if only is not None:
        found = await tx.fetch("queues.setting", queue)
        current = from_row(*found[0]) if found else QueueSettings()
        settings = replace(current, **{name: getattr(settings, name) for name in only})
    await tx.fetch("queues.set", queue, *to_row(settings))
    tx.hints |= Hint.SETTINGS | Hint.READY | Hint.OPENED


def settings_of(rows: Sequence[Record]) -> dict[str, QueueSettings]:
    """Every queue that has settings or has ever had a job."""
    return {queue: from_row(*row) for queue, *row in rows}


async def list_queues(tx: Tx) -> list[QueueInfo]:
    """All queues with their depths, in one snapshot."""
    settings = settings_of(await tx.fetch("queues.settings"))
    ready: dict[str, dict[int, int]] = {name: {} for name in settings}
    oldest: dict[str, datetime] = {}
    for queue, priority, count, entered_at in await tx.fetch("queues.ready"):
        ready.setdefault(queue, {})[priority] = count
        oldest[queue] = min(entered_at, oldest.get(queue, entered_at))
    counts: dict[str, dict[str, int]] = {name: {} for name in ready}
    for queue, state, count in await tx.fetch("queues.others"):
        counts.setdefault(queue, {})[state] = count
    closed = {row["queue"] for row in await tx.fetch("queues.gates") if row["closed"]}
    return [
        QueueInfo(
            name=queue,
            ready=sum(ready.get(queue, {}).values()),
            accepting=queue not in closed,
            oldest_ready_s=max(0.0, (tx.now - oldest[queue]).total_seconds()) if queue in oldest else None,
            by_priority=ready.get(queue, {}),
            settings=settings.get(queue, QueueSettings()),
            **{state: counts[queue].get(state, 0) for state in ("scheduled", "blocked", "parked", "running", "dead")},
        )
        for queue in sorted(counts)
    ]


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
            running=row["count"],
        )
        for row in await tx.fetch("queues.workers")
    ]
