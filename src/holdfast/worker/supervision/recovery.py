"""Hands back what a dead worker process was running, at once, by the supervisor's own way to the store (P10).

The store's fence holds here, too: a process is handed back only when it has ended, and under its own identity. Where
work is announced by a transport, so is what is handed back; one that is away, or refused, never holds this up.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable, Sequence

from holdfast.config import Config
from holdfast.core import overdue
from holdfast.core.breaker import BreakerGate, BreakerMark
from holdfast.core.cause import Cause
from holdfast.core.errors import HoldfastError, NotOpen, StoreUnavailable
from holdfast.core.job import WorkerId
from holdfast.runtime.backoff import Backoff, retry_transient
from holdfast.runtime.clock import SystemClock
from holdfast.stores.base import Store
from holdfast.stores.health import StoreHealth
from holdfast.telemetry.hub import Telemetry
from holdfast.telemetry.process_events import ProcessHandedBack, ProcessLeftWaiting
from holdfast.transports.base import Transport
from holdfast.transports.store_alone import StoreAlone
from holdfast.worker.supervision.board import RunSeen


class Recovery:
    """The supervisor's hands in the store, or in the stores, should new code name another one."""

    def __init__(
        self,
        make_store: Callable[[Config], Store],
        *,
        telemetry: Telemetry,
        open_transport: Callable[[Config, Store], Awaitable[Transport]] | None = None,
    ) -> None:
        """`open_transport`: has what becomes ready in an open store announced."""
        self._make_store = make_store
        self._open_transport = open_transport
        self._telemetry = telemetry
        self._clock = SystemClock()
        self._health = StoreHealth(clock=self._clock, telemetry=telemetry)
        self._stores: dict[tuple[str, str, str], asyncio.Task[Store]] = {}
        self._transports: list[asyncio.Task[Transport]] = []
        self._under_way: set[asyncio.Task[None]] = set()

    def open(self, config: Config) -> asyncio.Task[Store]:
        """The store of these settings, open or about to be."""
        place = (config.url, config.schema, config.redis)
        if place not in self._stores:
            self._stores[place] = asyncio.create_task(self._open(config))
        return self._stores[place]

    async def close(self) -> None:
        """Finish what is under way."""
        while self._under_way:
            await asyncio.wait(self._under_way)
        for connecting in self._transports:
            connecting.cancel()
            with contextlib.suppress(asyncio.CancelledError, HoldfastError):
                await (await connecting).close()
        for opening in self._stores.values():
            opening.cancel()
            with contextlib.suppress(asyncio.CancelledError, HoldfastError):
                await (await opening).close()

    def hand_back(
        self,
        worker: WorkerId,
        config: Config,
        *,
        pid: int,
        why: str,
        cause: Cause,
        suspects: Sequence[RunSeen],
        culprits: Sequence[RunSeen] = (),
    ) -> None:
        """Begin to return the jobs of a process that has ended; `culprits` did not end at their limits."""
        settlements = [
            overdue.settlement(run.verdict, run.job_id, run.token, limit_s=run.limit_s, rng=random.random)
            for run in culprits
        ]

        async def apply(store: Store) -> int:
            if settlements:  # before the worker's row goes: they are fenced by it
                marks = [mark for run in culprits if run.blames for mark in await _marks(store, run)]
                await store.settle_jobs(worker, settlements, marks=marks)
            tokens = [run.token for run in suspects]
            return await store.hand_back_worker(worker, cause=cause, why=why, suspects=tokens)

        task = asyncio.create_task(self._apply(apply, config, pid))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def waiting(self, config: Config) -> int:
        """Jobs that are ready in the queues of these settings; 0 where the store does not say."""
        try:
            found = await (await self.open(config)).list_queues()
        except HoldfastError:
            return 0
        served = config.served
        return sum(each.ready for each in found if not each.settings.paused and (not served or each.name in served))

    async def _open(self, config: Config) -> Store:
        while True:
            store = self._make_store(config)
            try:
                await store.open()
            except StoreUnavailable as error:
                await asyncio.sleep(self._health.failed(error))
            else:
                self._health.worked()
                if self._open_transport is not None:  # beside: a Redis that is away takes seconds to be given up
                    self._transports.append(asyncio.create_task(self._connect(config, store, self._open_transport)))
                return store

    async def _connect(
        self, config: Config, store: Store, open_transport: Callable[[Config, Store], Awaitable[Transport]]
    ) -> Transport:
        backoff = Backoff(0.1, 5.0)
        while True:
            try:
                return await open_transport(config, store)
            except StoreUnavailable:  # which is asked under what name the transport knows it
                await asyncio.sleep(backoff.next())
            except HoldfastError:  # what is wrong with it the processes have said, which do not start
                return StoreAlone()

    async def _apply(self, operation: Callable[[Store], Awaitable[int]], config: Config, pid: int) -> None:
        try:
            async with asyncio.timeout(2 * config.lease_s):  # by then others have reaped it
                store = await asyncio.shield(self.open(config))
            count = await retry_transient(
                lambda: operation(store),
                is_transient=lambda error: isinstance(error, StoreUnavailable),
                give_up_after_s=2 * config.lease_s,
                backoff=Backoff(0.02, 1.0),
                clock=self._clock,
            )
        except (HoldfastError, NotOpen, TimeoutError) as error:
            why = str(error) or "the store could not be opened"
            self._telemetry.emit(ProcessLeftWaiting(pid, why))
            return
        if count:
            self._telemetry.emit(ProcessHandedBack(pid, count))


async def _marks(store: Store, run: RunSeen) -> list[BreakerMark]:
    """What a run that was killed says about the breaker of its job, which the store knows."""
    try:
        found = await store.circumstances(run.job_id)
    except StoreUnavailable:  # to hand back the jobs is worth more than what a breaker hears
        return []
    gates = () if found is None else found.gates
    ran_s = max(0.0, time.monotonic() - run.began_s)
    return [BreakerMark(run.token, True, gate, ran_s) for gate in gates if isinstance(gate, BreakerGate)]
