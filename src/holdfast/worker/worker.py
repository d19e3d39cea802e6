"""A worker in one process: sessions one after the other, and the upkeep that any worker does for the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from holdfast.client.dispatch import STORE_ALONE, Dispatch
from holdfast.config import Config
from holdfast.core.errors import StoreUnavailable
from holdfast.core.task import Registry, TaskDefinition
from holdfast.runtime.backoff import Backoff
from holdfast.runtime.clock import Clock
from holdfast.runtime.service import Service
from holdfast.runtime.threads import ThreadPool
from holdfast.stores.base import Store
from holdfast.stores.health import StoreHealth
from holdfast.telemetry.events import ServiceCrashed, WorkerDraining, WorkerStarted, WorkerStopped, WorkerTold
from holdfast.telemetry.hub import Telemetry
from holdfast.worker.executor import Executor
from holdfast.worker.fetcher import Solitude
from holdfast.worker.isolation.isolate import Birth
from holdfast.worker.isolation.pool import IsolatePool
from holdfast.worker.isolation.running import IsolatedRuns
from holdfast.worker.isolation.wire import longest
from holdfast.worker.lifecycle import Hooks, Lifecycle
from holdfast.worker.retry_budgets import RetryBudgets
from holdfast.worker.run import Interruption
from holdfast.worker.session import Session
from holdfast.worker.supervision.post import Post

#: A session that broke after so long was healthy: the next break is not taken for one of a series.
_HEALTHY_S = 60.0
#: A worker that has to stop now gives its users' clean-up so long.
_END_WITHIN_S = 5.0


class Worker(Service):
    """Runs jobs until it is stopped; when it is declared dead it starts over under a new identity."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        config: Config,
        *,
        upkeep: Sequence[Service],
        clock: Clock,
        telemetry: Telemetry,
        health: StoreHealth,
        hooks: Hooks,
        birth: Callable[[], Birth],
        post: Post | None = None,
        dispatch: Dispatch = STORE_ALONE,
    ) -> None:
        super().__init__(name="worker")
        self._store = store
        self._registry = registry
        self._config = config
        self._upkeep = upkeep
        self._clock = clock
        self._telemetry = telemetry
        self._health = health
        self._hooks = hooks
        self._post = post
        self._dispatch = dispatch
        self._solitude = Solitude.IN_TURN
        self._grace_s: float | None = config.grace_s
        self.cut_short = 0
        """Runs that were handed back because they did not end before the worker did."""
        self._birth = birth
        self._patience: asyncio.Timeout | None = None
        self._after_crash = Backoff(0.1, 30.0)
        self._budgets = RetryBudgets(clock=clock, telemetry=telemetry)
        self._now = asyncio.Event()
        self.session: Session | None = None
        self._ran = False

    async def on_start(self) -> None:
        self._threads = ThreadPool(self._config.threads, name="holdfast-task")
        self._life_around = Lifecycle(self._hooks, threads=self._threads, telemetry=self._telemetry)
        self._isolates = IsolatePool(
            self._birth,
            most=self._config.isolates,
            longest=longest(self._config.result_limit),
            telemetry=self._telemetry,
        )
        self._executor = Executor(
            self._registry,
            self._store,
            self._config,
            threads=self._threads,
            telemetry=self._telemetry,
            providers=self._life_around.providers,
            middleware=self._hooks.middleware,
            errors=self._hooks.errors,
            board=None if self._post is None else self._post.board,
            isolated=IsolatedRuns(self._isolates, kill_after_s=self._config.kill_after_s),
        )
        try:
            if any(task.options.isolate for task in self._tasks_served()):
                self._isolates.warm()
            await self._begin()
            if self._post is not None:
                self._solitude = await self._post.stand_by(self.stopping)
            self.session = await self._start_over()
            for service in self._upkeep:
                await service.start()
        except BaseException:
            await self.on_stop()
            raise

    async def run(self) -> None:
        self._ran = True
        while self.session is not None:
            session = self.session
            if not await self._until_lost(session):
                await self._finish(session)
                return
            await session.abandon()
            if session.crashed:  # what broke once may break every time: no hot loop
                if self._clock.monotonic() - session.started_s > _HEALTHY_S:
                    self._after_crash.reset()
                await self.pause(self._after_crash.next())
            self.session = await self._start_over()

    async def on_stop(self) -> None:
        if self.session is not None and not self._ran:  # told to stop while it started: its lease must not stay
            await self._finish(self.session)
        await asyncio.gather(*(service.stop() for service in self._upkeep))
        await self._isolates.close()
        await self._end()
        self._threads.close()

    def retire(self) -> None:
        """Stop when what runs has ended, however long that takes."""
        self._grace_s = None
        self.ask_stop()

    def tell(self) -> None:
        """Write what runs here, and where it stands, to the log; from any thread."""
        if self.session is not None:
            for line in self.session.described():
                self._telemetry.emit(WorkerTold(self.session.id, line))

    def stop_now(self) -> None:
        """Do not wait for running jobs any longer: hand them back."""
        if self._now.is_set():
            return
        self._now.set()
        self.ask_stop()
        if self._patience is not None:
            self._patience.reschedule(asyncio.get_running_loop().time() + self._left_s)

    async def _begin(self) -> None:
        """What users want to be done before the first job; a worker that has to stop now does not wait for it."""
        self._left_s = 0.0
        try:
            async with asyncio.timeout(0.0 if self._now.is_set() else None) as self._patience:
                await self._life_around.begin(self._tasks_served())
        except TimeoutError:
            if not self._now.is_set():
                raise
        finally:
            self._patience = None

    async def _end(self) -> None:
        """What users want to be done after the last job, within a few seconds if the worker has to stop now."""
        self._left_s = _END_WITHIN_S
        try:
            async with asyncio.timeout(self._left_s if self._now.is_set() else None) as self._patience:
                await self._life_around.end()
        except TimeoutError:
            self._telemetry.emit(ServiceCrashed("shutdown", f"was cut off after {self._left_s:g} s, to stop now"))
        finally:
            self._patience = None

    def _tasks_served(self) -> list[TaskDefinition]:
        queues = self._config.served
        return [task for task in self._registry if not queues or task.options.queue in queues]

    async def _new_session(self) -> Session:
        session = Session(
            self._store,
            self._registry,
            self._config,
            self._executor,
            clock=self._clock,
            health=self._health,
            telemetry=self._telemetry,
            board=None if self._post is None else self._post.board,
            solitude=self._solitude,
            budgets=self._budgets,
            dispatch=self._dispatch,
        )
        await session.start()
        if self._post is not None:
            self._post.working()
        self._telemetry.emit(WorkerStarted(session.id, session.slots, tuple(self._config.served)))
        return session

    async def _until_lost(self, session: Session) -> bool:
        """Wait for the end of the lease or of the worker; True when the lease was lost."""
        await _first(session.lost, self.stopping)
        return session.lost.is_set() and not self.stopping.is_set()

    async def _finish(self, session: Session) -> None:
        self._telemetry.emit(WorkerDraining(session.id, session.running))
        grace_s = 0.0 if self._now.is_set() else self._grace_s
        # Each counts by itself: a lease may be lost long after it was said to stop now, while a claim gets no answer.
        hurrying = [
            asyncio.create_task(_hurry_when(self._now, session, Interruption.DRAIN)),
            asyncio.create_task(_hurry_when(session.lost, session, Interruption.LEASE_LOST)),
        ]
        try:
            await session.stop(grace_s=grace_s)
        finally:
            for each in hurrying:
                each.cancel()
        self.cut_short += session.cut_short
        self._telemetry.emit(WorkerStopped(session.id))

    async def _start_over(self) -> Session | None:
        """A new identity, as soon as the store can be reached."""
        while not self.stopping.is_set():
            try:
                return await self._new_session()
            except StoreUnavailable as error:
                await self.pause(self._health.failed(error))
        return None


async def _hurry_when(event: asyncio.Event, session: Session, why: Interruption) -> None:
    await event.wait()
    session.hurry(why)


async def _first(*events: asyncio.Event) -> None:
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()
