"""claim: `ready` → `running`, fenced by a fresh token, only under a lease that is valid in this transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from holdfast.core.errors import LeaseLost
from holdfast.core.fairness import Lane
from holdfast.core.job import ClaimedJob, WorkerId
from holdfast.core.loss import alone
from holdfast.core.settlement import UNKNOWN_TASK
from holdfast.core.state import State
from holdfast.stores.base import Claim, Hint
from holdfast.stores.sqlite.end import Ending, bury_headless, end_jobs, take_slot
from holdfast.stores.sqlite.statements import load
from holdfast.stores.sqlite.tenants import reach
from holdfast.stores.sqlite.transaction import Tx

SQL = load("claim_jobs")

LIMIT = "limit"


def claim_jobs(tx: Tx, worker: WorkerId, lanes: Mapping[Lane, int]) -> Claim:
    """Take the head of each lane up to its quota; what may not run now is parked or ended on the way."""
    scanned: dict[Lane, int] = {}
    jobs: list[ClaimedJob] = []
    for lane, quota in _open_lanes(tx, worker, lanes):
        taken, scanned[lane] = _take(tx, worker, lane, SQL["pick"], (quota,))
        jobs += taken
    lonely = tx.db.execute(SQL["lonely_lanes"]).fetchall()
    return Claim(jobs, scanned, lonely=any(Lane._make(row) in scanned for row in lonely))


def claim_alone(tx: Tx, worker: WorkerId, lanes: Mapping[Lane, int]) -> Claim:
    """One job that must run alone. Never two: the death of the one would be laid at the other's door."""
    scanned: dict[Lane, int] = {}
    for lane, _ in _open_lanes(tx, worker, lanes):
        jobs, scanned[lane] = _take(tx, worker, lane, SQL["pick_lonely"], (1,))
        if jobs:
            return Claim(jobs, scanned)
    return Claim([], scanned)


def are_parked(db: sqlite3.Connection, tasks: Sequence[str]) -> bool:
    """Whether some worker did not know any of these tasks."""
    return any(db.execute(SQL["any_parked"], (UNKNOWN_TASK, task)).fetchone() for task in tasks)


def claim_parked(tx: Tx, worker: WorkerId, lanes: Collection[Lane], tasks: Sequence[str]) -> Claim:
    """The oldest job that somebody parked who does not know its task; by way of `ready`, which nobody sees here."""
    open_lanes = {lane for lane, _ in _open_lanes(tx, worker, dict.fromkeys(lanes, 1))}
    heads = [row for task in tasks for row in tx.db.execute(SQL["parked_as_unknown"], (UNKNOWN_TASK, task)).fetchall()]
    for seq, job_id, tag, attempt, losses, crashes, *lane in sorted(heads):
        if Lane._make(lane) in open_lanes:
            tx.db.execute(SQL["leave_parked"], (job_id,))
            hints = tx.hints
            tx.enter_ready([(*lane, tag, seq, job_id, attempt, losses, crashes)])
            tx.hints = hints
            jobs, scanned = _take(tx, worker, Lane._make(lane), SQL["pick_place"], (tag, seq))
            return Claim(jobs, {Lane._make(lane): scanned})
    return Claim([], {})


def _open_lanes(tx: Tx, worker: WorkerId, lanes: Mapping[Lane, int]) -> list[tuple[Lane, int]]:
    """The lanes that may be claimed from, once it is sure that this worker may claim."""
    if not tx.db.execute(SQL["lease_is_valid"], (worker.bytes, tx.now)).fetchone():
        raise LeaseLost(f"worker {worker} holds no valid lease: it was declared dead or has run out")
    paused = {queue for (queue,) in tx.db.execute(SQL["paused"])}
    return [(lane, quota) for lane, quota in lanes.items() if quota > 0 and lane.queue not in paused]


def _take(tx: Tx, worker: WorkerId, lane: Lane, pick: str, which: tuple[int, ...]) -> tuple[list[ClaimedJob], int]:
    """`ready` → `active` for the rows that `pick` finds; also how many rows it found."""
    rows = tx.db.execute(pick, (*lane, *which)).fetchall()
    if not rows:
        return [], 0
    tx.db.executemany(SQL["leave_ready"], [(*lane, row[1], row[0]) for row in rows])
    tx.left_ready(lane.queue, len(rows))
    reach(tx, *lane, rows[-1][1])
    token = tx.take_numbers("token", len(rows))
    leases: list[tuple[Any, ...]] = []
    jobs: list[ClaimedJob] = []
    for n, row in enumerate(rows):
        (seq, tag, job_id, attempt, losses, crashes, task, payload, options, most, tenant, headers,
         expires_at, limit_key, _) = row  # fmt: skip
        ordinary = task is not None and expires_at is None and limit_key is None
        if not ordinary and not _may_run(tx, lane, row):
            continue
        leases.append((job_id, token + n, worker.bytes, attempt + 1, *lane, tag, seq, losses, crashes, tx.now))
        jobs.append(
            ClaimedJob(
                UUID(bytes=job_id), token + n, attempt + 1, task, lane.queue, lane.priority, payload,
                options, most, tenant, alone(losses), headers,
            )
        )  # fmt: skip
    if leases:
        tx.db.executemany(SQL["lease"], leases)
        tx.hints |= Hint.RUNNING
    return jobs, len(rows)


def _may_run(tx: Tx, lane: Lane, row: tuple[Any, ...]) -> bool:
    """Deadline, body and limit; a job that may not run has left `ready` and goes where it belongs."""
    seq, tag, job_id, attempt, losses, crashes, task, *_, expires_at, limit_key, limit_size = row
    if task is None:
        bury_headless(tx, job_id, attempt, lane)
        return False
    if expires_at is not None and expires_at <= tx.now:
        end_jobs(tx, [Ending(job_id, State.CANCELLED, attempt, reason="expired")])
        return False
    if limit_key is not None and not take_slot(tx, limit_key, job_id, limit_size):
        tx.db.execute(SQL["park"], (job_id, LIMIT, limit_key, tag, seq, attempt, losses, crashes, tx.now))
        return False
    return True
