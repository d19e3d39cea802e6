"""An app at work in this process, from opening its store to the end that a signal or a supervisor asks for."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any

from holdfast.core.errors import StoreUnavailable
from holdfast.runtime.clock import SystemClock
from holdfast.runtime.daemon_executor import DaemonExecutor
from holdfast.runtime.signals import StopSignals, stop_signals
from holdfast.stores.health import StoreHealth
from holdfast.worker.supervision.line import Order
from holdfast.worker.supervision.post import Post

if TYPE_CHECKING:
    from holdfast.app.holdfast import Holdfast
    from holdfast.worker.worker import Worker


async def work(app: Holdfast, settings: Mapping[str, Any], *, post: Post | None = None) -> int:
    """Run jobs until the first signal, drain, and end; a second one ends it now. How many runs were cut short.

    With a `post`, stand by until called to work; the supervisor's orders count as signals do.
    """
    asyncio.get_running_loop().set_default_executor(DaemonExecutor())
    async with stop_signals() as signals, contextlib.AsyncExitStack() as stack:
        place = _Place(signals, grace_s=app.config.with_arguments(**settings).grace_s)
        if post is not None:
            post.take_up(on_stop=place.obey, on_tell=place.tell)
        if not await _open_once_reachable(app, signals.wait(1)):
            return 0
        stack.push_async_callback(app.close)
        worker = place.worker = app._make_worker(settings, post=post)
        starting = asyncio.create_task(worker.start())  # takes as long as the store is out of reach
        first = asyncio.create_task(signals.wait(1))
        ended = asyncio.create_task(worker.wait_ended())
        await asyncio.wait({first, ended}, return_when=asyncio.FIRST_COMPLETED)
        stopping = asyncio.create_task(worker.stop())
        second = asyncio.create_task(signals.wait(2))
        await asyncio.wait({stopping, second}, return_when=asyncio.FIRST_COMPLETED)
        worker.stop_now()
        await asyncio.gather(starting, stopping, return_exceptions=True)
        for task in (first, second, ended):
            task.cancel()
        if worker.failure is not None:
            raise worker.failure
        return worker.cut_short


class _Place:
    """Where a supervisor's orders meet the worker, once there is one."""

    def __init__(self, signals: StopSignals, *, grace_s: float) -> None:
        self._signals = signals
        self._grace_s = grace_s
        self.worker: Worker | None = None

    def obey(self, order: Order) -> None:
        match order:
            case Order.RETIRE if self.worker is not None and not self._signals.count:
                self.worker.retire()
                self._count_to(1)
            case Order.DRAIN if self._signals.count:  # it was retiring, which may take for ever
                asyncio.get_running_loop().call_later(self._grace_s, self._count_to, 2)
            case Order.NOW:
                self._count_to(2)
            case _:
                self._count_to(1)

    def _count_to(self, count: int) -> None:
        while self._signals.count < count:
            self._signals.note(signal.SIGTERM)

    def tell(self) -> None:
        """In the thread that hears orders: the event loop may be what is stuck."""
        if self.worker is not None:
            self.worker.tell()


async def _open_once_reachable(app: Holdfast, stop: Awaitable[None]) -> bool:
    """A worker may be started before its store; False when it was told to stop meanwhile."""
    stopped = asyncio.ensure_future(stop)
    health = StoreHealth(clock=SystemClock(), telemetry=app.telemetry)
    while not stopped.done():
        try:
            await app.open()
        except StoreUnavailable as error:
            await asyncio.wait({stopped}, timeout=health.failed(error))
        else:
            health.worked()
            stopped.cancel()
            return True
    return False
