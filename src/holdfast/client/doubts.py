"""Knows which refusals are not for certain: a try that was never answered may yet be carried out, after all of them.

A connection is given up when its answer does not come, but what was sent on it can still be under way, or lie before a
server that is stopped. The next try, on another connection, is told that the queue is full or that the job is not
unique; then the first one arrives, finds room, and the job is there. Whoever was refused would have done without it, or
asked for another. So a refusal after such a try is told as what it is: nobody knows.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.core.errors import HoldfastError, NotUnique, OutcomeUnknown, QueueFull
from holdfast.core.job import JobId, NewJob
from holdfast.stores.base import Conflict, Existing, Inserted, InsertResult


class Doubts:
    """Of one process' calls that are under way."""

    def __init__(self) -> None:
        self._ids: set[JobId] = set()

    def note(self, jobs: Sequence[NewJob], answers: Sequence[InsertResult], *, unanswered: bool) -> None:
        """What the store answered, and whether a try before that had no answer."""
        if not unanswered and not self._ids:
            return
        for job, answer in zip(jobs, answers, strict=True):
            if _is_for_ever(job, answer):
                self._ids.discard(job.id)
            elif unanswered:
                self._ids.add(job.id)

    def settle(self, jobs: Sequence[NewJob], refusal: HoldfastError | None = None) -> None:
        """The end of a call: raises OutcomeUnknown where what its caller would be told now is in doubt."""
        if not self._ids:
            return
        doubted = self._ids.intersection(job.id for job in jobs)
        self._ids -= doubted
        if doubted and isinstance(refusal, QueueFull | NotUnique | None):
            said = str(refusal) if refusal else "the store answered that such a job is there already"
            raise OutcomeUnknown(
                f"{said}; but an earlier try of the same call was not answered, and may yet be carried out: "
                f"{len(jobs)} job(s), the first {jobs[0].id}; look before you enqueue them again, or use an "
                "idempotency key"
            ) from refusal


def _is_for_ever(job: NewJob, answer: InsertResult) -> bool:
    """Whether the same rows, however late they come, are answered alike: a key is given once, a place is given back."""
    return isinstance(answer, Inserted | Conflict) or (isinstance(answer, Existing) and job.unique is None)
