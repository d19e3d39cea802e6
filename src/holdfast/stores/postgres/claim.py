"""claim: `ready` → `running`, fenced by a fresh token, only under a lease that is valid in this transaction.

Ordinary jobs are claimed by one statement (the function `claim_jobs`). Those that have something attached, a deadline
or a limit, are passed over by it and claimed by themselves, in a transaction that looks at what is attached.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.core.errors import LeaseLost
from holdfast.core.fairness import Lane
from holdfast.core.job import ClaimedJob, ErrorInfo, JobId, WorkerId
from holdfast.core.loss import alone
from holdfast.core.settlement import UNKNOWN_TASK
from holdfast.core.state import State
from holdfast.stores.base import Claim, Hint
from holdfast.stores.postgres.end import Ending, end_jobs, lock_limit, take_slots
from holdfast.stores.postgres.floors import Floors
from holdfast.stores.postgres.settle import park
from holdfast.stores.postgres.tenants import reach
from holdfast.stores.postgres.transaction import Place, Tx

if TYPE_CHECKING:
    from asyncpg import Record

LIMIT = "limit"
BODY_MISSING = "body_missing"
MISSING = ErrorInfo("holdfast.BodyMissing", "the job's body is not in the store")


def columns(lanes: Mapping[Lane, int], floors: Floors) -> tuple[list[Any], ...]:
    """The arguments of the function `claim_jobs`, after the worker."""
    rows = [(*lane, *floors.of(lane), quota) for lane, quota in lanes.items() if quota > 0]
    queues, priorities, tags, seqs, quotas = map(list, zip(*rows, strict=True)) if rows else ([],) * 5
    return queues, priorities, tags, seqs, quotas


class Taken(NamedTuple):
    """An answer of the function `claim_jobs`, taken apart."""

    jobs: list[ClaimedJob]
    headless: list[ClaimedJob]
    """Leased, but their bodies are gone."""
    attached: list[JobId]
    """Passed over: to be claimed by themselves."""
    scanned: dict[Lane, int]
    lonely: bool
    closed: list[str]
    """Queues whose gate is closed: they may have been drained far enough to open."""
    order: list[JobId]
    """Of all the jobs, also of the attached ones."""

    def followed_by(self, other: Taken) -> Taken:
        """This and the answer to a second look."""
        scanned = {lane: count + other.scanned.get(lane, 0) for lane, count in self.scanned.items()}
        return Taken(
            self.jobs + other.jobs, self.headless + other.headless, self.attached + other.attached, scanned,
            self.lonely or other.lonely, self.closed + other.closed, self.order + other.order,
        )  # fmt: skip

    def joined_by(self, claimed: Sequence[ClaimedJob]) -> Taken:
        """This and those of the attached that may run, each at its place."""
        at = {job_id: place for place, job_id in enumerate(self.order)}
        return self._replace(jobs=sorted([*self.jobs, *claimed], key=lambda job: at[job.id]))


def take_apart(
    rows: Sequence[Record], lanes: Mapping[Lane, int], floors: Floors, seen: Collection[JobId] = ()
) -> Taken:
    """Sort out the rows; the floor of a lane that has more rises to behind the last of its jobs.

    `seen`: attached jobs that the first look has passed over; a second one comes by them again.
    """
    found = [row for row in rows if row[_SEQ] is not None]  # the others are news of the lanes
    if seen:
        found = [row for row in found if row[0] not in seen]
    found.sort(key=_place_in_lane)
    jobs = [ClaimedJob._make(row[:_KIND]) for row in found if row[_KIND] == "job"]
    headless = [job for job in jobs if job.task is None]
    scanned = {lane: 0 for lane, quota in lanes.items() if quota > 0}
    scanned.update(Counter(map(_lane, found)))  # a lane equals the pair that it is
    last = dict(zip(map(_lane, found), found, strict=True))
    for lane, quota in lanes.items():
        if quota > 0 and scanned[lane] >= quota:
            tag, seq = _place_in_lane(last[lane])
            floors.raise_to(lane, tag, seq + 1)
    news = [row for row in rows if row[_SEQ] is None]
    return Taken(
        jobs=[job for job in jobs if job.task is not None] if headless else jobs,
        headless=headless,
        attached=[row[0] for row in found if row[_KIND] != "job"] if len(jobs) < len(found) else [],
        scanned=scanned,
        lonely=any(row[_KIND] == "lonely" for row in news),
        closed=[row["queue"] for row in news if row[_KIND] == "closed"],
        order=[row[0] for row in found],
    )


# The answer of the function begins with the fields of a ClaimedJob.
_KIND = len(ClaimedJob._fields)
_lane = itemgetter(ClaimedJob._fields.index("queue"), ClaimedJob._fields.index("priority"))
_SEQ = _KIND + 2
_place_in_lane = itemgetter(_KIND + 1, _SEQ)


# ---------------------------------------------------------------- one by one


async def claim_attached(tx: Tx, worker: WorkerId, job_ids: Sequence[JobId]) -> list[ClaimedJob]:
    """Those of these jobs that may run now; the others are parked or ended on the way."""
    await _hold_lease(tx, worker)
    return await _take(tx, worker, await tx.fetch("claim_jobs.pick_attached", job_ids))


async def claim_alone(tx: Tx, worker: WorkerId, lanes: Mapping[Lane, int]) -> Claim:
    """One job that must run alone. Never two: the death of the one would be laid at the other's door."""
    await _hold_lease(tx, worker)
    scanned = {lane: 0 for lane, quota in lanes.items() if quota > 0}
    waiting = {Lane(*row) for row in await tx.fetch("claim_jobs.lonely_lanes")}
    for lane in scanned:
        rows = await tx.fetch("claim_jobs.pick_lonely", *lane) if lane in waiting else []
        scanned[lane] = len(rows)
        if jobs := await _take(tx, worker, rows):
            return Claim(jobs, scanned)
    return Claim([], scanned)


