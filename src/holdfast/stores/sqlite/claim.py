"""claim: `ready` → `running`, fenced by a fresh token, only under a lease that is valid in this transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from holdfast.core.errors import LeaseLost
from holdfast.core.fairness import Lane
from holdfast.core.gates import NO_RULES, Admission, Barrier, Candidate, Passed, Rules, Usage, admit
from holdfast.core.gates_text import read_gates
from holdfast.core.job import ClaimedJob, WorkerId
from holdfast.core.loss import alone
from holdfast.core.settlement import UNKNOWN_TASK
from holdfast.core.state import State
from holdfast.stores.base import Claim, Hint
from holdfast.stores.rule_rows import rules_of
from holdfast.stores.sqlite.admission import hold_back
from holdfast.stores.sqlite.end import Ending, bury_headless, end_jobs
from holdfast.stores.sqlite.gates import read_usage, slots_of, take
from holdfast.stores.sqlite.lines import Standing, is_lined
from holdfast.stores.sqlite.statements import load
from holdfast.stores.sqlite.tenants import reach
from holdfast.stores.sqlite.transaction import Tx

SQL = load("claim_jobs")

#: Where in a row of `pick` stands what makes a job more than an ordinary one.
_TASK, _EXPIRES_AT, _GATES = 6, 12, 13


def claim_jobs(tx: Tx, worker: WorkerId, lanes: Mapping[Lane, int]) -> Claim:
    """Take the head of each lane up to its quota; what may not run now is parked or ended on the way."""
    scanned: dict[Lane, int] = {}
    jobs: list[ClaimedJob] = []
    opened, rules = _open_lanes(tx, worker, lanes)
    for lane, quota in opened:
        taken, scanned[lane] = _take(tx, worker, lane, SQL["pick"], (quota,), rules)
        jobs += taken
    lonely = tx.db.execute(SQL["lonely_lanes"]).fetchall()
    return Claim(jobs, scanned, lonely=any(Lane._make(row) in scanned for row in lonely))


def claim_alone(tx: Tx, worker: WorkerId, lanes: Mapping[Lane, int]) -> Claim:
    """One job that must run alone. Never two: the death of the one would be laid at the other's door."""
    scanned: dict[Lane, int] = {}
    opened, rules = _open_lanes(tx, worker, lanes)
    for lane, _ in opened:
        jobs, scanned[lane] = _take(tx, worker, lane, SQL["pick_lonely"], (1,), rules)
        if jobs:
            return Claim(jobs, scanned)
    return Claim([], scanned)


def are_parked(db: sqlite3.Connection, tasks: Sequence[str]) -> bool:
    """Whether some worker did not know any of these tasks."""
    return any(db.execute(SQL["any_parked"], (UNKNOWN_TASK, task)).fetchone() for task in tasks)


def claim_parked(tx: Tx, worker: WorkerId, lanes: Collection[Lane], tasks: Sequence[str]) -> Claim:
    """The oldest job that somebody parked who does not know its task; by way of `ready`, which nobody sees here."""
    opened, rules = _open_lanes(tx, worker, dict.fromkeys(lanes, 1))
    open_lanes = {lane for lane, _ in opened}
    heads = [row for task in tasks for row in tx.db.execute(SQL["parked_as_unknown"], (UNKNOWN_TASK, task)).fetchall()]
    for seq, job_id, tag, attempt, losses, crashes, *lane in sorted(heads):
        if Lane._make(lane) in open_lanes:
            tx.db.execute(SQL["leave_parked"], (job_id,))
            tx.left_parked(lane[0], 1)
            hints = tx.hints
            tx.enter_ready([(*lane, tag, seq, job_id, attempt, losses, crashes)])
            tx.hints = hints
            jobs, scanned = _take(tx, worker, Lane._make(lane), SQL["pick_place"], (tag, seq), rules)
            return Claim(jobs, {Lane._make(lane): scanned})
    return Claim([], {})


