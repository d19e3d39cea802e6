"""Where waiting jobs stand in their lanes, and how they are put into others."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime

from holdfast.core.fairness import Lane
from holdfast.core.job import JobId
from holdfast.core.queue import MOST_COUNTED
from holdfast.stores.base import Hint
from holdfast.stores.flow import Position
from holdfast.stores.parking import BEHIND
from holdfast.stores.sqlite.gates import free_slots
from holdfast.stores.sqlite.lines import hand_down, tag_in_line
from holdfast.stores.sqlite.statements import load
from holdfast.stores.sqlite.tenants import give_tags, mark_tenanted
from holdfast.stores.sqlite.transaction import TailRow, Tx

SQL = load("moving")


def move_jobs(tx: Tx, job_ids: Sequence[JobId], *, queue: str | None, priority: int | None) -> int:
    """Those that wait; ready ones queue up at the tail, in the order given. Those that are there already keep their
    places, so that a repeated call is the same as one."""
    moved = 0
    tail: list[TailRow] = []
    for job_id in dict.fromkeys(job_id.bytes for job_id in job_ids):
        body = tx.db.execute(SQL["body"], (job_id,)).fetchone()
        if body is None:
            continue
        old_queue, old_priority, tenant = body
        lane = Lane(queue or old_queue, old_priority if priority is None else priority)
        if lane == (old_queue, old_priority):
            continue
        ready = tx.db.execute(SQL["ready"], (job_id,)).fetchone()
        parked = tx.db.execute(SQL["parked"], (job_id,)).fetchone()
        if not ready and not parked and not tx.db.execute(SQL["waits_elsewhere"], (job_id,)).fetchone()[0]:
            continue
        moved += 1
        tx.db.execute(SQL["set_lane"], (*lane, job_id))
        tx.depth_of(lane[0])  # tells whether it has tenants
        if tenant and lane[0] not in tx.tenanted:
            mark_tenanted(tx, [lane[0]])
        if ready:
            free_slots(tx, [job_id])  # they were kept for its turn, which it gives up
            tx.left_ready(old_queue, 1)
            tail.append((*lane, job_id, *ready))
        elif parked:
            _move_parked(tx, job_id, tenant, parked, lane)
            tx.left_parked(old_queue, 1)
            tx.entered_parked(lane.queue, 1)
        else:
            tx.left_ready(lane[0], 0)  # a queue is known from its first job on, ready or not
    _to_the_tail(tx, tail)
    return moved


def _to_the_tail(tx: Tx, rows: Sequence[TailRow]) -> None:
    if not rows:
        return
    seq = tx.take_numbers("seq", len(rows))
    places = [
        (queue, priority, tag, seq + n, tx.now, job_id)
        for n, ((queue, priority, job_id, *_), tag) in enumerate(zip(rows, give_tags(tx, rows), strict=True))
    ]
    tx.db.executemany(SQL["to_the_tail"], places)
    for queue, *_ in rows:
        tx.left_ready(queue, -1)
    tx.hints |= Hint.READY


def _move_parked(tx: Tx, job_id: bytes, tenant: str, was: tuple[str, str, str, int, str, int], lane: Lane) -> None:
    """Its tag says where it stood in its old lane; in the new one it stands at the tail. Where it waits it keeps its
    place among the others of its tenant, and leaves its turn in the old lane to them."""
    *_, old_tenant, old_tag = was
    [tag] = give_tags(tx, [(*lane, job_id, 0, 0, 0)])
    line = tag_in_line(tx, was[:2], lane, tag=tag, tenant=tenant)
    tx.db.execute(SQL["set_parked"], (*lane, tenant, tag, BEHIND, line, job_id))
    hand_down(tx, was[:4], old_tenant, old_tag)


def position(db: sqlite3.Connection, job_id: JobId) -> Position | None:
    """Ready jobs before this one in its lane, counted so far as reports count."""
    row = db.execute(SQL["place"], (job_id.bytes,)).fetchone()
    if row is None:
        return None
    *place, entered_at = row
    (ahead,) = db.execute(SQL["ahead"], (*place, MOST_COUNTED)).fetchone()
    return Position(ahead, datetime.fromtimestamp(entered_at, UTC))
