"""The audit trail told as moves of jobs between states. Whether a move was allowed is judged elsewhere.

A verb deletes a job's row from one table and inserts it into another within one transaction, in either order;
no other transaction can come in between. So a job's rows, in order, are read as one move per pair.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tests.history.records import AuditOp, AuditRow

from holdfast.core.state import State


@dataclass(frozen=True, slots=True)
class Move:
    """`before` is the row that left, `after` the one that came; None: not in the store."""

    job_id: str
    before: AuditRow | None
    after: AuditRow | None

    @property
    def source(self) -> State | None:
        return self.before.state if self.before else None

    @property
    def target(self) -> State | None:
        return self.after.state if self.after else None

    @property
    def claims(self) -> bool:
        return self.target is State.RUNNING

    @property
    def ends(self) -> bool:
        return self.target is not None and self.target.ended

    @property
    def replays(self) -> bool:
        return (self.source, self.target) == (State.DEAD, State.READY)

    @property
    def n(self) -> int:
        return max(row.n for row in (self.before, self.after) if row)

    def __str__(self) -> str:
        return f"{self.source or 'nowhere'} → {self.target or 'nowhere'}"


def moves_of(audit: Iterable[AuditRow]) -> dict[str, list[Move]]:
    """Every job's moves, oldest first."""
    trails: dict[str, list[AuditRow]] = defaultdict(list)
    for row in audit:
        trails[row.job_id].append(row)
    return {job_id: list(_moves(job_id, trail)) for job_id, trail in trails.items()}


def _moves(job_id: str, trail: list[AuditRow]) -> Iterator[Move]:
    held: list[AuditRow] = []
    left: AuditRow | None = None
    pruned = False
    for row in trail:
        if row.state is None:  # the body: when it goes, the job is gone and does not move on
            pruned = row.op is AuditOp.DELETE
        elif row.op is AuditOp.FOUND:
            held.append(row)
        elif row.op is AuditOp.INSERT:
            if not held:
                yield Move(job_id, left, row)
                left = None
            held.append(row)  # beside another: that one is about to go, else the record has two
        else:
            gone = next((seen for seen in held if (seen.state, seen.token) == (row.state, row.token)), None)
            if gone is None:
                yield Move(job_id, row, None)  # it was never seen to come: no verb does that
                continue
            later = held[held.index(gone) + 1 :]
            held.remove(gone)
            if not held:
                left = gone
            elif later:
                yield Move(job_id, gone, later[0])
            else:  # the newcomer went away again
                yield Move(job_id, held[-1], gone)
                yield Move(job_id, gone, held[-1])
        if pruned and left is not None:
            yield Move(job_id, left, None)
            left = None
    for extra in held[1:]:
        yield Move(job_id, held[0], extra)
    if left is not None:
        yield Move(job_id, left, None)
