"""Brings new jobs into the store: group commit, waiting on full queues, repeating what had no answer.

Duties:
1. Many callers share one insert (two batchers: keyed jobs can wait for locks and must not hold up the others).
2. A full queue makes its callers wait in line until it accepts or their deadline passes (P8).
3. An insert without an answer is repeated with the same ids, which is safe, for a bounded time (rule 8).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import NoReturn

from holdfast.client.waiting_line import WaitingLine
from holdfast.config import Config
from holdfast.core.backpressure import retry_after
from holdfast.core.errors import (
    IdempotencyConflict,
    KeyHeld,
    OutcomeUnknown,
    QueueFull,
    StoreDataError,
    StoreUnavailable,
)
from holdfast.core.job import JobId, NewJob
from holdfast.runtime.backoff import Backoff, retry_transient
from holdfast.runtime.batcher import Batcher
from holdfast.runtime.clock import Clock
from holdfast.stores.base import Conflict, Existing, Full, Hint, Inserted, InsertResult, Store, Withheld
from holdfast.telemetry.events import JobEnqueued, QueueClosed, QueueOpened
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
        self._lines: dict[str, WaitingLine] = {}
        self._leave = store.subscribe(self._on_hint)

    async def close(self) -> None:
        self._leave()
        for line in self._lines.values():
            line.close()
        await self._plain.close()
        await self._keyed.close()

    async def enqueue(self, job: NewJob, *, wait_s: float) -> JobId:
        """Store one job; returns the id under which it is known, which an idempotency key may decide."""
        put = self._plain.put if job.key is None else self._put_keyed
        answer = await put(job)
        if type(answer) is not Inserted:
            if isinstance(answer, Full):

                async def again() -> list[InsertResult]:
                    return [await put(job)]

                [answer] = await self._wait_for_room(answer, again, wait_s)
            if not isinstance(answer, Inserted | Existing):
                refuse(job, answer)
        if self._telemetry.wants(JobEnqueued) and isinstance(answer, Inserted) and answer.state:
            self._telemetry.emit(JobEnqueued(job.id, job.task, job.queue, job.priority, answer.state))
        return answer.job_id

    async def _put_keyed(self, job: NewJob) -> InsertResult:
        """A key may be in somebody's open transaction: whoever wants it waits, and holds up nobody else."""
        deadline_s = self._clock.monotonic() + self._config.wait_s
        while True:
            try:
                return await self._keyed.put(job)
            except KeyHeld:
                if self._clock.monotonic() >= deadline_s:
                    raise
                await asyncio.sleep(_HELD_S)

    async def enqueue_many(self, jobs: Sequence[NewJob], *, wait_s: float) -> list[JobId]:
        """Store all of them in one transaction, or none."""
        if not jobs:
            return []
        answers = await self._insert(jobs, whole=True)
        if full := next((answer for answer in answers if type(answer) is Full), None):
            answers = await self._wait_for_room(full, lambda: self._insert(jobs, whole=True), wait_s)
        ids: list[JobId] = []
        for index, answer in enumerate(answers):
            if isinstance(answer, (Inserted, Existing)):  # quicker than a union, and passed by every job
                ids.append(answer.job_id)
            elif not isinstance(answer, Withheld):
                refuse(jobs[index], answer, index=index)
        if self._telemetry.wants(JobEnqueued):
            for job, answer in zip(jobs, answers, strict=True):
                if isinstance(answer, Inserted) and answer.state:
                    self._telemetry.emit(JobEnqueued(job.id, job.task, job.queue, job.priority, answer.state))
        return ids

    async def _insert(self, jobs: Sequence[NewJob], *, whole: bool = False) -> list[InsertResult]:
        asked = self._clock.monotonic()
        unknown = False

        def worth_repeating(error: BaseException) -> bool:
            nonlocal unknown
            if not isinstance(error, StoreUnavailable) or (isinstance(error, KeyHeld) and not whole):
                return False
            unknown = unknown or error.unknown
            # Certainly not written: the caller may hear of it soon. Perhaps written: find out, if it takes long.
            return unknown or self._clock.monotonic() - asked < self._config.wait_s

        try:
            return await retry_transient(
                lambda: self._store.insert_jobs(jobs, whole=whole),
                is_transient=worth_repeating,
                give_up_after_s=self._config.unknown_after_s,
                backoff=Backoff(0.02, 1.0),
                clock=self._clock,
            )
        except StoreUnavailable as error:
            # A held key may be held by this very call, whose connection was cut: whoever wants it waits by himself.
            if not unknown or (isinstance(error, KeyHeld) and not whole):
                raise
            raise OutcomeUnknown(
                f"the store did not answer for {self._config.unknown_after_s:g} s after it had been asked to insert "
                f"{len(jobs)} job(s), the first {jobs[0].id}; they may or may not be there: look before you "
                "enqueue them again, or use an idempotency key"
            ) from error

    async def _wait_for_room(
        self, full: Full, attempt: Callable[[], Awaitable[list[InsertResult]]], wait_s: float
    ) -> list[InsertResult]:
        """Stand in the queue's line until it accepts or the deadline passes; then in that of the next full one."""
        deadline_s = self._clock.monotonic() + wait_s
        self._telemetry.emit(QueueClosed(full.queue, full.depth))
        while True:
            line = self._lines.setdefault(full.queue, WaitingLine(self._clock))
            left_s = deadline_s - self._clock.monotonic()
            refused = partial(_is_full, full.queue)
            answers: list[InsertResult] | None = await line.wait(attempt, refused=refused, wait_s=left_s)
            if answers is None:
                _raise_full(full)
            self._telemetry.emit(QueueOpened(full.queue, full.low))
            others = _full(answers)
            if not others:
                return answers
            full = next(iter(others.values()))

    def _on_hint(self, hint: Hint) -> None:
        if hint & Hint.OPENED:
            for line in self._lines.values():
                line.call()


def _is_full(queue: str, answers: list[InsertResult]) -> bool:
    return queue in _full(answers)


def _full(answers: list[InsertResult]) -> dict[str, Full]:
    """The queues that refused, by name."""
    return {answer.queue: answer for answer in answers if isinstance(answer, Full)}


def _raise_full(full: Full) -> NoReturn:
    queue, depth, high, low, age_s = full
    raise QueueFull(queue, depth=depth, high=high, low=low, retry_after=retry_after(depth, low, None), age_s=age_s)


def _is_data_error(error: BaseException) -> bool:
    return isinstance(error, StoreDataError)


def _is_one_jobs_fault(error: BaseException) -> bool:
    return isinstance(error, StoreDataError | KeyHeld)


def refuse(job: NewJob, answer: Conflict | Full | Withheld, *, index: int | None = None) -> NoReturn:
    """Say why a job was not taken."""
    match answer:
        case Full():
            _raise_full(answer)
        case Conflict(job_id):
            assert job.key is not None
            raise IdempotencyConflict(job.key.key, tenant=job.tenant, job_id=job_id, index=index)
        case Withheld():
            raise AssertionError("withheld without a reason")
