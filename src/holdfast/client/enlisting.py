"""Enqueue inside a transaction of the caller's: the job is there if and only if that commits (P6).

Three steps, because a connection that blocks is used in its owner's thread, and the store on its loop: `prepare` there,
`insert` here, `follow` there.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from holdfast.client.enqueuer import refuse
from holdfast.client.refusals import Refusals
from holdfast.core.job import JobId, NewJob
from holdfast.stores.base import Existing, Inserted, InsertResult, Store, Withheld
from holdfast.telemetry.events import JobEnqueued
from holdfast.telemetry.hub import Telemetry

T = TypeVar("T")


class Enlistment:
    """Jobs of one call, on their way into one transaction, all or none."""

    def __init__(
        self,
        store: Store,
        jobs: Sequence[NewJob],
        connection: object,
        *,
        blocking: bool,
        numbered: bool,
        refusals: Refusals,
        telemetry: Telemetry,
    ) -> None:
        self._jobs = jobs
        self._visit = store.visit(connection, blocking=blocking)
        self._numbered = numbered
        self._refusals = refusals
        self._telemetry = telemetry
        self._answers: list[InsertResult] = []

    async def prepare(self) -> None:
        """On the store's loop, before anything happens on the caller's connection."""
        await self._visit.admit(self._jobs)

    async def insert(self) -> list[JobId]:
        """On the caller's connection. A full queue is an error at once: nobody waits inside a transaction."""
        self._answers = await self._visit.insert_jobs(self._jobs) if self._jobs else []
        ids: list[JobId] = []
        for index, (job, answer) in enumerate(zip(self._jobs, self._answers, strict=True)):
            if isinstance(answer, Inserted | Existing):
                ids.append(answer.job_id)
            elif not isinstance(answer, Withheld):
                refuse(job, answer, full=self._refusals.error, index=index if self._numbered else None)
        return ids

    async def follow(self) -> None:
        """On the store's loop: whatever should happen when the caller commits."""
        self._visit.follow(self._on_committed)

    def _on_committed(self) -> None:
        if self._telemetry.wants(JobEnqueued):
            for job, answer in zip(self._jobs, self._answers, strict=True):
                if isinstance(answer, Inserted) and answer.state:
                    self._telemetry.emit(JobEnqueued(job.id, job.task, job.queue, job.priority, answer.state))


def run_here(step: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine that never really waits, in this thread and without an event loop."""
    coroutine = step()
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    coroutine.close()
    raise AssertionError("a connection that blocks was waited for")
