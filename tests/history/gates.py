"""Limits and rates, judged from leases alone: how many ran at once, and how many began in any span of time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tests.history.joined import Joined
from tests.history.records import AuditOp, JobRecord
from tests.history.report import Violation

from holdfast.core.gates import RateGate, SlotGate
from holdfast.core.rate import Pace
from holdfast.core.state import State

#: Stores round times to microseconds, and a start is rounded once more where its bucket was.
ROUNDED_S = 2e-6


def limits(joined: Joined) -> Iterator[Violation]:
    """I10: never more leases under a limit's key than its size."""
    held: dict[str, set[str]] = defaultdict(set)
    for row in joined.store.audit or ():
        record = joined.store.jobs.get(row.job_id)
        if row.state is not State.RUNNING or record is None:
            continue
        for gate in record.gates:
            if not isinstance(gate, SlotGate) or (gate.name or gate.key) in joined.store.ruled:
                continue
            if row.op is AuditOp.DELETE:
                held[gate.key].discard(row.job_id)
                continue
            held[gate.key].add(row.job_id)
            if len(held[gate.key]) > gate.size:
                sentence = f"limit {gate.key!r} of {gate.size} was held by {len(held[gate.key])} jobs"
                yield Violation("I10", row.job_id, f"{sentence} (audit row {row.n})")


def rates(joined: Joined) -> Iterator[Violation]:
    """I10: in no span of time do more runs begin under a rate's key than its burst and what is earned in that time."""
    starts: dict[RateGate, list[tuple[float, str]]] = defaultdict(list)
    for job_id, record in joined.store.jobs.items():
        for gate in record.gates:
            if isinstance(gate, RateGate) and (gate.name or gate.key) not in joined.store.ruled:
                starts[gate] += [(at, job_id) for at in started(record).values()]
    for gate, each in starts.items():
        if over := first_over(sorted(each), gate.pace):
            job_id, number, seconds = over
            sentence = f"rate {gate.key!r} of {gate.pace}: {number} runs began within {seconds:.6f} s"
            yield Violation("I10", job_id, sentence)


def first_over(starts: list[tuple[float, str]], pace: Pace) -> tuple[str, int, float] | None:
    """The first start that is one too many, with how many began in how many seconds.

    A span from one start to a later one holds too many exactly if a bucket, filled at the pace and spent by each start,
    would be below zero at the later one; so one bucket finds what a look at all pairs of starts would.
    """
    full = float(pace.burst)
    left, before = full, 0.0
    rested_at, number = 0.0, 0  # when the bucket was full last, and the starts since
    for at, job_id in starts:
        left = min(full, left + (at - before + ROUNDED_S) / pace.gap_s)
        if left == full:
            rested_at, number = at, 0
        left, before, number = left - 1, at, number + 1
        if left < -1e-6:
            return job_id, number, at - rested_at
    return None


def started(record: JobRecord) -> dict[int, float]:
    """When each lease of a job began, by its token."""
    times = {row.token: row.started_at for row in record.attempts if row.started_at}
    return times | {place.token: place.started_at for place in record.places if place.token and place.started_at}
