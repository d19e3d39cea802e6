"""Every way we know to break what is told of limits and rates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.history.breaking import Mutations, Pick, jobs_of, trail_of, with_trail
from tests.history.records import AttemptRow, AuditOp, AuditRow, JobRecord, Place
from tests.history.story import Histories

from holdfast.core.cause import Cause
from holdfast.core.gates import Gate, RateGate, SlotGate
from holdfast.core.state import State

MUTATIONS = Mutations()
breaks = MUTATIONS.breaks


def _through(h: Histories, fits: Callable[[Gate], bool]) -> list[JobRecord]:
    return [record for record in jobs_of(h) if any(fits(gate) for gate in record.gates)]


@breaks("I10")
def limit_held_twice(h: Histories, pick: Pick) -> Histories | None:
    """Two jobs under a limit of one, which were in fact leased one after the other, are told to have met."""
    limited = _through(h, lambda gate: isinstance(gate, SlotGate) and gate.size == 1)
    return _met(h, limited[:2]) if len(limited) >= 2 else None


@breaks("I10")
def second_limit_of_a_job_held_by_too_many(h: Histories, pick: Pick) -> Histories | None:
    """The limit is not the first of the job's gates, and there was room for three of these four."""
    limited = _through(h, lambda gate: isinstance(gate, SlotGate) and gate.size == 3)
    if len(limited) < 3:
        return None
    [place] = limited[0].places
    fourth = replace(limited[0], job_id="fourth", places=(replace(place, started_at=0.0),))  # not a matter of its rate
    return _met(h.with_job(fourth), [*limited[:3], fourth])


def _met(h: Histories, records: list[JobRecord]) -> Histories:
    trail = [row for row in trail_of(h) if row.job_id not in {record.job_id for record in records}]
    trail += [AuditRow(0, record.job_id, AuditOp.INSERT, State.RUNNING, 1) for record in records]
    return with_trail(h, trail)


@breaks("I10")
def run_before_its_token_was_earned(h: Histories, pick: Pick) -> Histories | None:
    """The third of a rate whose burst is two began with the others."""
    rated = _through(h, lambda gate: isinstance(gate, RateGate))
    if len(rated) < 3:
        return None
    first, last = rated[0].places[0], rated[-1].places[0]
    return h.with_job(replace(rated[-1], places=(replace(last, started_at=first.started_at + 1),)))


@breaks("I10")
def lost_runs_that_spent_no_token(h: Histories, pick: Pick) -> Histories | None:
    """A job under a rate was begun again and again, which its attempts tell."""
    record = pick(_through(h, lambda gate: isinstance(gate, RateGate)))
    if record is None:
        return None
    [place] = record.places
    attempts = tuple(_lost_at(place, number) for number in range(4))
    return h.with_job(replace(record, attempts=attempts))


def _lost_at(place: Place, number: int) -> AttemptRow:
    at = place.started_at - 1 + number / 10
    return AttemptRow(-9 + number, 1, Cause.LEASE_EXPIRED, place.worker, at, at + 0.05)
