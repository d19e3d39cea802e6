"""Waiting jobs are given another queue or priority; and what reports say of those who wait, and of gates."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from holdfast.core.gates import Barrier
from holdfast.core.gates import Place as Barred
from holdfast.core.gates_text import limit_in_text, read_gates
from holdfast.core.job import JobId
from holdfast.core.loss import alone
from holdfast.core.queue import MOST_COUNTED
from holdfast.stores.base import Hint
from holdfast.stores.flow import (
    LATELY_S,
    MOST_ENDED,
    MOST_NAMED,
    STILL_S,
    Circumstances,
    GateInfo,
    Lately,
    Position,
)
from holdfast.stores.gate_rows import places_of_rows
from holdfast.stores.postgres.end import free_slots
from holdfast.stores.postgres.lines import hand_down
from holdfast.stores.postgres.serving import columns_of
from holdfast.stores.postgres.tenants import tagged
from holdfast.stores.postgres.transaction import Place, Tx

if TYPE_CHECKING:
    from holdfast.stores.postgres.engine import Engine


async def prepare(engine: Engine, job_ids: Sequence[JobId], queue: str) -> None:
    """What others would wait for is made before: a queue that nobody has met yet, and that it has tenants."""
    await engine.query("queues.meet", [queue])
    named = any(row["named"] for row in await engine.query("moving.lanes", job_ids))
    if named and queue not in engine.tenanted:
        await engine.query("tenants.mark", [queue])
        engine.tenanted.add(queue)


async def move_jobs(tx: Tx, job_ids: Sequence[JobId], *, queue: str | None, priority: int | None) -> int:
    """Those that wait; ready ones go to the tail of the new lane, in the order given. Those that are there already keep
    their places, so that a repeated call is the same as one."""
    # Held first: from then on nobody else moves them, so that what is read next holds.
    free = {row["job_id"]: row["losses"] for row in await tx.fetch("moving.ready", job_ids)}
    lines = {row["job_id"]: row for row in await tx.fetch("moving.parked", job_ids)}
    lanes = {}
    for job_id, old_queue, old_priority, _ in await tx.fetch("moving.lanes", job_ids):
        lane = (old_queue if queue is None else queue, old_priority if priority is None else priority)
        if lane != (old_queue, old_priority):
            lanes[job_id] = (old_queue, lane)
    wanted = [job_id for job_id in dict.fromkeys(job_ids) if job_id in lanes]
    if not wanted:
        return 0
    ready = [job_id for job_id in wanted if job_id in free]
    parked = {job_id: lines[job_id]["queue"] for job_id in wanted if job_id in lines}
    moved = [*ready, *parked, *(row[0] for row in await tx.fetch("moving.shift", wanted, queue))]
    await tx.fetch("moving.bodies", moved, queue, priority)
    await free_slots(tx, ready)  # they were kept for their turn, which they give up
    for job_id in ready:
        old_queue, (new_queue, _) = lanes[job_id]
        tx.left_ready(old_queue)
        tx.left_ready(new_queue, -1)
    for job_id, old_queue in parked.items():
        tx.parked(old_queue, -1)
        tx.parked(lanes[job_id][1][0])
    # Last, so that nobody has to wait for tags for longer than needed.
    places = [Place(job_id, *lanes[job_id][1], losses=free.get(job_id, 0)) for job_id in (*parked, *ready)]
    if not tx.tenanted.isdisjoint(place.queue for place in places):
        places = await tagged(tx, places)
    waiting, tails = places[: len(parked)], places[len(parked) :]
    await tx.many("moving.move_parked", [(p.job_id, p.queue, p.priority, p.tag) for p in waiting])
    await hand_down(tx, [lines[job_id] for job_id in parked])
    numbers = [row[0] for row in await tx.fetch("moving.numbers", len(tails))]
    await tx.many(
        "moving.to_the_tail",
        [(p.job_id, p.queue, p.priority, p.tag, seq) for p, seq in zip(tails, numbers, strict=True)],
        tx.now,
    )
    if ready:
        tx.hints |= Hint.READY
        tx.entered += tails  # what was announced of them is in the streams of their old lanes
    return len(moved)


async def position(tx: Tx, job_id: JobId) -> Position | None:
    """None: it is not ready."""
    rows = await tx.fetch("moving.position", job_id, MOST_COUNTED)
    return Position(*rows[0]) if rows else None


async def circumstances(tx: Tx, job_id: JobId) -> Circumstances | None:
    """None: there is no such job. Of what has ended lately the newest are looked at."""
    rows = await tx.fetch("moving.circumstances", job_id)
    if not rows:
        return None
    text, queue, priority, losses, reason, limit, blocked = rows[0]
    awaited = await tx.fetch("moving.waits_for", job_id, MOST_NAMED) if blocked else ()
    held = await tx.fetch("moving.holds", job_id)
    lines = await tx.fetch("moving.line", job_id, MOST_COUNTED)
    ahead, beside = lines[0] if lines else (0, 0)
    if reason != Barrier.LIMIT:
        limit = None
    times = (tx.now - timedelta(seconds=LATELY_S), tx.now - timedelta(seconds=STILL_S))
    which = (queue, priority, limit, limit and limit_in_text(limit))
    [row] = await tx.fetch("moving.lately", *times, MOST_ENDED, *which)
    *counts, since = row
    return Circumstances(
        gates=read_gates(text),
        waits_for=tuple(row[0] for row in awaited),
        alone=alone(losses),
        holds=frozenset(Barred(Barrier(kind), key) for kind, key in held),
        line_ahead=ahead,
        line_beside=min(beside, MOST_COUNTED),
        lately=Lately((tx.now - since).total_seconds(), *counts),
    )


async def gates(tx: Tx, places: Sequence[Barred] | None, *, limit: int) -> list[GateInfo]:
    """Those of them that somebody runs through, waits at, or has spent tokens of."""
    if places is None:
        places = places_of_rows(await tx.fetch("serving.in_use", limit))
    found = []
    rows = await tx.fetch("serving.usage", *columns_of(set(places)), MOST_COUNTED)
    for kind, key, held, full_at, _, _, _, waiting in rows:
        if held or waiting or (full_at is not None and full_at > tx.now):
            full_s = None if full_at is None else full_at.timestamp()
            found.append(GateInfo(Barred(Barrier(kind), key), held, waiting, full_s))
    return sorted(found, key=lambda info: info.place)[:limit]
