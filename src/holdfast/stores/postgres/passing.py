"""Jobs that have something attached, or that rules concern, are claimed here: judged while their gates are held.

Whoever may run is leased with the slots that it takes; whoever may not waits at a gate, or ends. `core.gates` decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.core.gates import (
    NO_RULES,
    Admission,
    Barrier,
    Candidate,
    Passed,
    Place,
    Skipped,
    Waits,
    admit,
    give_back,
    size_of,
    turns_used,
)
from holdfast.core.gates_text import read_gates
from holdfast.core.job import ClaimedJob, ErrorInfo, JobId, WorkerId
from holdfast.core.loss import alone
from holdfast.core.state import State
from holdfast.stores.base import Hint
from holdfast.stores.gate_rows import places_of_rows
from holdfast.stores.postgres import transaction
from holdfast.stores.postgres.end import Ending, end_jobs, free_slots
from holdfast.stores.postgres.errors import again
from holdfast.stores.postgres.holding import Held, hold, keep_out, moment, places_for, read_rules
from holdfast.stores.postgres.tenants import reach
from holdfast.stores.postgres.transaction import Tx

if TYPE_CHECKING:
    from asyncpg import Record

BODY_MISSING = "body_missing"
MISSING = ErrorInfo("holdfast.BodyMissing", "the job's body is not in the store")


async def claim_attached(tx: Tx, worker: WorkerId, job_ids: Sequence[JobId]) -> list[ClaimedJob]:
    """Those of these jobs that may run now; the others are parked or ended on the way. Each is to be named once: who is
    judged twice may both run and wait. Operators say nothing until we have committed (`pick_jobs`)."""
    return await take(tx, worker, await tx.fetch("passing.pick", worker, job_ids))


async def take(tx: Tx, worker: WorkerId, rows: Sequence[Record]) -> list[ClaimedJob]:
    """Judge rows of `ready` with their bodies, each held by this transaction; all of them leave `ready`."""
    if not rows:
        return []
    tx.now = rows[0]["now"]
    rules = await read_rules(tx) if rows[0]["ruled"] else NO_RULES
    headless = [row for row in rows if row["task"] is None]
    left = [row for row in rows if row["task"] is not None] if headless else list(rows)
    candidates = [_candidate(row) for row in left]
    has = {place for row in rows for place in _slots(row)}
    holders = [row["job_id"] for row in rows if row["slots"]]
    held = await hold(tx, places_for(candidates, rules) | has, holders, rules, claiming=True, said=rows[0]["said"])
    expired = [row for row in left if row["expires_at"] is not None and row["expires_at"] <= tx.now]
    over = [row["job_id"] for row in (*headless, *expired) if row["job_id"] in held.slots]
    if over:  # they are about to end, and those behind them may go
        await free_slots(tx, over)
        for place in (place for job_id in over for place in held.slots[job_id]):
            give_back(held.usage, place)
            if place.barrier is Barrier.LIMIT:
                held.counts[place.key] = held.counts.get(place.key, 0) - 1
    if expired:
        left = [row for row in left if row["expires_at"] is None or row["expires_at"] > tx.now]
        candidates = [_candidate(row) for row in left]
    if holders:  # what they have now, which nobody can take from them any more
        candidates = [
            candidate._replace(has=held.slots.get(row["job_id"], frozenset()))
            for row, candidate in zip(left, candidates, strict=True)
        ]
    verdicts = list(zip(left, candidates, admit(candidates, held.usage), strict=True))
    await keep_out(tx, held, (verdict for _, _, verdict in verdicts if isinstance(verdict, Waits)))
    tokens = await _write(tx, worker, rows, verdicts, held)
    await bury_headless(tx, [place_of(row) for row in headless])
    skipped = [(row, verdict.at) for row, _, verdict in verdicts if isinstance(verdict, Skipped)]
    endings = [Ending(row["job_id"], State.CANCELLED, row["attempt"], reason="expired") for row in expired]
    endings += [
        Ending(row["job_id"], State.CANCELLED, row["attempt"], reason=f"skipped: limit {at.key} is full")
        for row, at in skipped
    ]
    await end_jobs(tx, endings)
    waiting = [(row["job_id"], verdict) for row, _, verdict in verdicts if isinstance(verdict, Waits)]
    await replace_others(tx, waiting)
    return [_claimed(row, tokens[row["job_id"]]) for row, _, verdict in verdicts if isinstance(verdict, Passed)]


def _candidate(row: Record) -> Candidate:
    return Candidate(row["task"], row["queue"], row["tenant"], read_gates(row["gates"]), _slots(row))


def _slots(row: Record) -> frozenset[Place]:
    """Those that it had when it was picked."""
    return frozenset(places_of_rows(text.split(" ", 1) for text in row["slots"]))


def _claimed(row: Record, token: int) -> ClaimedJob:
    return ClaimedJob(
        row["job_id"], token, row["attempt"] + 1, row["task"], row["queue"], row["priority"], row["payload"],
        row["options"], row["max_attempts"], row["tenant"], alone(row["losses"]), row["headers"],
    )  # fmt: skip


def place_of(row: Record) -> transaction.Place:
    """Where a job stood, from a row that begins with its columns."""
    return transaction.Place._make(list(row.values())[: len(transaction.Place._fields)])


async def _write(
    tx: Tx,
    worker: WorkerId,
    rows: Sequence[Record],
    verdicts: Sequence[tuple[Record, Candidate, Admission]],
    held: Held,
) -> dict[JobId, int]:
    """All of it at once; the tokens of those that were leased."""
    leased: list[tuple[JobId, bool]] = []
    parked: list[tuple[JobId, str, str]] = []
    slots: list[tuple[JobId, str, str, int | None]] = []
    freed: list[JobId] = []
    spent: set[str] = set()
    due: dict[Place, float] = {}
    ready, waiting = Counter(row["queue"] for row in rows), Counter[str]()
    for row, candidate, verdict in verdicts:
        job_id = row["job_id"]
        if isinstance(verdict, Passed):
            leased.append((job_id, row["attached"] or bool(verdict.takes) or bool(candidate.has)))
            slots += [(job_id, *place, size_of(place, candidate, held.usage.rules)) for place in verdict.takes]
            spent.update(verdict.spends)
            for place, at in turns_used(candidate, held.usage) if candidate.has else ():
                due[place] = min(due.get(place, at), at)  # also for those who come last, whom `lined` does not count
            continue
        if isinstance(verdict, Waits):
            parked.append((job_id, verdict.at.barrier, verdict.at.key))
            waiting[row["queue"]] += 1
            if candidate.has:
                freed.append(job_id)
                tx.freed |= candidate.has
            if verdict.until is not None:
                due[verdict.at] = min(due.get(verdict.at, verdict.until), verdict.until)
    moved = {job_id for job_id, *_ in (*leased, *parked)}
    found = await tx.fetch(
        "passing.claim", worker, tx.now, *_columns(leased, 2), *_columns(parked, 3),
        [row["job_id"] for row in rows if row["job_id"] not in moved], *_columns(slots, 4), freed,
        *_columns([(key, moment(held.usage.full_at[key])) for key in spent], 2),
        *_columns([(place.barrier, place.key, moment(at)) for place, at in due.items()], 3),
        *_columns([(queue, -count, waiting[queue]) for queue, count in ready.items()], 3),
    )  # fmt: skip
    await reach(tx, worker, [place_of(row) for row in rows if row["tag"]])
    tx.drained += [queue for queue, count in ready.items() if count > waiting[queue]]
    if leased:
        tx.hints |= Hint.RUNNING
    if due:
        tx.hints |= Hint.TIMER
    return {row[0]: row[1] for row in found}


def _columns(rows: Sequence[tuple[object, ...]], count: int) -> list[list[object]]:
    return list(map(list, zip(*rows, strict=True))) if rows else [[] for _ in range(count)]


async def replace_others(tx: Tx, waiting: Sequence[tuple[JobId, Waits]]) -> None:
    """Of those who have come to a gate, in order, some replace whoever runs or waits there: the newest is left, and
    runs next. One that is older than another there, as after a retry, is replaced by that."""
    for index, (job_id, verdict) in enumerate(waiting):
        if not verdict.replaces:
            continue
        later = [other for other, _ in waiting[index:]]
        newer = await tx.value("passing.newer_at", *verdict.at, job_id, later)
        if newer is not None:
            await _cancel_waiting(tx, await tx.fetch("passing.leave_parked", job_id), newer)
        else:
            await _replace(tx, job_id, verdict.at, later)


async def _replace(tx: Tx, job_id: JobId, place: Place, later: Sequence[JobId]) -> None:
    if await tx.fetch("passing.flag_holders", *place, _replaced_by(job_id)):
        tx.hints |= Hint.CANCEL
    kept = await tx.fetch("passing.leave_ready", *place)
    for row in kept:
        tx.left_ready(row["queue"])
    await _cancel_waiting(tx, await tx.fetch("passing.leave_gate", *place, later), job_id)
    await _end_replaced(tx, kept, job_id)
    if not tx.is_last_try and await tx.fetch("passing.left_at", *place, later):
        raise again("a job that is to be replaced is in somebody's hand")


async def _cancel_waiting(tx: Tx, rows: Sequence[Record], newer: JobId) -> None:
    for row in rows:
        tx.parked(row["queue"], -1)
    await _end_replaced(tx, rows, newer)


async def _end_replaced(tx: Tx, rows: Sequence[Record], newer: JobId) -> None:
    reason = _replaced_by(newer)
    await end_jobs(tx, [Ending(row["job_id"], State.CANCELLED, row["attempt"], reason=reason) for row in rows])


def _replaced_by(job_id: JobId) -> str:
    return f"replaced by {job_id}"


async def bury_headless(tx: Tx, places: Sequence[transaction.Place]) -> None:
    """A missing body is an ending, not silence."""
    await tx.many("claim_jobs.stub_bodies", [(p.job_id, p.queue, p.priority) for p in places], tx.now)
    endings = [Ending(p.job_id, State.DEAD, p.attempt, reason=BODY_MISSING, error=MISSING) for p in places]
    await end_jobs(tx, endings)
