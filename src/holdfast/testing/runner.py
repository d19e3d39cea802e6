"""Runs what is ready now, on a clock that stands still, by the worker's own executor; not a worker: nobody is polled.

Claims, settlements and cancellations go through the store as a worker's do. Only the waiting is left out.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
from collections import Counter
from typing import Any
from uuid import uuid4

from holdfast.config import Config
from holdfast.core.cause import Cause
from holdfast.core.fairness import Lane
from holdfast.core.job import ClaimedJob, JobId, WorkerId
from holdfast.core.outcome import Failed, Outcome
from holdfast.core.priority import HIGHEST, LOWEST
from holdfast.core.settlement import UNKNOWN_TASK
from holdfast.core.shown import counted
from holdfast.core.task import Registry
from holdfast.core.worker import NewWorker
from holdfast.runtime.service import Service
from holdfast.runtime.threads import ThreadPool
from holdfast.stores.base import Hint, Store
from holdfast.telemetry.hub import Telemetry
from holdfast.worker.cancels import CancelWatch
from holdfast.worker.executor import Executor
from holdfast.worker.lifecycle import Hooks, Lifecycle
from holdfast.worker.reporting import report_settled, report_started
from holdfast.worker.run import Run

_LEASE_S = 100 * 365 * 86_400.0
_BATCH = 1000


class Runner:
    """One per harness. It may be entered again by a job that it runs (inline mode)."""

    def __init__(
        self, store: Store, registry: Registry, config: Config, *, hooks: Hooks, telemetry: Telemetry, most: int
    ) -> None:
        self._store = store
        self._registry = registry
        self._config = config
        self._telemetry = telemetry
        self._most = most
        self._runs: Counter[str] = Counter()
        self._threads = ThreadPool(config.threads, name="holdfast-test")
        self._life_around = Lifecycle(hooks, threads=self._threads, telemetry=telemetry)
        self._begun = False
        self.running: dict[JobId, asyncio.Task[Any]] = {}
        self.errors: dict[JobId, BaseException] = {}
        """What the last run of a job raised."""
        self._executor = _Executor(
            registry,
            store,
            config,
            threads=self._threads,
            telemetry=telemetry,
            providers=self._life_around.providers,
            middleware=hooks.middleware,
            errors=hooks.errors,
            rng=random.Random(0).random,  # the jitter of retries is the same in every test
        )
        self._executor.errors = self.errors

    async def close(self) -> None:
        """What the app wants done after its last job."""
        if self._begun:
            await self._life_around.end()
        self._threads.close()

    async def run_due(self) -> list[JobId]:
        """Run all that is ready, and what becomes ready by it; the jobs in the order of their starts."""
        if not self._begun:  # as a worker begins, but for provided objects: they are made when a task needs them
            self._begun = True
            await self._life_around.begin(())
        ran: list[JobId] = []
        worker = uuid4()
        new = NewWorker(worker, socket.gethostname(), os.getpid(), self._config.concurrency, tuple(self._config.served))
        await self._store.register_worker(new, lease_s=_LEASE_S)
        runs: dict[int, Run] = {}
        stirred = asyncio.Event()
        cancels = CancelWatch(self._store, worker, runs, poll_s=self._config.poll_s, on_crash=_raise)
        await cancels.start()

        def on_hint(hint: Hint) -> None:
            stirred.set()
            if hint & Hint.CANCEL:
                cancels.wake()

        leave = self._store.subscribe(on_hint)
        tasks: set[asyncio.Task[None]] = set()
        try:
            while True:
                stirred.clear()
                for job in await self._claim(worker, self._config.concurrency - len(tasks)):
                    self._count(job)
                    ran.append(job.id)
                    run = runs[job.token] = Run(job, worker)
                    run.task = asyncio.create_task(self._live(run, runs))
                    self.running[job.id] = run.task
                    tasks.add(run.task)
                if not tasks:
                    return ran
                hinted = asyncio.create_task(stirred.wait())
                done, _ = await asyncio.wait({*tasks, hinted}, return_when=asyncio.FIRST_COMPLETED)
                hinted.cancel()
                tasks -= done
                for task in done - {hinted}:
                    task.result()
        finally:
            for left in tasks:
                left.cancel()
            leave()
            await cancels.stop()
            await self._store.hand_back_worker(worker, cause=Cause.HANDED_BACK, why="the test went on")

    async def next_due_in_s(self) -> float | None:
        """How long until a scheduled job, or a gate at which somebody waits, is due; None when there is none."""
        promotion = await self._store.promote_jobs(limit=_BATCH)
        served = await self._store.serve_gates(limit=_BATCH)
        return min((at for at in (promotion.next_due_in_s, served.next_due_in_s) if at is not None), default=None)

    async def _claim(self, worker: WorkerId, free: int) -> list[ClaimedJob]:
        await self._store.expire_jobs(limit=_BATCH)
        await self._store.promote_jobs(limit=_BATCH)
        await self._store.serve_gates(limit=_BATCH)
        await self._store.unpark_jobs(reason=UNKNOWN_TASK, keys=self._registry.names())
        queues = list(self._config.served) or sorted(await self._store.queue_settings())
        claimed: list[ClaimedJob] = []
        for priority in range(HIGHEST, LOWEST - 1, -1):
            for queue in queues:
                if (room := free - len(claimed)) > 0:
                    claim = await self._store.claim_jobs(worker, {Lane(queue, priority): room}, deadline_s=60.0)
                    claimed += claim.jobs
        return claimed

    async def _live(self, run: Run, runs: dict[int, Run]) -> None:
        self.errors.pop(run.job.id, None)
        report_started(self._telemetry, run)
        try:
            settlement = await self._executor.execute(run)
            if settlement is not None:
                marks = () if run.mark is None else (run.mark,)
                await self._store.settle_jobs(run.worker, [settlement], marks=marks)
                report_settled(self._telemetry, run, settlement, took_s=0.0)  # the clock has stood still
        finally:
            del runs[run.job.token]
            self.running.pop(run.job.id, None)

    def _count(self, job: ClaimedJob) -> None:
        self._runs[job.task or "?"] += 1
        if self._runs.total() > self._most:
            often = ", ".join(f"{task} ({counted(count, 'time')})" for task, count in self._runs.most_common(3))
            raise AssertionError(
                f"{self._most} runs and still not idle; what ran most: {often}. A job that enqueues itself again, or "
                "always asks to be retried, never ends: give it a limit, or the harness a higher max_runs="
            )


class _Executor(Executor):
    """The worker's, remembering what a task raised: the store keeps only its text."""

    errors: dict[JobId, BaseException]

    async def _call(self, run: Run, *plan: Any) -> Outcome:
        outcome = await super()._call(run, *plan)
        if isinstance(outcome, Failed):
            self.errors[run.job.id] = outcome.exception
        return outcome


def _raise(service: Service, error: BaseException) -> None:
    raise error
