"""One identity of a worker, from registration to its end: joins fetcher, executor, settler and heartbeat.

Whoever loses the lease starts over as somebody else: a session is never revived.
"""

from __future__ import annotations

import asyncio
import os
import socket
from uuid import uuid4

from holdfast.config import Config
from holdfast.core.cause import Cause
from holdfast.core.errors import StoreUnavailable
from holdfast.core.job import ClaimedJob
from holdfast.core.settlement import UNKNOWN_TASK, Bury, HandBack, Park, Retry, Settlement, Verdict
from holdfast.core.task import Registry
from holdfast.core.worker import NewWorker
from holdfast.runtime.clock import Clock
from holdfast.stores.base import HeldJob, Hint, Store
from holdfast.stores.health import StoreHealth
from holdfast.telemetry.events import JobBuried, JobLost, JobParked, JobRetried, JobSettled, JobStarted, WorkerLeaseLost
from holdfast.telemetry.hub import Telemetry
from holdfast.worker.cancels import CancelWatch
from holdfast.worker.executor import Executor
from holdfast.worker.fetcher import Fetcher
from holdfast.worker.heartbeat import Heartbeat
from holdfast.worker.run import Interruption, Run
from holdfast.worker.settler import Settler
from holdfast.worker.slots import Slots

#: Claims have this share of a lease to be answered; what the store leased longer ago and nobody knows is lost.
CLAIM_DEADLINE = 0.5
_STOP_WAIT_S = 5.0


