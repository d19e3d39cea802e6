"""Every way we know to break what is told of runs: causes, leases, tokens and budgets."""

from __future__ import annotations

from dataclasses import replace

from tests.history.breaking import (
    Mutations,
    Pick,
    change_attempt,
    change_trail,
    extra_runs,
    has_run,
    jobs_of,
    second_leases,
    succeeded_jobs,
    trail_of,
    with_trail,
)
from tests.history.records import (
    AttemptRow,
    AuditOp,
    Place,
    RunEvent,
)
from tests.history.story import Histories

from holdfast.core.cause import Cause
from holdfast.core.state import State

MUTATIONS = Mutations()
breaks = MUTATIONS.breaks


# ---------------------------------------------------------------- runs, leases, tokens


@breaks("I5")
def run_repeated_under_one_token(h: Histories, pick: Pick) -> Histories | None:
    start = pick([line for line in h.lines if line.event is RunEvent.START])
    return start and replace(h, lines=(*h.lines, replace(start, pid=99)))


@breaks("I5")
def run_under_a_token_never_given(h: Histories, pick: Pick) -> Histories | None:
    start = pick([line for line in h.lines if line.event is RunEvent.START and line.job_id in h.store.jobs])
    return start and replace(h, lines=(*h.lines, replace(start, token=0)))


@breaks("I5")
def extra_run_without_a_cause(h: Histories, pick: Pick) -> Histories | None:
    found = pick(extra_runs(h))
    if found is None:
        return None
    record, row = found
    return h.with_job(replace(record, attempts=tuple(r for r in record.attempts if r is not row)))


@breaks("I5")
def lease_left_without_a_cause_or_a_run(h: Histories, pick: Pick) -> Histories | None:
    found = pick([(record, row) for record, row in extra_runs(h) if not has_run(h, record, row)])
    if found is None:
        return None
    record, row = found
    return h.with_job(replace(record, attempts=tuple(r for r in record.attempts if r is not row)))


@breaks("I5")
def extra_run_with_a_cause_that_explains_nothing(h: Histories, pick: Pick) -> Histories | None:
    found = pick([(record, row) for record, row in extra_runs(h) if has_run(h, record, row)])
    return found and change_attempt(h, *found, cause=Cause.CANCELLED)


@breaks("I5")
def retry_charged_for_a_run_that_never_was(h: Histories, pick: Pick) -> Histories | None:
    found = pick([(record, row) for record, row in extra_runs(h) if row.cause in (Cause.RETRY, Cause.SNOOZE)])
    run = found and (found[0].job_id, found[1].token)
    return run and replace(h, lines=tuple(line for line in h.lines if line.run != run))


@breaks("I5")
def success_with_a_cause(h: Histories, pick: Pick) -> Histories | None:
    record = pick(succeeded_jobs(h))
    if record is None:
        return None
    row = AttemptRow(record.places[0].token, 1, Cause.RETRY)
    return h.with_job(replace(record, attempts=(*record.attempts, row)))


@breaks("I6")
def overlapping_leases(h: Histories, pick: Pick) -> Histories | None:
    """A second lease comes right after the first, before that one is released."""
    lease = pick([r for r in trail_of(h) if r.state is State.RUNNING and r.op is AuditOp.INSERT])
    if lease is None:
        return None
    trail = []
    for row in trail_of(h):
        trail += [row, replace(lease, token=10**6)] if row is lease else [row]
    return with_trail(h, trail)


@breaks("I6")
def two_leases_on_record(h: Histories, pick: Pick) -> Histories | None:
    record = pick(jobs_of(h))
    leases = tuple(Place(State.RUNNING, token, "w1", started_at=1e12) for token in (10**6, 10**6))
    return record and h.with_job(replace(record, places=leases))


@breaks("I6")
def lease_taken_before_it_expired(h: Histories, pick: Pick) -> Histories | None:
    worker = pick(sorted(h.store.removed_workers))
    if worker is None:
        return None
    return replace(h, store=replace(h.store, removed_workers={**h.store.removed_workers, worker: 1e12}))


@breaks("I6")
def overlapping_times_without_a_trail(h: Histories, pick: Pick) -> Histories | None:
    found = pick([(record, row) for record, row in extra_runs(h) if record.ending and record.ending.token])
    return found and change_attempt(h, *found, ended_at=1e12).without_audit()


@breaks("I7")
def token_that_does_not_grow(h: Histories, pick: Pick) -> Histories | None:
    lease = pick(second_leases(h))
    if lease is None:
        return None
    stale = {(lease.job_id, State.RUNNING, lease.token)}
    return change_trail(h, lambda r: replace(r, token=0) if (r.job_id, r.state, r.token) in stale else r)


@breaks("I7")
def token_given_twice(h: Histories, pick: Pick) -> Histories | None:
    lease = pick(second_leases(h))
    if lease is None:
        return None
    given = (lease.job_id, State.RUNNING)
    return change_trail(h, lambda r: replace(r, token=lease.token) if (r.job_id, r.state) == given else r)


@breaks("I7")
def ending_by_an_older_token(h: Histories, pick: Pick) -> Histories | None:
    found = pick([(record, row) for record, row in extra_runs(h) if record.ending and record.ending.token])
    if found is None:
        return None
    record, row = found
    return h.with_job(replace(record, places=(replace(record.ending, token=row.token),)))


@breaks("I7")
def ending_by_another_token_in_the_trail(h: Histories, pick: Pick) -> Histories | None:
    record = pick(succeeded_jobs(h))
    if record is None:
        return None
    ending = (record.job_id, AuditOp.INSERT, State.SUCCEEDED)
    return change_trail(h, lambda r: replace(r, token=0) if (r.job_id, r.op, r.state) == ending else r)


@breaks("I7")
def ending_by_another_worker(h: Histories, pick: Pick) -> Histories | None:
    record = pick(succeeded_jobs(h))
    if record is None:
        return None
    ending = (record.job_id, AuditOp.INSERT, State.SUCCEEDED)
    return change_trail(h, lambda r: replace(r, worker="zombie") if (r.job_id, r.op, r.state) == ending else r)


@breaks("I7")
def success_without_a_token(h: Histories, pick: Pick) -> Histories | None:
    record = pick(succeeded_jobs(h))
    return record and h.with_job(replace(record, places=(replace(record.places[0], token=None),)))


@breaks("I8")
def attempt_beyond_the_limit(h: Histories, pick: Pick) -> Histories | None:
    record = pick(succeeded_jobs(h))
    return record and h.with_job(replace(record, places=(replace(record.places[0], attempt=6),)))


@breaks("I8")
def more_charged_runs_than_the_limit(h: Histories, pick: Pick) -> Histories | None:
    record = pick(succeeded_jobs(h))
    rows = tuple(AttemptRow(token, 1, Cause.RETRY) for token in range(-9, -3))
    return record and h.with_job(replace(record, attempts=(*rows, *record.attempts)))


@breaks("I8")
def more_crashes_than_the_budget(h: Histories, pick: Pick) -> Histories | None:
    row = pick([r for r in trail_of(h) if r.state is State.RUNNING and r.job_id in h.store.jobs])
    return row and change_trail(h, lambda r: replace(r, crashes=4) if r is row else r)
