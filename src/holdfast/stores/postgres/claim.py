"""claim: `ready` → `running`, fenced by a fresh token, only under a lease that is valid in this transaction.

Ordinary jobs are claimed by one statement (the function `claim_jobs`). Those that have something attached, a deadline
or gates, and those that rules concern, are passed over by it and claimed by themselves (`passing`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.core.errors import LeaseLost
from holdfast.core.fairness import Lane
from holdfast.core.job import ClaimedJob, JobId, WorkerId
from holdfast.core.settlement import UNKNOWN_TASK
from holdfast.stores.base import Claim
from holdfast.stores.postgres.floors import Floors
from holdfast.stores.postgres.passing import bury_headless, claim_attached, take
from holdfast.stores.postgres.transaction import Place, Tx

if TYPE_CHECKING:
    from asyncpg import Record


def columns(lanes: Mapping[Lane, int], floors: Floors) -> tuple[list[Any], ...]:
    """The arguments of the functions `claim_jobs` and `claim_limited_jobs`, after the worker."""
    rows = [(*lane, *floors.of(lane), quota) for lane, quota in lanes.items() if quota > 0]
    queues, priorities, tags, seqs, quotas = map(list, zip(*rows, strict=True)) if rows else ([],) * 5
    return queues, priorities, tags, seqs, quotas


class Taken(NamedTuple):
    """An answer of the function `claim_jobs` or `claim_limited_jobs`, taken apart."""

    jobs: list[ClaimedJob]
    headless: list[ClaimedJob]
    """Leased, but their bodies are gone."""
    attached: list[JobId]
    """Passed over: to be claimed by themselves."""
    limited: int
    """Of the jobs, those that something is attached to."""
    scanned: dict[Lane, int]
    lonely: bool
    closed: list[str]
    """Queues whose gate is closed: they may have been drained far enough to open."""
    order: list[JobId]
    """Of all the jobs, also of the attached ones."""

    def followed_by(self, other: Taken) -> Taken:
        """This and the answer to a second look, which comes by those again that were passed over: now some may run."""
        leased = {job.id: Lane(job.queue, job.priority) for job in other.jobs}
        passed_over = [job_id for job_id in self.attached if job_id not in leased]
        again = Counter(leased[job_id] for job_id in self.attached if job_id in leased)
        scanned = {lane: count + other.scanned.get(lane, 0) - again[lane] for lane, count in self.scanned.items()}
        return Taken(
            self.jobs + other.jobs, self.headless + other.headless, passed_over + other.attached,
            self.limited + other.limited, scanned, self.lonely or other.lonely, self.closed + other.closed,
            self.order + other.order,
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
        found = [row for row in found if row[_KIND] != "attached" or row[0] not in seen]
    found.sort(key=_place_in_lane)
    jobs = [ClaimedJob._make(row[:_KIND]) for row in found if row[_KIND] != "attached"]
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
        attached=[row[0] for row in found if row[_KIND] == "attached"] if len(jobs) < len(found) else [],
        limited=sum(row[_KIND] == "limited" for row in found),
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


async def claim_alone(tx: Tx, worker: WorkerId, lanes: Mapping[Lane, int]) -> Claim:
    """One job that must run alone. Never two: the death of the one would be laid at the other's door.

    Nor is a second one looked at here where the first has to wait: its gates would be held after those of the first,
    not in the order that everybody keeps. Whoever asks goes on behind that lane, in another transaction.
    """
    await tx.fetch("rules.still")
    await _hold_lease(tx, worker)
    scanned = {lane: 0 for lane, quota in lanes.items() if quota > 0}
    waiting = {Lane(*row) for row in await tx.fetch("claim_jobs.lonely_lanes")}
    for lane in scanned:
        rows = await tx.fetch("claim_jobs.pick_alone", *lane) if lane in waiting else []
        if rows:
            scanned[lane] = len(rows)
            return Claim(await take(tx, worker, rows), scanned)
    return Claim([], scanned)


async def claim_parked(tx: Tx, worker: WorkerId, lanes: Collection[Lane], tasks: Sequence[str]) -> Claim:
    """The oldest job that somebody parked who does not know its task; by way of `ready`, which nobody sees here."""
    await tx.fetch("rules.still")
    await _hold_lease(tx, worker)
    columns = [lane.queue for lane in lanes], [lane.priority for lane in lanes]
    rows = await tx.fetch("claim_jobs.leave_unknown", UNKNOWN_TASK, tasks, *columns)
    if not rows:
        return Claim([], {})
    *seen, counted = rows[0]
    place, before = Place._make(seen), (tx.hints, tx.returned)
    tx.parked(counted, -1)
    [(queue, priority)] = await tx.fetch("claim_jobs.lane_now", place.job_id)
    if (queue, priority) != (place.queue, place.priority):  # there it is like any other that is unparked
        await tx.enter_ready([place._replace(queue=queue, priority=priority)])
        return Claim([], {})
    await tx.enter_ready([place])
    tx.hints, tx.returned = before
    jobs = await claim_attached(tx, worker, [place.job_id])
    return Claim(jobs, {Lane(place.queue, place.priority): 1})


async def _hold_lease(tx: Tx, worker: WorkerId) -> None:
    if await tx.value("claim_jobs.hold_lease", worker) is None:
        raise LeaseLost(f"worker {worker} holds no valid lease: it was declared dead or has run out")


async def end_headless(tx: Tx, worker: WorkerId, jobs: Sequence[ClaimedJob]) -> None:
    """A missing body is an ending: of jobs that were leased before it was seen; fenced like every write of a run."""
    runs = [(job.id, job.token) for job in jobs]
    rows = await tx.fetch("settle_jobs.leases", worker, *map(list, zip(*runs, strict=True)))
    await bury_headless(tx, [Place(row["job_id"], row["queue"], row["priority"], row["attempt"] - 1) for row in rows])
