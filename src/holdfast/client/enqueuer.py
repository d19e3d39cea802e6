"""Brings new jobs into the store: group commit, waiting on full queues, repeating what had no answer.

Duties:
1. Many callers share one insert (two batchers: keyed and unique jobs can wait for locks and must not hold up the
   others).
2. A full queue makes its callers wait in line until it accepts or their deadline passes (P8); jobs of a priority that
   operators or the settings name go past it. One that is being drained refuses at once.
3. An insert without an answer is repeated with the same ids, which is safe, for a bounded time (rule 8). A refusal
   after it is not for certain (`doubts`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import NoReturn

from holdfast.client.bypasses import Bypasses
from holdfast.client.doubts import Doubts
from holdfast.client.refusals import Refusals
from holdfast.client.waiting_line import WaitingLines
from holdfast.config import Config
from holdfast.core.errors import (
    IdempotencyConflict,
    KeyHeld,
    NotUnique,
    OutcomeUnknown,
    QueueFull,
    StoreDataError,
    StoreUnavailable,
)
from holdfast.core.job import JobId, NewJob
from holdfast.core.shown import counted
from holdfast.runtime.backoff import Backoff, retry_transient
from holdfast.runtime.batcher import Batcher
from holdfast.runtime.clock import Clock
from holdfast.stores.base import Conflict, Existing, Full, Inserted, InsertResult, Store, Taken, Withheld
from holdfast.telemetry.events import JobEnqueued
from holdfast.telemetry.hub import Telemetry

#: Between two tries for a key that is in an open transaction.
_HELD_S = 0.25


class Enqueuer:
    """See the module's duties."""

    def __init__(self, store: Store, config: Config, *, clock: Clock, telemetry: Telemetry) -> None:
        self._store = store
        self._config = config
        self._clock = clock
        self._telemetry = telemetry
        self._plain: Batcher[NewJob, InsertResult] = Batcher(self._insert, is_data_error=_is_data_error)
        self._keyed: Batcher[NewJob, InsertResult] = Batcher(self._insert, is_data_error=_is_one_jobs_fault)
        self._past_plain: Batcher[NewJob, InsertResult] = Batcher(self._insert_past, is_data_error=_is_data_error)
        self._past_keyed: Batcher[NewJob, InsertResult] = Batcher(self._insert_past, is_data_error=_is_one_jobs_fault)
        self._bypasses = Bypasses(store, config, clock=clock)
        self._lines = WaitingLines(clock, subscribe=store.subscribe)
        self._doubts = Doubts()
        self.refusals = Refusals(clock=clock, telemetry=telemetry, is_paused=self._bypasses.is_paused)

    async def close(self) -> None:
        self._lines.close()
        for batcher in (self._plain, self._keyed, self._past_plain, self._past_keyed):
            await batcher.close()

    async def enqueue(self, job: NewJob, *, wait_s: float) -> JobId:
        """Store one job; returns the id under which it is known, which an idempotency key may decide."""
        return await self._doubts.settled((job,), self._enqueue(job, wait_s))

    async def _enqueue(self, job: NewJob, wait_s: float) -> JobId:
        is_plain = job.key is None and job.unique is None
        put = self._plain.put if is_plain else partial(self._put_keyed, self._keyed)
        heard = self.refusals.closed
        answer = await put(job)
        if heard and isinstance(answer, Inserted):
            self.refusals.accepted(job.queue)
        if type(answer) is not Inserted:
            if isinstance(answer, Full) and not answer.draining:
                if await self._bypasses.let_pass((job,)):
                    answer = await (self._past_plain.put(job) if is_plain else self._put_keyed(self._past_keyed, job))
                else:

                    async def again() -> list[InsertResult]:
                        return [await put(job)]

                    [answer] = await self._wait_for_room(answer, again, wait_s)
            if not isinstance(answer, Inserted | Existing):
                refuse(job, answer, full=self.refusals.error)
        if self._telemetry.wants(JobEnqueued) and isinstance(answer, Inserted) and answer.state:
            self._telemetry.emit(JobEnqueued(job.id, job.task, job.queue, job.priority, answer.state))
        return answer.job_id

    async def _put_keyed(self, batcher: Batcher[NewJob, InsertResult], job: NewJob) -> InsertResult:
        """A key may be in somebody's open transaction: whoever wants it waits, and holds up nobody else."""
        deadline_s = self._clock.monotonic() + self._config.wait_s
        while True:
            try:
                return await batcher.put(job)
            except KeyHeld:
                if self._clock.monotonic() >= deadline_s:
                    raise
                await asyncio.sleep(_HELD_S)

    async def enqueue_many(self, jobs: Sequence[NewJob], *, wait_s: float) -> list[JobId]:
        """Store all of them in one transaction, or none."""
        if not jobs:
            return []
        return await self._doubts.settled(jobs, self._enqueue_many(jobs, wait_s))

    async def _enqueue_many(self, jobs: Sequence[NewJob], wait_s: float) -> list[JobId]:
        heard = bool(self.refusals.closed)
        answers = await self._insert(jobs, whole=True)
        full = next((answer for answer in answers if type(answer) is Full), None)
        if full is not None and not any(each.draining for each in _full(answers).values()):
            if await self._bypasses.let_pass(jobs):
                answers = await self._insert(jobs, whole=True, admit=False)
            else:
                answers = await self._wait_for_room(full, lambda: self._insert(jobs, whole=True), wait_s)
        elif heard and full is None:
            for job, answer in zip(jobs, answers, strict=True):
                if isinstance(answer, Inserted):
                    self.refusals.accepted(job.queue)
        ids: list[JobId] = []
        for index, answer in enumerate(answers):
            if isinstance(answer, (Inserted, Existing)):  # quicker than a union, and passed by every job
                ids.append(answer.job_id)
            elif not isinstance(answer, Withheld):
                refuse(jobs[index], answer, full=self.refusals.error, index=index)
        if self._telemetry.wants(JobEnqueued):
            for job, answer in zip(jobs, answers, strict=True):
                if isinstance(answer, Inserted) and answer.state:
                    self._telemetry.emit(JobEnqueued(job.id, job.task, job.queue, job.priority, answer.state))
        return ids

    async def _insert_past(self, jobs: Sequence[NewJob]) -> list[InsertResult]:
        return await self._insert(jobs, admit=False)

    async def _insert(self, jobs: Sequence[NewJob], *, whole: bool = False, admit: bool = True) -> list[InsertResult]:
        asked = self._clock.monotonic()
        unknown = self._doubts.are_about(jobs)  # a try together with others, who were then refused

        def worth_repeating(error: BaseException) -> bool:
            nonlocal unknown
            if not isinstance(error, StoreUnavailable) or (isinstance(error, KeyHeld) and not whole):
                return False
            if error.unknown:
                unknown = True
                self._doubts.unanswered(jobs)
            # Certainly not written: the caller may hear of it soon. Perhaps written: find out, if it takes long.
            return unknown or self._clock.monotonic() - asked < self._config.wait_s

        try:
            answers = await retry_transient(
                lambda: self._store.insert_jobs(jobs, whole=whole, admit=admit),
                is_transient=worth_repeating,
                give_up_after_s=self._config.unknown_after_s,
                backoff=Backoff(0.02, 1.0),
                clock=self._clock,
            )
        except StoreUnavailable as error:
            # A held key may be held by this very call, whose connection was cut: whoever wants it waits by himself.
            # The last error counts as well: it may come when no time is left to ask whether it is worth repeating.
            if not (unknown or error.unknown) or (isinstance(error, KeyHeld) and not whole):
                raise
            raise OutcomeUnknown(
                f"the store did not answer for {self._config.unknown_after_s:g} s after it had been asked to insert "
                f"{counted(len(jobs), 'job')}, the first {jobs[0].id}; they may or may not be there: look before you "
                "enqueue them again, or use an idempotency key"
            ) from error
        self._doubts.answered(jobs, answers)
        return answers

    async def _wait_for_room(
        self, full: Full, attempt: Callable[[], Awaitable[list[InsertResult]]], wait_s: float
    ) -> list[InsertResult]:
        """Stand in the queue's line until it accepts or the deadline passes; then in that of the next full one."""
        deadline_s = self._clock.monotonic() + wait_s
        self.refusals.note(full)
        while True:
            left_s = deadline_s - self._clock.monotonic()
            refused = partial(self._is_refused, full.queue)
            answers: list[InsertResult] | None
            answers = await self._lines.wait(full.queue, attempt, refused=refused, wait_s=left_s)
            if answers is None:
                raise self.refusals.error(full)
            others = _full(answers)
            if full.queue not in others:
                self.refusals.accepted(full.queue)
            if not others or any(each.draining for each in others.values()):
                return answers
            full = next(iter(others.values()))
            self.refusals.note(full)

    def _is_refused(self, queue: str, answers: list[InsertResult]) -> bool:
        full = _full(answers).get(queue)
        if full is None or full.draining:  # to wait is of no use any more
            return False
        self.refusals.note(full)
        return True


def _full(answers: list[InsertResult]) -> dict[str, Full]:
    """The queues that refused, by name."""
    return {answer.queue: answer for answer in answers if isinstance(answer, Full)}


def _is_data_error(error: BaseException) -> bool:
    return isinstance(error, StoreDataError)


def _is_one_jobs_fault(error: BaseException) -> bool:
    return isinstance(error, StoreDataError | KeyHeld)


def refuse(
    job: NewJob,
    answer: Conflict | Taken | Full | Withheld,
    *,
    full: Callable[[Full], QueueFull],
    index: int | None = None,
) -> NoReturn:
    """Say why a job was not taken."""
    match answer:
        case Full():
            raise full(answer)
        case Conflict(job_id):
            assert job.key is not None
            raise IdempotencyConflict(job.key.key, tenant=job.tenant, job_id=job_id, index=index)
        case Taken(job_id):
            raise NotUnique(job_id, task=job.task, index=index)
        case Withheld():
            raise AssertionError("withheld without a reason")
