"""One identity of a worker, from registration to its end: joins fetcher, executor, settler and heartbeat.

Whoever loses the lease starts over as somebody else: a session is never revived.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from typing import Any
from uuid import uuid4

from holdfast.client.dispatch import STORE_ALONE, Dispatch
from holdfast.config import Config
from holdfast.core.cause import Cause
from holdfast.core.errors import NotOpen, StoreError
from holdfast.core.job import ClaimedJob
from holdfast.core.settlement import HandBack, Settlement, Succeed, Verdict
from holdfast.core.shown import counted
from holdfast.core.task import Registry
from holdfast.core.worker import NewWorker
from holdfast.runtime.clock import Clock
from holdfast.stores.base import HeldJob, Hint, Store
from holdfast.stores.health import StoreHealth
from holdfast.telemetry.events import JobLost, ServiceCrashed, WorkerBlocked, WorkerLeaseLost
from holdfast.telemetry.flow_events import QueueSettingsIgnored
from holdfast.telemetry.hub import Telemetry
from holdfast.worker.breaker_watch import BreakerWatch
from holdfast.worker.cancels import CancelWatch
from holdfast.worker.executor import Executor
from holdfast.worker.fetcher import Fetcher, Solitude
from holdfast.worker.heartbeat import Heartbeat
from holdfast.worker.loop_watch import LoopWatch
from holdfast.worker.queue_options import OptionsInForce
from holdfast.worker.reporting import report_settled, report_started
from holdfast.worker.retry_budgets import RetryBudgets
from holdfast.worker.run import Interruption, Run
from holdfast.worker.settler import Settled, Settler
from holdfast.worker.slots import Slots
from holdfast.worker.stacks import describe_runs
from holdfast.worker.supervision.board import Board

#: Claims have this share of a lease to be answered; what the store leased longer ago and nobody knows is lost.
CLAIM_DEADLINE = 0.5
PULSES_PER_LEASE = 10
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
        board: Board | None = None,
        solitude: Solitude = Solitude.IN_TURN,
        budgets: RetryBudgets,
        dispatch: Dispatch = STORE_ALONE,
    ) -> None:
        self.id = uuid4()
        self.lost = asyncio.Event()
        self.started_s = 0.0
        self._store = store
        self._registry = registry
        self._config = config
        self._executor = executor
        self._clock = clock
        self._telemetry = telemetry
        self._board = board
        self._budgets = budgets
        self._done = 0
        self.cut_short = 0
        """Runs that did not end by themselves before the worker did, and were handed back."""
        self._slots = Slots(1 if solitude is Solitude.ALWAYS else config.concurrency)
        self._runs: dict[int, Run] = {}
        options = OptionsInForce(config.queue_options, slots=self._slots, budgets=budgets, running=self._queues_running)
        self._breakers = BreakerWatch(store, telemetry=telemetry)
        self._hurried = asyncio.Event()
        self._heartbeat = Heartbeat(
            store,
            self.id,
            lease_s=config.lease_s,
            held_for_s=config.lease_s * CLAIM_DEADLINE * 1.2,
            clock=clock,
            on_lost=self._lose,
            on_held=self._find_lost_claims,
            loop_watch=LoopWatch(
                every_s=min(1.0, config.lease_s / PULSES_PER_LEASE),
                on_pulse=self._pulse,
                on_blocked=self._report_blocked,
            ),
        )
        self._settler = Settler(
            store,
            self.id,
            buffer=max(1000, 2 * config.concurrency),
            on_settled=self._on_settled,
            on_crash=lambda error: self._give_up("settler", error),
            on_marked=self._breakers.saw,
            lease_lost=lambda: self._heartbeat.lost,
            clock=clock,
            health=health,
        )
        self._fetcher = Fetcher(
            store,
            self.id,
            slots=self._slots,
            queues=config.served,
            solitude=solitude,
            on_lonely=self._saw_lonely,
            is_overdue=self._is_overdue,
            known_queues=lambda: {task.options.queue for task in registry},
            known_tasks=registry.names,
            start_run=self._start_run,
            give_back=self._give_back,
            on_lease_lost=self._doubt_lease,
            on_crash=lambda service, error: self._give_up(service.name, error),
            on_settings=options.follow,
            on_ignored=lambda queue, fields: telemetry.emit(QueueSettingsIgnored(queue, fields)),
            deadline_s=config.lease_s * CLAIM_DEADLINE,
            poll_s=config.poll_s,
            clock=clock,
            health=health,
            dispatch=dispatch,
        )
        self._cancels = CancelWatch(
            store,
            self.id,
            self._runs,
            poll_s=config.poll_s,
            on_crash=lambda service, error: self._give_up(service.name, error),
        )

    @property
    def running(self) -> int:
        return self._slots.taken

    @property
    def slots(self) -> int:
        return self._slots.size

    def described(self) -> list[str]:
        """What runs here, with ages and where it stands; from any thread."""
        runs, thread = list(self._runs.values()), self._heartbeat.loop_thread
        described = describe_runs(runs, now_s=self._clock.monotonic(), loop_thread=thread)
        return [f"runs {counted(len(runs), 'job')}", *described]

    @property
    def crashed(self) -> bool:
        """Given up although the lease was good."""
        return self.lost.is_set() and not self._heartbeat.lost

    async def start(self) -> None:
        """Register, then beat, then claim."""
        asked_s = self.started_s = self._clock.monotonic()
        if self._board is not None:
            self._board.introduce(self.id)
        worker = NewWorker(self.id, socket.gethostname(), os.getpid(), self._slots.size, tuple(self._config.served))
        await self._store.register_worker(worker, lease_s=self._config.lease_s)
        self._pulse(self._clock.monotonic(), 0.0)  # before anything can be claimed that would keep it from beating
        self._heartbeat.start(registered_at_s=asked_s)
        self._leave = self._store.subscribe(self._on_hint)
        await self._cancels.start()
        await self._fetcher.start()

    async def stop(self, *, grace_s: float | None) -> None:
        """Stop claiming, let what runs end within the grace period (None: whenever), give the rest back, sign off."""
        await self._fetcher.stop()
        await self._drain(grace_s, unless=self._hurried)
        await self._wind_up(Interruption.DRAIN)
        await self._sign_off("the worker stopped")

    async def abandon(self) -> None:
        """The lease is lost, or something here broke: stop everything, write no outcome."""
        self._fetcher.ask_stop()
        self.hurry(Interruption.LEASE_LOST)
        await self._fetcher.stop()
        await self._wind_up(Interruption.LEASE_LOST)
        await self._sign_off("a part of the worker crashed")

    def hurry(self, why: Interruption = Interruption.DRAIN) -> None:
        """End the grace period that `stop` is waiting for; without a lease, interrupt what runs at once."""
        self._hurried.set()
        if why is Interruption.LEASE_LOST:
            self._interrupt(why)

    def _interrupt(self, why: Interruption) -> None:
        for run in list(self._runs.values()):
            run.interrupt(why)

    async def _sign_off(self, why: str) -> None:
        """Give back what is left. Not after the lease was lost: then it is others' business what becomes of it."""
        if not self._heartbeat.lost:
            with contextlib.suppress(StoreError, NotOpen, TimeoutError):  # then the lease runs out by itself
                async with asyncio.timeout(self._config.lease_s):
                    await self._store.hand_back_worker(self.id, cause=Cause.HANDED_BACK, why=why)
        if self._board is not None:
            self._board.introduce(None)

    async def _wind_up(self, why: Interruption) -> None:
        """Only after the fetcher has stopped: it would claim again what is given back here."""
        self.cut_short += sum(run.task is not None and not run.task.done() for run in self._runs.values())
        self._interrupt(why)
        await self._drain(_STOP_WAIT_S)
        self._leave()
        await self._cancels.stop()
        await self._settler.close()
        await self._breakers.close()
        await self._heartbeat.stop()
        if self._board is not None:
            self._board.expect_no_beat()  # a store that does not answer may take long to be told of the end

    # ------------------------------------------------------------ runs

    def _start_run(self, job: ClaimedJob) -> None:
        if self._heartbeat.lost:  # its thread knows before this loop hears of it: others may have the job by now
            return
        if self._budgets.in_use and (put_off := self._budgets.put_off(job)) is not None:
            self._settler.submit(put_off)
            return
        run = Run(job, self.id)
        self._runs[job.token] = run
        self._slots.take(job.queue)
        run.task = asyncio.get_running_loop().create_task(self._live(run))

    def _queues_running(self) -> list[str]:
        """Of each run that has a slot: it has one exactly as long as its task lives."""
        return [run.job.queue for run in self._runs.values() if run.task is not None and not run.task.done()]

    def _give_back(self, job: ClaimedJob, why: str) -> None:
        self._settler.submit(HandBack(job.id, job.token, why))

    async def _live(self, run: Run) -> None:
        """One run: execute, hand in the outcome, free the slot. The verdict comes to `_on_settled`."""
        run.started_s = self._clock.monotonic()
        report_started(self._telemetry, run)
        handed_in = False
        try:
            settlement = await self._executor.execute(run)
            if run.mark is not None:
                run.mark = run.mark._replace(ran_s=self._clock.monotonic() - run.started_s)
            if self._budgets.in_use:
                settlement = self._budgets.applied(run.job.queue, settlement)
            if settlement is not None and not self.lost.is_set():
                if not self._settler.take(settlement, run.mark):
                    await self._settler.hand_in(settlement, run.mark)
                handed_in = True
        finally:
            if run.interruption is Interruption.NO_THREAD:
                self._fetcher.let_others_go_first()
            self._slots.give_back(run.job.queue)
            self._done += 1
            if not handed_in:
                self._forget(run.job.token, lost=not run.finished)
            if run.finished:
                success = Succeed(run.job.id, run.job.token, None)
                self._report(run, success)
                if run.mark is not None and not self.lost.is_set():  # it is on record already; its breaker hears of it
                    self._settler.submit(success, run.mark)

    def _on_settled(self, settled: Settled) -> None:
        settlement, verdict = settled
        run = self._forget(settlement.token, lost=verdict is Verdict.LOST)
        if run is not None and verdict is not Verdict.LOST:
            self._report(run, settlement)

    def _report(self, run: Run, settlement: Settlement) -> None:
        report_settled(self._telemetry, run, settlement, took_s=self._clock.monotonic() - run.started_s)

    def _forget(self, token: int, *, lost: bool) -> Run | None:
        run = self._runs.pop(token, None)
        if run is not None and lost:
            self._telemetry.emit(JobLost(run.job.id, run.job.task or "", run.job.token))
        return run

    async def _drain(self, seconds: float | None, *, unless: asyncio.Event | None = None) -> None:
        """Wait for what runs, for so long at most, and not when `unless` is set."""
        running = [run.task for run in self._runs.values() if run.task is not None]
        if not running or seconds == 0:
            return
        waiting: list[asyncio.Future[Any]] = [asyncio.ensure_future(asyncio.wait(running))]
        if unless is not None:
            waiting.append(asyncio.ensure_future(unless.wait()))
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for each in waiting:
            each.cancel()

    # ------------------------------------------------------------ what is heard

    def _on_hint(self, hint: Hint) -> None:
        self._fetcher.hint(hint)
        if hint & Hint.CANCEL and self._runs:
            self._cancels.wake()

    def _is_overdue(self) -> bool:
        """Whether anything that runs here has passed its hard limit."""
        return any(run.interruption is Interruption.TIMEOUT for run in self._runs.values())

    def _pulse(self, now_s: float, lag_s: float) -> None:
        """From the heartbeat's thread."""
        if self._board is not None:
            self._board.count(taken=self._slots.taken, done=self._done)
            self._board.beat(now_s, lag_s)

    def _report_blocked(self, lag_s: float, task: asyncio.Task[object] | None, where: str) -> None:
        """From the heartbeat's thread."""
        run = next((run for run in list(self._runs.values()) if run.task is task), None)
        blame = "code that is no job's own" if run is None else f"job {run.job.id} {run.job.task}"
        self._telemetry.emit(WorkerBlocked(self.id, lag_s, blame, where))

    def _saw_lonely(self) -> None:
        if self._board is not None:
            self._board.saw_lonely(self._clock.monotonic())

    def _doubt_lease(self) -> None:
        with contextlib.suppress(NotOpen):  # the heartbeat has ended: it knows
            self._heartbeat.beat_now()

    def _lose(self) -> None:
        if not self.lost.is_set():
            self._heartbeat.lost = True
            self.lost.set()
            self._telemetry.emit(WorkerLeaseLost(self.id))

    def _give_up(self, part: str, error: BaseException) -> None:
        """A part crashed: the jobs of this identity are handed back, and a new one takes over."""
        self._telemetry.emit(ServiceCrashed(part, f"{type(error).__name__}: {error}"))
        self.lost.set()

    def _find_lost_claims(self, held: list[HeldJob]) -> None:
        """Leases that the store has under our name and nobody here knows: a claim whose answer was lost."""
        if self._fetcher.claiming or self._fetcher.stopping.is_set():
            return
        for job_id, token in held:
            if token not in self._runs:
                self._settler.submit(HandBack(job_id, token, "the answer to the claim was lost", Cause.CLAIM_LOST))
