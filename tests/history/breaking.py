"""How a broken history is made from a sound one: what a mutation is, and the means to find and change things.

A mutation takes a history and a choice among candidates; it returns None where the history offers nothing that
it could break.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.history.records import (
    AttemptRow,
    AuditOp,
    AuditRow,
    ClientCall,
    JobRecord,
)
from tests.history.story import Histories

from holdfast.core.state import State

Pick = Callable[[Sequence[Any]], Any]
Break = Callable[[Histories, Pick], Histories | None]


@dataclass(frozen=True, slots=True)
class Mutation:
    """A way to break a history, and the invariant that must catch it."""

    invariant: str
    apply: Break

    def __str__(self) -> str:
        return f"{self.invariant}-{self.apply.__name__}"


class Mutations(list[Mutation]):
    """Those of one module, gathered by its decorator."""

    def breaks(self, invariant: str) -> Callable[[Break], Break]:
        def register(mutation: Break) -> Break:
            self.append(Mutation(invariant, mutation))
            return mutation

        return register


def jobs_of(h: Histories) -> list[JobRecord]:
    return list(h.store.jobs.values())


def succeeded_jobs(h: Histories) -> list[JobRecord]:
    return [record for record in jobs_of(h) if record.places[0].state is State.SUCCEEDED]


def extra_runs(h: Histories) -> list[tuple[JobRecord, AttemptRow]]:
    """Runs on record that did not end their job."""
    return [(r, row) for r in jobs_of(h) for row in r.attempts if row.token != r.places[0].token]


def has_run(h: Histories, record: JobRecord, row: AttemptRow) -> bool:
    return any(line.run == (record.job_id, row.token) for line in h.lines)


def change_attempt(h: Histories, record: JobRecord, row: AttemptRow, **changes: Any) -> Histories:
    rows = tuple(replace(other, **changes) if other is row else other for other in record.attempts)
    return h.with_job(replace(record, attempts=rows))


def change_calls(h: Histories, change: Callable[[ClientCall], ClientCall]) -> Histories:
    return replace(h, calls=tuple(change(call) for call in h.calls))


def trail_of(h: Histories) -> tuple[AuditRow, ...]:
    assert h.store.audit is not None
    return h.store.audit


def change_trail(h: Histories, change: Callable[[AuditRow], AuditRow | None]) -> Histories:
    return with_trail(h, [new for row in trail_of(h) if (new := change(row)) is not None])


def append_to_trail(h: Histories, job: str, *rows: tuple[AuditOp, State, int | None]) -> Histories:
    return with_trail(h, [*trail_of(h), *(AuditRow(0, job, op, state, token) for op, state, token in rows)])


def with_trail(h: Histories, trail: Sequence[AuditRow]) -> Histories:
    audit = tuple(replace(row, n=n) for n, row in enumerate(trail, start=1))
    return replace(h, store=replace(h.store, audit=audit))


def second_leases(h: Histories) -> list[AuditRow]:
    seen: set[str] = set()
    found = []
    for row in trail_of(h):
        if row.state is State.RUNNING and row.op is AuditOp.INSERT:
            if row.job_id in seen:
                found.append(row)
            seen.add(row.job_id)
    return found
