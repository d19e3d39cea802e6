"""Waiting jobs are given another queue or priority; and what reports say of those who wait, and of gates."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from holdfast.core.gates import Barrier
from holdfast.core.gates import Place as Barred
from holdfast.core.gates_text import read_gates
from holdfast.core.job import JobId
from holdfast.core.loss import alone
from holdfast.core.queue import MOST_COUNTED
from holdfast.stores.base import Hint
from holdfast.stores.flow import LATELY_S, MOST_NAMED, Circumstances, GateInfo, Position
from holdfast.stores.postgres.serving import columns_of
from holdfast.stores.postgres.transaction import Place, Tx

if TYPE_CHECKING:
    from holdfast.stores.postgres.engine import Engine


async def prepare(engine: Engine, job_ids: Sequence[JobId], queue: str) -> None:
    """What others would wait for is made before: a queue that nobody has met yet, and that it has tenants."""
    await engine.query("queues.meet", [queue])
    [(named,)] = await engine.query("moving.named_tenants", job_ids)
    if named and queue not in engine.tenanted:
        await engine.query("tenants.mark", [queue])
        engine.tenanted.add(queue)


async def move_jobs(tx: Tx, job_ids: Sequence[JobId], *, queue: str | None, priority: int | None) -> int:
    """Ready ones go to the tail of the new lane, in the order given; the others stay where they wait."""
    ready = {row["job_id"]: row for row in await tx.fetch("moving.leave_ready", job_ids)}
    shifted = await tx.fetch("moving.shift", job_ids, queue)
    moved = [*ready, *(row["job_id"] for row in shifted)]
    if not moved:
        return 0
    await tx.fetch("moving.bodies", moved, queue, priority)
    for row in shifted:
        if row["counted"] is not None and queue is not None:
            tx.parked(row["counted"], -1)
            tx.parked(queue)
    places = []
    for row in (ready[job_id] for job_id in dict.fromkeys(job_ids) if job_id in ready):
        tx.left_ready(row["queue"])
        lane = (row["queue"] if queue is None else queue, row["priority"] if priority is None else priority)
        places.append(Place(row["job_id"], *lane, row["attempt"], row["losses"], row["crashes"], row["attached"]))
    await tx.enter_ready(places)
    tx.hints |= Hint.READY
    return len(moved)


async def position(tx: Tx, job_id: JobId) -> Position | None:
    """None: it is not ready."""
    rows = await tx.fetch("moving.position", job_id, MOST_COUNTED)
    return Position(*rows[0]) if rows else None


async def circumstances(tx: Tx, job_id: JobId) -> Circumstances | None:
    """None: there is no such job. Of what has ended lately the newest are looked at, so far as reports count."""
    rows = await tx.fetch("moving.circumstances", job_id)
    if not rows:
        return None
    text, queue, priority, losses = rows[0]
    awaited = await tx.fetch("moving.waits_for", job_id, MOST_NAMED)
    since = tx.now - timedelta(seconds=LATELY_S)
    ended = await tx.value("moving.ended_lately", since, MOST_COUNTED, queue, priority)
    return Circumstances(read_gates(text), tuple(row[0] for row in awaited), alone(losses), ended)


async def gates(tx: Tx, places: Sequence[Barred] | None, *, limit: int) -> list[GateInfo]:
    """Those of them that somebody runs through, waits at, or has spent tokens of."""
    if places is None:
        places = [Barred(Barrier(kind), key) for kind, key in await tx.fetch("serving.in_use", limit)]
    found = []
    rows = await tx.fetch("serving.usage", *columns_of(set(places)), MOST_COUNTED)
    for kind, key, held, full_at, _, _, _, waiting in rows:
        if held or waiting or (full_at is not None and full_at > tx.now):
            full_s = None if full_at is None else full_at.timestamp()
            found.append(GateInfo(Barred(Barrier(kind), key), held, waiting, full_s))
    return sorted(found, key=lambda info: info.place)[:limit]
