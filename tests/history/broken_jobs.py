"""Every way we know to break what is told of jobs: calls, moves, endings, and what is left at the end."""

from __future__ import annotations

from dataclasses import replace

from tests.history.breaking import (
    Mutations,
    Pick,
    append_to_trail,
    change_calls,
    change_trail,
    jobs_of,
    succeeded_jobs,
    trail_of,
)
from tests.history.records import (
    Answer,
    AuditOp,
    AuditRow,
    ClientCall,
    JobRecord,
    Op,
    Place,
    RunEvent,
)
from tests.history.story import Histories

from holdfast.core.state import State

MUTATIONS = Mutations()
breaks = MUTATIONS.breaks


# ---------------------------------------------------------------- what clients were told


@breaks("I1")
def lost_job(h: Histories, pick: Pick) -> Histories | None:
    job = pick([c.job_id for c in h.calls if c.answer is Answer.OK and c.job_id in h.store.jobs])
    if job is None:
        return None
    jobs = {job_id: record for job_id, record in h.store.jobs.items() if job_id != job}
    return replace(h, store=replace(h.store, jobs=jobs, audit=tuple(r for r in trail_of(h) if r.job_id != job)))


@breaks("I1")
def lost_while_waiting_unseen_by_the_record(h: Histories, pick: Pick) -> Histories | None:
    """The audit saw it go; that it had not ended makes it a loss."""
    record = pick([r for r in h.store.jobs.values() if r.places[0].state is State.SCHEDULED])
    if record is None:
        return None
    jobs = {job_id: other for job_id, other in h.store.jobs.items() if job_id != record.job_id}
    gone = AuditRow(len(trail_of(h)) + 1, record.job_id, AuditOp.DELETE, State.SCHEDULED)
    return replace(h, store=replace(h.store, jobs=jobs, audit=(*trail_of(h), gone)))


@breaks("I1")
def job_in_no_state(h: Histories, pick: Pick) -> Histories | None:
    record = pick(jobs_of(h))
    return record and h.with_job(replace(record, places=()))


@breaks("I2")
def invented_job(h: Histories, pick: Pick) -> Histories | None:
    return h.with_job(JobRecord("invented", "default", (Place(State.CANCELLED),)))


@breaks("I2")
def refused_job_exists(h: Histories, pick: Pick) -> Histories | None:
    record = pick(jobs_of(h))
    return record and change_calls(
        h, lambda c: replace(c, answer=Answer.FAIL) if c.job_id == record.job_id and c.op is Op.ENQUEUE else c
    )


@breaks("I2")
def replay_that_nobody_asked_for(h: Histories, pick: Pick) -> Histories | None:
    call = pick([call for call in h.calls if call.op is Op.REPLAY])
    return call and replace(h, calls=tuple(other for other in h.calls if other is not call))


@breaks("I9")
def second_job_for_a_key(h: Histories, pick: Pick) -> Histories | None:
    call = pick([c for c in h.calls if c.key and c.told])
    return call and h.with_job(JobRecord(call.job_id, "default", (Place(State.CANCELLED),)))


@breaks("I9")
def callers_of_a_key_told_different_ids(h: Histories, pick: Pick) -> Histories | None:
    call = pick([c for c in h.calls if c.key and c.told])
    return call and change_calls(h, lambda c: replace(c, told=None) if c is call else c)


@breaks("I9")
def different_request_accepted_for_a_key(h: Histories, pick: Pick) -> Histories | None:
    call = pick([c for c in h.calls if c.key and c.told])
    return call and change_calls(h, lambda c: replace(c, fingerprint="other") if c is call else c)


@breaks("I9")
def key_of_another_job(h: Histories, pick: Pick) -> Histories | None:
    row = pick(h.store.keys)
    return row and replace(h, store=replace(h.store, keys=(replace(row, job_id="other"),)))


# ---------------------------------------------------------------- moves and endings


@breaks("I3")
def second_ending_on_record(h: Histories, pick: Pick) -> Histories | None:
    record = pick([r for r in jobs_of(h) if r.ending])
    return record and h.with_job(replace(record, places=(*record.places, Place(State.DEAD, record.ending.token))))


@breaks("I3")
def second_ending_in_the_trail(h: Histories, pick: Pick) -> Histories | None:
    """It ended, was moved to another ending, and back: the record alone looks right."""
    record = pick([r for r in jobs_of(h) if r.ending])
    if record is None:
        return None
    place = record.places[0]
    other = State.DEAD if place.state is not State.DEAD else State.CANCELLED
    return append_to_trail(
        h,
        record.job_id,
        (AuditOp.DELETE, place.state, place.token),
        (AuditOp.INSERT, other, place.token),
        (AuditOp.DELETE, other, place.token),
        (AuditOp.INSERT, place.state, place.token),
    )


