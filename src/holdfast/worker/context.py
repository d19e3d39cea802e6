"""`current_job()`: what a task can know of, and say about, its own run."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from typing import Any

from holdfast.core.errors import HoldfastError, InvalidOptions, LeaseLost
from holdfast.core.job import JobId
from holdfast.core.outcome import storable
from holdfast.core.shown import shown
from holdfast.stores.base import Store
from holdfast.worker.finishing import Finishing
from holdfast.worker.run import Interruption, Run

_STAGE_LIMIT = 200


class CurrentJob:
    """The run that is going on; valid until the task returns."""

    __slots__ = ("_encode_result", "_finishing", "_loop", "_run", "_store")

    def __init__(
        self,
        run: Run,
        store: Store,
        loop: asyncio.AbstractEventLoop,
        *,
        encode_result: Callable[[Any], bytes],
    ) -> None:
        self._run = run
        self._store = store
        self._loop = loop
        self._encode_result = encode_result
        self._finishing: Finishing | None = None  # made when it is asked for, which few runs do

    @property
    def id(self) -> JobId:
        """The job's id: the same in every run and every replay."""
        return self._run.job.id

    @property
    def task(self) -> str:
        """The task's name."""
        return self._run.job.task or ""

    @property
    def queue(self) -> str:
        """The queue that the job came from."""
        return self._run.job.queue

    @property
    def tenant(self) -> str:
        """On whose behalf it was enqueued; empty for nobody's."""
        return self._run.job.tenant

    @property
    def attempt(self) -> int:
        """1 for the first run that counts."""
        return self._run.job.attempt

    @property
    def token(self) -> int:
        """Grows with every run of every job in the store: give it to stores of your own to fence their writes."""
        return self._run.job.token

    @property
    def worker(self) -> str:
        """The id of the worker that runs it."""
        return str(self._run.worker)

    @property
    def cancelled(self) -> bool:
        """Whether this run was asked to stop; for loops in `def` tasks that sit in C code, which hears of nothing."""
        return self._run.interruption is not None

    async def progress(self, done: float, total: float | None = None, stage: str | None = None) -> None:
        """Report how far the run has come (`total` may be unknown, `stage` is a word for it); kept with the job.

        Raises `LeaseLost` when the run no longer counts: stop it then.
        """
        try:
            await self._report(done, total, stage)
        except LeaseLost:
            if not self._run.finished:
                self._run.interrupt(Interruption.LEASE_LOST)
            raise

    async def _report(self, done: float, total: float | None, stage: str | None) -> None:
        _check_progress(done, total, stage)
        written = await self._store.record_progress(
            self._run.worker,
            self.id,
            self.token,
            done=float(done),
            total=None if total is None else float(total),
            stage=None if stage is None else storable(stage, _STAGE_LIMIT),
        )
        if not written and self._run.finished:
            raise LeaseLost(f"job {self.id}: it has finished, and code after its transaction() holds no lease")
        if not written:
            raise LeaseLost(f"job {self.id}: this run's lease has passed on, nothing that it writes counts")

    def progress_from_thread(self, done: float, total: float | None = None, stage: str | None = None) -> None:
        """`progress` for `def` tasks: waits until the report is written."""
        if asyncio._get_running_loop() is self._loop:
            raise HoldfastError(
                "progress_from_thread() was called on the event loop, where it would wait for itself; "
                "in an `async def` task use `await current_job().progress(…)`"
            )
        try:
            asyncio.run_coroutine_threadsafe(self._report(done, total, stage), self._loop).result()
        except LeaseLost:
            # Noted only: an interruption would be raised in this thread instead of the error, or amid its handling.
            self._run.interruption = Interruption.LEASE_LOST
            raise

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        """`async with job.transaction() as connection:` gives an asyncpg connection to the store's database.

        What is written over it and the success of the job, said by `job.finish(value)` in the block, commit together at
        its end, exactly once: if this run no longer holds the job by then, all of it is rolled back and LeaseLost is
        raised. Without `finish`, and with an exception, it is rolled back, too. Code after the block holds no lease.
        """
        if asyncio._get_running_loop() is not self._loop:
            raise HoldfastError(
                "current_job().transaction() needs an `async def` task: it was called in a thread, where there is no "
                "event loop for its connection"
            )
        return self._finish().transaction()

    def finish(self, value: Any = None) -> None:
        """Inside `transaction()`: the job succeeds with this result when the block has committed."""
        self._finish().finish(value)

    def _finish(self) -> Finishing:
        if self._finishing is None:
            self._finishing = Finishing(self._run, self._store, self._encode_result)
        return self._finishing


_current: ContextVar[CurrentJob | None] = ContextVar("holdfast_current_job", default=None)


def current_job() -> CurrentJob:
    """The job whose task is calling; only inside a task that a worker runs."""
    job = _current.get()
    if job is None:
        raise HoldfastError("current_job() was called outside of a running job; only a task that a worker runs has one")
    return job


def enter_job(job: CurrentJob) -> None:
    """Make `job` the current one of this asyncio task and what it starts."""
    _current.set(job)


def _check_progress(done: float, total: float | None, stage: str | None) -> None:
    for name, value in (("done", done), ("total", total)):
        if value is None and name == "total":
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= sys.float_info.max:
            raise InvalidOptions(f"progress({name}={shown(value, 40)}): needs a number from 0")
    if stage is not None and not isinstance(stage, str):
        raise InvalidOptions(f"progress(stage={shown(stage, 40)}): needs a text")
