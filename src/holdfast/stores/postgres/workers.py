"""Workers and their leases: reap, hand back, and what they lift by appearing (P5, P10)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from holdfast.core.cause import Cause
from holdfast.core.job import ErrorInfo, WorkerId
from holdfast.core.loss import Losses, after_loss, alone, is_suspect
from holdfast.stores.base import Reaped
from holdfast.stores.postgres.end import Ending, end_jobs
from holdfast.stores.postgres.passing import place_of
from holdfast.stores.postgres.settle import Attempt, Lease, free_all_slots, give_back, record_attempts
from holdfast.stores.postgres.transaction import Tx

UNPARKED_AT_ONCE = 1000


async def reap_workers(tx: Tx, *, limit: int, as_of: float | None) -> Reaped:
    """Workers whose lease ran out are dead: their jobs go back to their places, or end."""
    by = tx.now if as_of is None else min(tx.now, datetime.fromtimestamp(as_of, UTC))
    expired = [row[0] for row in await tx.fetch("workers.expired", by, limit)]
    rows = await tx.fetch("workers.leases_of", expired) if expired else []
    rows += await tx.fetch("workers.leases_without_worker", limit)
    lost = [Lease._make(row) for row in rows]
    await free_all_slots(tx, lost)
    returned = await _after_loss(tx, lost, Cause.LEASE_EXPIRED, "the worker's lease ran out")
    return Reaped(tuple(expired), returned, len(lost) - returned)


async def hand_back_worker(
    tx: Tx, worker: WorkerId, *, cause: Cause, why: str, suspects: Collection[int] | None = None
) -> int:
    """Remove the worker, so that it can neither claim nor settle, then return its jobs."""
    await tx.fetch("workers.remove", worker)
    leases = [Lease._make(row) for row in await tx.fetch("workers.leases_of", [worker])]
    await free_all_slots(tx, leases)
    cleared = [lease for lease in leases if not is_suspect(cause, lease.token, suspects)]
    await record_attempts(tx, [Attempt(lease, cause, ErrorInfo("", why)) for lease in cleared])
    await give_back(tx, cleared)
    await _after_loss(tx, [lease for lease in leases if is_suspect(cause, lease.token, suspects)], cause, why)
    return len(leases)


async def _after_loss(tx: Tx, leases: Sequence[Lease], cause: Cause, why: str) -> int:
    """Jobs whose process died: back to their places uncharged, or dead as poison. How many went back."""
    await record_attempts(tx, [Attempt(lease, cause, ErrorInfo("", why)) for lease in leases])
    poisoned: list[Ending] = []
    innocent: list[Lease] = []
    for lease in leases:
        before = Losses(lease.losses, lease.crashes)
        after, poison = after_loss(before, was_alone=alone(lease.losses))
        if poison and lease.cancel_reason is None:
            poisoned.append(lease.after(after).poisoned(why))
        else:
            innocent.append(lease.after(after))
    await end_jobs(tx, poisoned)
    await give_back(tx, innocent)
    return sum(lease.cancel_reason is None for lease in innocent)


async def unpark_jobs(tx: Tx, *, reason: str, keys: Sequence[str]) -> int:
    """Lift a reason: what waited longest under these keys is ready, at its old place; a bounded number at a time.

    In a queue with tenants it goes to the tail of its tenant's jobs: else a tenant of whom many were parked would be
    the only one to run for a while.
    """
    rows = await tx.fetch("workers.lift", reason, keys, UNPARKED_AT_ONCE)
    for row in rows:
        tx.parked(row["counted"], -1)
    places = sorted((place_of(row) for row in rows), key=lambda place: place.seq or 0)
    at_tails = [
        place._replace(tag=0, seq=None) if place.tag and place.queue in tx.tenanted else place for place in places
    ]
    await tx.enter_ready(at_tails)
    return len(places)
