"""Keeps the worker's lease, from a thread of its own, so that a blocked event loop does not cost it.

Duties:
1. Renew five times per lease; try again soon when the store cannot be reached.
2. Know until when the lease can be trusted, by the monotonic clock, measured from before the request.
3. Say that it is lost: the store has no such lease, or it could not be renewed in time.
4. Pass on which leases the store has, so that lost claims are found (rule 2).
5. Beside that, watch the event loop on which the jobs run (`loop_watch`).
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable

from holdfast.core.errors import LeaseLost
from holdfast.core.job import WorkerId
from holdfast.runtime.clock import Clock
from holdfast.runtime.threads import LoopThread, in_new_thread
from holdfast.stores.base import HeldJob, LeaseStore
from holdfast.worker.loop_watch import LoopWatch

BEATS_PER_LEASE = 5
#: Jobs are stopped when this share of the lease is left and it could not be renewed.
MARGIN = 0.1


class Heartbeat:
    """The lease of one identity. Callbacks come on the event loop that started it."""

    def __init__(
        self,
        store: LeaseStore,
        worker: WorkerId,
        *,
        lease_s: float,
        held_for_s: float,
        clock: Clock,
        on_lost: Callable[[], None],
        on_held: Callable[[list[HeldJob]], None],
        loop_watch: LoopWatch,
    ) -> None:
        self._store = store
        self._worker = worker
        self._lease_s = lease_s
        self._held_for_s = held_for_s
        self._clock = clock
        self._on_lost = on_lost
        self._on_held = on_held
        self._loop_watch = loop_watch
        self._thread = LoopThread("holdfast-heartbeat")
        self._trusted_until_s = 0.0
        self._woken = asyncio.Event()
        self.lost = False
        self.loop_thread = 0

    def start(self, *, registered_at_s: float) -> None:
        """`registered_at_s`: the monotonic time just before the worker was registered."""
        self._trusted_until_s = registered_at_s + self._lease_s
        self._loop = asyncio.get_running_loop()
        self.loop_thread = threading.get_ident()
        self._thread.start()
        self._thread.submit(self._beat())
        self._thread.submit(self._loop_watch.watch(self._loop, thread=self.loop_thread))

    async def stop(self) -> None:
        await in_new_thread(self._thread.stop)

    async def _beat(self) -> None:
        pause_s = self._lease_s / BEATS_PER_LEASE
        while True:
            left_s = self._trusted_until_s - self._clock.monotonic() - MARGIN * self._lease_s
            if left_s <= 0:
                return self._lose()
            await self._pause(min(pause_s, left_s))
            asked_s = self._clock.monotonic()
            try:
                async with asyncio.timeout(max(0.01, self._trusted_until_s - asked_s)):
                    renewal = await self._store.renew_worker(
                        self._worker,
                        lease_s=self._lease_s,
                        held_for_s=self._held_for_s,
                        lag_s=self._loop_watch.news(),
                    )
            except LeaseLost:
                return self._lose()
            except Exception:  # whatever is wrong with it: time decides
                pause_s = self._lease_s / BEATS_PER_LEASE / 4
                continue
            self._trusted_until_s = asked_s + self._lease_s
            pause_s = self._lease_s / BEATS_PER_LEASE
            self._tell(self._on_held, renewal.held)

    def beat_now(self) -> None:
        """Do not wait for the next beat: somebody doubts the lease."""
        self._thread.submit(self._wake())

    async def _wake(self) -> None:
        self._woken.set()

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        self._woken.clear()

    def _lose(self) -> None:
        self.lost = True
        self._tell(self._on_lost)

    def _tell(self, callback: Callable[..., None], *args: object) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *args)
        except RuntimeError:  # the loop is closed: there is nobody to tell
            return