async def claim_parked(tx: Tx, worker: WorkerId, lanes: Collection[Lane], tasks: Sequence[str]) -> Claim:
    """The oldest job that somebody parked who does not know its task; by way of `ready`, which nobody sees here."""
    await _hold_lease(tx, worker)
    columns = [lane.queue for lane in lanes], [lane.priority for lane in lanes]
    rows = await tx.fetch("claim_jobs.leave_parked", UNKNOWN_TASK, tasks, *columns)
    if not rows:
        return Claim([], {})
    place, before = Place._make(rows[0]), (tx.hints, tx.returned)
    await tx.enter_ready([place])
    tx.hints, tx.returned = before
    rows = await tx.fetch("claim_jobs.pick_attached", [place.job_id])
    return Claim(await _take(tx, worker, rows), {Lane(place.queue, place.priority): 1})


async def _hold_lease(tx: Tx, worker: WorkerId) -> None:
    if await tx.value("claim_jobs.hold_lease", worker) is None:
        raise LeaseLost(f"worker {worker} holds no valid lease: it was declared dead or has run out")


async def _take(tx: Tx, worker: WorkerId, rows: Sequence[Record]) -> list[ClaimedJob]:
    """Judge rows of `ready` with their bodies, each held by this transaction; all of them leave `ready`."""
    if not rows:
        return []
    await tx.fetch("claim_jobs.leave_ready", [row["job_id"] for row in rows])
    for row in rows:
        tx.left_ready(row["queue"])
    await reach(tx, worker, [_place(row) for row in rows])
    runnable = await _runnable(tx, rows)
    leases = await tx.many("claim_jobs.lease", [_place(row) for row in runnable], worker, tx.now)
    if leases:
        tx.hints |= Hint.RUNNING
    tokens = {row[0]: row[1] for row in leases}
    return [
        ClaimedJob(
            row["job_id"], tokens[row["job_id"]], row["attempt"] + 1, row["task"], row["queue"], row["priority"],
            row["payload"], row["options"], row["max_attempts"], row["tenant"], alone(row["losses"]), row["headers"],
        )
        for row in runnable
    ]  # fmt: skip


def _place(row: Record) -> Place:
    return Place._make(list(row.values())[: len(Place._fields)])


async def _runnable(tx: Tx, rows: Sequence[Record]) -> list[Record]:
    """Deadline, body and limit; a job that may not run goes where it belongs."""
    headless = [row for row in rows if row["task"] is None]
    await bury_headless(tx, [_place(row) for row in headless])
    expired = [row for row in rows if row["expires_at"] is not None and row["expires_at"] <= tx.now]
    await end_jobs(tx, [Ending(row["job_id"], State.CANCELLED, row["attempt"], reason="expired") for row in expired])
    left = [row for row in rows if row not in headless and row not in expired]
    full: set[JobId] = set()
    for key in sorted({row["limit_key"] for row in left if row["limit_key"] is not None}):
        await lock_limit(tx, key)
        asking = [(row["job_id"], row["limit_size"]) for row in left if row["limit_key"] == key]
        full |= {job_id for job_id, _ in asking} - await take_slots(tx, key, asking)
    await park(tx, [(_place(row), LIMIT, row["limit_key"]) for row in left if row["job_id"] in full])
    return [row for row in left if row["job_id"] not in full]


async def bury_headless(tx: Tx, places: Sequence[Place]) -> None:
    """A missing body is an ending, not silence."""
    await tx.many("claim_jobs.stub_bodies", [(p.job_id, p.queue, p.priority) for p in places], tx.now)
    endings = [Ending(p.job_id, State.DEAD, p.attempt, reason=BODY_MISSING, error=MISSING) for p in places]
    await end_jobs(tx, endings)


async def end_headless(tx: Tx, worker: WorkerId, jobs: Sequence[ClaimedJob]) -> None:
    """The same for jobs that were leased before it was seen; fenced like every write of a run."""
    runs = [(job.id, job.token) for job in jobs]
    rows = await tx.fetch("settle_jobs.leases", worker, *map(list, zip(*runs, strict=True)))
    await bury_headless(tx, [Place(row["job_id"], row["queue"], row["priority"], row["attempt"] - 1) for row in rows])