@breaks("I3")
def caller_told_of_a_cancellation_that_was_none(h: Histories, pick: Pick) -> Histories | None:
    record = pick(succeeded_jobs(h))
    if record is None:
        return None
    call = ClientCall(Op.CANCEL, record.job_id, Answer.OK, 0.0, told="cancelled")
    return replace(h, calls=(*h.calls, call))


@breaks("I4")
def success_without_effect(h: Histories, pick: Pick) -> Histories | None:
    record = pick(succeeded_jobs(h))
    if record is None:
        return None
    kept = (line for line in h.lines if line.job_id != record.job_id or line.event is not RunEvent.EFFECT)
    return replace(h, lines=tuple(kept))


@breaks("I4")
def success_of_a_run_that_never_returned(h: Histories, pick: Pick) -> Histories | None:
    record = pick(succeeded_jobs(h))
    if record is None:
        return None
    run = (record.job_id, record.places[0].token)
    return replace(h, lines=tuple(l for l in h.lines if l.run != run or l.event is not RunEvent.END))  # noqa: E741


@breaks("I4")
def success_of_a_run_that_failed(h: Histories, pick: Pick) -> Histories | None:
    record = pick(succeeded_jobs(h))
    if record is None:
        return None
    run = (record.job_id, record.places[0].token)
    failed = (replace(line, outcome="failed") if line.run == run and line.outcome else line for line in h.lines)
    return replace(h, lines=tuple(failed))


@breaks("I11")
def ended_without_a_claim(h: Histories, pick: Pick) -> Histories | None:
    record = pick(succeeded_jobs(h))
    if record is None:
        return None
    return change_trail(h, lambda r: None if r.job_id == record.job_id and r.state is State.RUNNING else r)


@breaks("I11")
def trail_that_leads_elsewhere(h: Histories, pick: Pick) -> Histories | None:
    record = pick([r for r in jobs_of(h) if r.places[0].state is State.PARKED])
    return record and h.with_job(replace(record, places=(Place(State.SCHEDULED, due_at=5e9),)))


@breaks("I11")
def job_in_two_waiting_states(h: Histories, pick: Pick) -> Histories | None:
    record = pick([r for r in jobs_of(h) if r.places[0].state in (State.SCHEDULED, State.PARKED)])
    both = record and replace(record, places=(*record.places, Place(State.PARKED, reason="limit")))
    return both and h.with_job(both)


# ---------------------------------------------------------------- what is left


@breaks("I14")
def left_ready(h: Histories, pick: Pick) -> Histories | None:
    record = pick(jobs_of(h))
    return record and h.with_job(replace(record, places=(Place(State.READY),)))


@breaks("I14")
def left_running(h: Histories, pick: Pick) -> Histories | None:
    record = pick(jobs_of(h))
    return record and h.with_job(replace(record, places=(Place(State.RUNNING, 10**6, "w1"),)))


@breaks("I14")
def left_overdue(h: Histories, pick: Pick) -> Histories | None:
    record = pick(jobs_of(h))
    return record and h.with_job(replace(record, places=(Place(State.SCHEDULED, due_at=h.store.as_of - 60),)))


@breaks("I14")
def parked_without_a_reason(h: Histories, pick: Pick) -> Histories | None:
    record = pick(jobs_of(h))
    return record and h.with_job(replace(record, places=(Place(State.PARKED),)))


@breaks("I14")
def parked_for_a_limit_that_is_free(h: Histories, pick: Pick) -> Histories | None:
    record = pick(jobs_of(h))
    return record and h.with_job(replace(record, places=(Place(State.PARKED, reason="limit"),)))


@breaks("I14")
def blocked_on_what_has_ended(h: Histories, pick: Pick) -> Histories | None:
    record = pick(jobs_of(h))
    ended = record and pick([other.job_id for other in jobs_of(h) if other.ending and other is not record])
    return ended and h.with_job(replace(record, places=(Place(State.BLOCKED),), waits_for=(ended,)))


@breaks("I14")
def blocked_in_a_circle(h: Histories, pick: Pick) -> Histories | None:
    if len(h.store.jobs) < 2:
        return None
    one, other = jobs_of(h)[:2]
    h = h.with_job(replace(one, places=(Place(State.BLOCKED),), waits_for=(other.job_id,)))
    return h.with_job(replace(other, places=(Place(State.BLOCKED),), waits_for=(one.job_id,)))


@breaks("I15")
def wrong_counter(h: Histories, pick: Pick) -> Histories | None:
    return replace(h, store=replace(h.store, depth={**h.store.depth, "default": 1}))
