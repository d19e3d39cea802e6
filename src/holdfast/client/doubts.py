"""Knows which refusals are not for certain: a try that was never answered may yet be carried out, after all of them.

A connection is given up when its answer does not come, but what was sent on it can still be under way, or lie before a
server that is stopped. The next try, on another connection, is told that the queue is full or that the job is not
unique; then the first one arrives, finds room, and the job is there. Whoever was refused would have done without it, or
asked for another. So a refusal after such a try is told as what it is: nobody knows.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TypeVar

from holdfast.core.errors import HoldfastError, NotUnique, OutcomeUnknown, QueueFull, StoreUnavailable
from holdfast.core.job import JobId, NewJob
from holdfast.stores.base import Conflict, Existing, Inserted, InsertResult

T = TypeVar("T")


class Doubts:
    """Of one process' calls that are under way; a call may share its tries with others, and have several."""

    def __init__(self) -> None:
        self._under_way: set[JobId] = set()
        self._doubted: set[JobId] = set()

    async def settled(self, jobs: Sequence[NewJob], call: Awaitable[T]) -> T:
        """What a call says that enqueues these; OutcomeUnknown, where that is in doubt."""
        ids = {job.id for job in jobs}
        self._under_way |= ids
        try:
            told = await call
            if self.are_about(jobs):
                raise self._unknown(jobs, "the store answered that such a job is there already")
            return told
        except (QueueFull, NotUnique, StoreUnavailable) as refusal:
            if self.are_about(jobs):
                raise self._unknown(jobs, refusal) from refusal
            raise
        finally:
            self._under_way -= ids
            self._doubted -= ids

    def are_about(self, jobs: Sequence[NewJob]) -> bool:
        return bool(self._doubted) and not self._doubted.isdisjoint(job.id for job in jobs)

    def unanswered(self, jobs: Sequence[NewJob]) -> None:
        """A try of theirs: what comes of it, nobody knows."""
        self._doubted |= self._under_way.intersection(job.id for job in jobs)

    def answered(self, jobs: Sequence[NewJob], answers: Sequence[InsertResult]) -> None:
        """A try of theirs, by the store."""
        if self._doubted:
            known = zip(jobs, answers, strict=True)
            self._doubted -= {job.id for job, answer in known if _is_for_ever(job, answer)}

    def _unknown(self, jobs: Sequence[NewJob], said: str | HoldfastError) -> OutcomeUnknown:
        return OutcomeUnknown(
            f"{said}; but an earlier try of the same call was not answered, and may yet be carried out: {len(jobs)} "
            f"job(s), the first {jobs[0].id}; look before you enqueue them again, or use an idempotency key"
        )


def _is_for_ever(job: NewJob, answer: InsertResult) -> bool:
    """Whether the same rows, however late they come, are answered alike: a key is given once, a place is given back."""
    return isinstance(answer, Inserted | Conflict) or (isinstance(answer, Existing) and job.unique is None)