class Session:
    """See the module's sentence."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        config: Config,
        executor: Executor,
        *,
        clock: Clock,
        health: StoreHealth,
        telemetry: Telemetry,
    ) -> None:
        self.id = uuid4()
        self.lost = asyncio.Event()
        self._store = store
        self._registry = registry
        self._config = config
        self._executor = executor
        self._clock = clock
        self._telemetry = telemetry
        self._slots = Slots(config.concurrency)
        self._runs: dict[int, Run] = {}
        self._heartbeat = Heartbeat(
            store,
            self.id,
            lease_s=config.lease_s,
            held_for_s=config.lease_s * CLAIM_DEADLINE * 1.2,
            clock=clock,
            on_lost=self._lose,
            on_held=self._find_lost_claims,
        )
        self._settler = Settler(
            store,
            self.id,
            buffer=max(1000, 2 * config.concurrency),
            lease_lost=lambda: self._heartbeat.lost,
            clock=clock,
            health=health,
        )
        self._fetcher = Fetcher(
            store,
            self.id,
            slots=self._slots,
            queues=config.queues,
            known_queues=lambda: {task.options.queue for task in registry},
            start_run=self._start_run,
            on_lease_lost=self._lose,
            deadline_s=config.lease_s * CLAIM_DEADLINE,
            poll_s=config.poll_s,
            clock=clock,
            health=health,
        )
        self._cancels = CancelWatch(store, self.id, self._runs, poll_s=config.poll_s)

    @property
    def running(self) -> int:
        return self._slots.taken

    async def start(self) -> None:
        """Register, then beat, then claim."""
        asked_s = self._clock.monotonic()
        worker = NewWorker(self.id, socket.gethostname(), os.getpid(), self._config.concurrency, self._config.queues)
        await self._store.register_worker(worker, lease_s=self._config.lease_s)
        self._heartbeat.start(registered_at_s=asked_s)
        await self._store.unpark_jobs(reason=UNKNOWN_TASK, keys=self._registry.names())
        self._leave = self._store.subscribe(self._on_hint)
        await self._cancels.start()
        await self._fetcher.start()

    async def stop(self, *, grace_s: float) -> None:
        """Stop claiming, let what runs end within the grace period, give the rest back, sign off."""
        await self._fetcher.stop()
        await self._drain(grace_s)
        await self._wind_up(Interruption.DRAIN)
        if not self.lost.is_set():
            try:
                await self._store.hand_back_worker(self.id, cause=Cause.HANDED_BACK, why="the worker stopped")
            except StoreUnavailable:
                return  # the lease runs out by itself

    async def abandon(self) -> None:
        """The lease is lost: stop everything, write nothing."""
        self._fetcher.ask_stop()
        self.hurry(Interruption.LEASE_LOST)
        await self._fetcher.stop()
        await self._wind_up(Interruption.LEASE_LOST)

    def hurry(self, why: Interruption = Interruption.DRAIN) -> None:
        """Interrupt what runs; may come while `stop` is waiting for the grace period."""
        for run in list(self._runs.values()):
            run.interrupt(why)

    async def _wind_up(self, why: Interruption) -> None:
        self.hurry(why)
        await self._drain(_STOP_WAIT_S)
        self._leave()
        await self._cancels.stop()
        await self._settler.close()
        await self._heartbeat.stop()

    # ------------------------------------------------------------ runs

    def _start_run(self, job: ClaimedJob) -> None:
        run = Run(job, self.id)
        self._runs[job.token] = run
        self._slots.take()
        run.task = asyncio.get_running_loop().create_task(self._live(run))

    async def _live(self, run: Run) -> None:
        """One run: execute, hand in the outcome, free the slot, hear the verdict."""
        run.started_s = self._clock.monotonic()
        if self._telemetry.wants(JobStarted):
            job = run.job
            self._telemetry.emit(JobStarted(job.id, job.task or "", job.queue, job.attempt, self.id))
        slot_taken = True
        try:
            settlement = await self._executor.execute(run)
            if settlement is None or self.lost.is_set():
                self._report_lost(run)
                return
            verdict = await self._settler.hand_in(settlement)
            self._slots.give_back()
            slot_taken = False
            self._report(run, settlement, await self._settler.verdict_of(settlement, verdict))
        finally:
            self._runs.pop(run.job.token, None)
            if slot_taken:
                self._slots.give_back()

    def _report(self, run: Run, settlement: Settlement, verdict: Verdict) -> None:
        if verdict is Verdict.LOST:
            self._report_lost(run)
            return
        job, emit, wants = run.job, self._telemetry.emit, self._telemetry.wants
        task = job.task or ""
        match settlement:
            case Retry(delay_s=delay_s, error=error) if wants(JobRetried):
                emit(JobRetried(job.id, task, job.attempt, delay_s, f"{error.type}: {error.message}"))
            case Bury(reason=reason, error=error) if wants(JobBuried):
                emit(JobBuried(job.id, task, job.attempt, f"{error.type}: {error.message}", reason))
            case Park(reason=reason, key=key) if wants(JobParked):
                emit(JobParked(job.id, task, reason, key))
            case _:
                pass
        if wants(JobSettled):
            outcome = type(settlement).__name__.lower()
            emit(JobSettled(job.id, task, job.queue, job.attempt, outcome, self._clock.monotonic() - run.started_s))

    def _report_lost(self, run: Run) -> None:
        self._telemetry.emit(JobLost(run.job.id, run.job.task or "", run.job.token))

    async def _drain(self, seconds: float) -> None:
        running = [run.task for run in self._runs.values() if run.task is not None]
        if running and seconds > 0:
            await asyncio.wait(running, timeout=seconds)

    # ------------------------------------------------------------ what is heard

    def _on_hint(self, hint: Hint) -> None:
        self._fetcher.hint(hint)
        if hint & Hint.CANCEL and self._runs:
            self._cancels.wake()

    def _lose(self) -> None:
        if not self.lost.is_set():
            self._heartbeat.lost = True
            self.lost.set()
            self._telemetry.emit(WorkerLeaseLost(self.id))

    def _find_lost_claims(self, held: list[HeldJob]) -> None:
        """Leases that the store has under our name and nobody here knows: a claim whose answer was lost."""
        if self._fetcher.claiming or self._fetcher.stopping.is_set():
            return
        for job_id, token in held:
            if token not in self._runs:
                settlement = HandBack(job_id, token, "the answer to the claim was lost", Cause.CLAIM_LOST)
                asyncio.get_running_loop().create_task(self._settler.settle(settlement))
