"""Workers and their leases: register, renew, reap, hand back, and what they lift by appearing (P5, P10)."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from uuid import UUID

from holdfast.core.cause import Cause
from holdfast.core.errors import LeaseLost
from holdfast.core.job import ErrorInfo, WorkerId
from holdfast.core.loss import Losses, after_loss, alone, is_suspect
from holdfast.core.worker import NewWorker
from holdfast.stores.base import HeldJob, Reaped, Renewal
from holdfast.stores.sqlite.end import bury_headless
from holdfast.stores.sqlite.settle import Lease, give_back, lose, record_attempt
from holdfast.stores.sqlite.statements import load
from holdfast.stores.sqlite.tails import queue_up
from holdfast.stores.sqlite.transaction import Tx

SQL = load("workers")


def register_worker(tx: Tx, worker: NewWorker, *, lease_s: float) -> None:
    """A new process with a new identity."""
    row = (worker.id.bytes, worker.host, worker.pid, worker.concurrency, json.dumps(worker.queues))
    tx.db.execute(SQL["register"], (*row, tx.now, tx.now + lease_s))


def renew_worker(tx: Tx, worker: WorkerId, *, lease_s: float, held_for_s: float, lag_s: float | None = None) -> Renewal:
    """Prolong the lease of a worker that nobody has declared dead."""
    if not tx.db.execute(SQL["renew"], (tx.now + lease_s, worker.bytes)).rowcount:
        raise LeaseLost(f"worker {worker} was declared dead: its jobs belong to others")
    if lag_s is not None:
        tx.db.execute(SQL["lag"], (lag_s, worker.bytes))
    held = tx.db.execute(SQL["held"], (worker.bytes, tx.now - held_for_s)).fetchall()
    return Renewal(tx.now, [HeldJob(UUID(bytes=job_id), token) for job_id, token in held])


def reap_workers(tx: Tx, *, limit: int, as_of: float | None) -> Reaped:
    """Workers whose lease ran out are dead: their jobs go back to their places, or end."""
    by = tx.now if as_of is None else min(tx.now, as_of)
    expired = [row[0] for row in tx.db.execute(SQL["expired"], (by, limit)).fetchall()]
    lost = [row for worker in expired for row in tx.db.execute(SQL["leases_of"], (worker,)).fetchall()]
    lost += tx.db.execute(SQL["leases_without_worker"], (limit,)).fetchall()
    returned = 0
    for row in lost:
        returned += _after_loss(tx, Lease._make(row), Cause.LEASE_EXPIRED, "the worker's lease ran out")
    return Reaped(tuple(UUID(bytes=worker) for worker in expired), returned, len(lost) - returned)


def hand_back_worker(
    tx: Tx, worker: WorkerId, *, cause: Cause, why: str, suspects: Collection[int] | None = None
) -> int:
    """Remove the worker, so that it can neither claim nor settle, then return its jobs."""
    tx.db.execute(SQL["remove"], (worker.bytes,))
    leases = [Lease._make(row) for row in tx.db.execute(SQL["leases_of"], (worker.bytes,)).fetchall()]
    for lease in leases:
        if is_suspect(cause, lease.token, suspects):
            _after_loss(tx, lease, cause, why)
        else:
            record_attempt(tx, lease, cause, ErrorInfo("", why))
            give_back(tx, lease)
    return len(leases)


def _after_loss(tx: Tx, lease: Lease, cause: Cause, why: str) -> bool:
    """A job whose worker died: back to its place uncharged, or dead as poison. True when it went back."""
    after, poison = after_loss(Losses(lease.losses, lease.crashes), was_alone=alone(lease.losses))
    return lose(tx, lease, cause, why, after=after, poison=poison)


def unpark_jobs(tx: Tx, *, reason: str, keys: Sequence[str]) -> int:
    """Lift a reason: what waited under these keys is ready, at its old place.

    In a queue with tenants it goes to the tail of its tenant's jobs: else a tenant of whom many were parked would be
    the only one to run for a while.
    """
    parked = [
        row for key in dict.fromkeys(keys) for row in tx.db.execute(SQL["parked_under"], (reason, key)).fetchall()
    ]
    for seq, job_id, tag, attempt, losses, crashes, parked_in, queue, priority in sorted(parked):
        tx.db.execute(SQL["unpark"], (job_id,))
        tx.left_parked(parked_in, 1)
        if queue is None:
            bury_headless(tx, job_id, attempt)
        elif tag and queue in tx.tenanted:
            queue_up(tx, [(queue, priority, job_id, attempt, losses, crashes)])
        else:
            tx.enter_ready([(queue, priority, tag, seq, job_id, attempt, losses, crashes)])
    return len(parked)