def _open_lanes(tx: Tx, worker: WorkerId, lanes: Mapping[Lane, int]) -> tuple[list[tuple[Lane, int]], Rules]:
    """The lanes that may be claimed from, once it is sure that this worker may claim; and what rules there are."""
    if not tx.db.execute(SQL["lease_is_valid"], (worker.bytes, tx.now)).fetchone():
        raise LeaseLost(f"worker {worker} holds no valid lease: it was declared dead or has run out")
    said = tx.db.execute(SQL["said"]).fetchall()
    paused = {name for what, name, *_ in said if what == "queue"}
    opened = [(lane, quota) for lane, quota in lanes.items() if quota > 0 and lane.queue not in paused]
    return opened, rules_of(said) if len(said) > len(paused) else NO_RULES


def _take(
    tx: Tx, worker: WorkerId, lane: Lane, pick: str, which: tuple[int, ...], rules: Rules
) -> tuple[list[ClaimedJob], int]:
    """`ready` → `active` for the rows that `pick` finds; also how many rows it found."""
    rows = tx.db.execute(pick, (*lane, *which)).fetchall()
    if not rows:
        return [], 0
    tx.db.executemany(SQL["leave_ready"], [(*lane, row[1], row[0]) for row in rows])
    tx.left_ready(lane.queue, len(rows))
    reach(tx, *lane, rows[-1][1])
    judged = _judge(tx, lane, rows, rules)
    token = tx.take_numbers("token", len(rows))
    leases: list[tuple[Any, ...]] = []
    jobs: list[ClaimedJob] = []
    for n, row in enumerate(rows):
        if n in judged.stopped:
            continue
        (seq, tag, job_id, attempt, losses, crashes, task, payload, options, most, tenant, headers,
         _, _, _) = row  # fmt: skip
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
    for job, admission in judged.held_back:  # after the leases: it may be one of those that it replaces
        hold_back(tx, job, admission)
    return jobs, len(rows)


class _Judged(NamedTuple):
    """Who of those that were picked does not run."""

    stopped: Collection[int] = ()
    held_back: Sequence[tuple[Standing, Admission]] = ()
    """Those of them that still have to go where they belong."""


_ALL_RUN: Final = _Judged()


def _judge(tx: Tx, lane: Lane, rows: Sequence[tuple[Any, ...]], rules: Rules) -> _Judged:
    """Body, deadline and gates; whoever may run has taken its slots and tokens."""
    ruled = rules is not NO_RULES and (rules.concern_everybody or rules.concern_queue(lane.queue))
    if not ruled and not [row for row in rows if row[_GATES] or row[_EXPIRES_AT] is not None or row[_TASK] is None]:
        return _ALL_RUN  # the ordinary batch
    stopped: set[int] = set()
    gated: list[tuple[int, Standing]] = []
    for n, row in enumerate(rows):
        task, expires_at, gates = row[_TASK], row[_EXPIRES_AT], row[_GATES]
        if task is None:
            bury_headless(tx, row[2], row[3], lane)
            stopped.add(n)
        elif expires_at is not None and expires_at <= tx.now:
            end_jobs(tx, [Ending(row[2], State.CANCELLED, row[3], reason="expired")])
            stopped.add(n)
        elif ruled or gates is not None:
            gated.append((n, _standing(tx, lane, row)))
    if not gated:
        return _Judged(stopped) if stopped else _ALL_RUN
    usage = Usage(tx.now, rules=rules)
    candidates = [job.candidate for _, job in gated]
    read_usage(tx, usage, candidates)
    rates = [place for place in usage.held if place.barrier is Barrier.RATE]
    usage.lined.update(place.key for place in rates if is_lined(tx, place))
    passed: list[tuple[bytes, Candidate, Passed]] = []
    held_back: list[tuple[Standing, Admission]] = []
    for (n, job), admission in zip(gated, admit(candidates, usage), strict=True):
        if isinstance(admission, Passed):
            passed.append((job.job_id, job.candidate, admission))
        else:
            held_back.append((job, admission))
            stopped.add(n)
    take(tx, passed, usage)
    return _Judged(stopped, held_back)


def _standing(tx: Tx, lane: Lane, row: tuple[Any, ...]) -> Standing:
    seq, tag, job_id, attempt, losses, crashes, task, _, _, _, tenant, _, _, gates, has_slots = row
    has = slots_of(tx, job_id) if has_slots or gates is None else frozenset()
    candidate = Candidate(task, lane.queue, tenant, read_gates(gates), has)
    return Standing(job_id, *lane, tag, seq, attempt, losses, crashes, candidate)
