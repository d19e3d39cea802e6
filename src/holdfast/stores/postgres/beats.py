"""Renewals of leases: on a connection and an event loop of their own, so that a lease is kept while the caller's loop
is blocked. What a lease means is the store's."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, TypeVar

from holdfast.core.errors import LeaseLost, StoreUnavailable
from holdfast.core.job import WorkerId
from holdfast.runtime.threads import LoopThread, in_new_thread
from holdfast.stores.base import HeldJob, Renewal
from holdfast.stores.postgres.connections import Line

if TYPE_CHECKING:
    from holdfast.stores.postgres.engine import Engine

T = TypeVar("T")

#: The share of a lease that one try to renew it may take, and how long it may take at least.
_RENEWAL = 0.25
_RENEWAL_S = 1.0


class Beats:
    """The thread of one open store; it starts with the first worker."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._thread = LoopThread("holdfast-postgres-lease")
        self._line = Line(engine.doorway, "lease")

    def start(self) -> None:
        self._thread.start()

    async def close(self) -> None:
        if self._thread.started:
            await asyncio.wrap_future(self._thread.submit(self._line.close()))
            await in_new_thread(self._thread.stop)

    async def renew(self, worker: WorkerId, *, lease_s: float, held_for_s: float) -> Renewal:
        """LeaseLost: there is no such worker any more."""
        self._engine.check_open()
        self.start()
        renewing = self._engine.call("renew_worker", self._line, "workers.renew", worker, lease_s, held_for_s)
        limit_s = max(_RENEWAL_S, lease_s * _RENEWAL)
        rows = await asyncio.wrap_future(self._thread.submit(_in_time(renewing, limit_s)))
        if not rows:
            raise LeaseLost(f"worker {worker} was declared dead: its jobs belong to others")
        return Renewal(rows[0][0], [HeldJob(job_id, token) for _, job_id, token in rows if job_id is not None])


async def _in_time(renewing: Awaitable[T], limit_s: float) -> T:
    """A connection that has gone silent must not cost the lease: there is time to try another one."""
    try:
        async with asyncio.timeout(limit_s):
            return await renewing
    except TimeoutError:
        raise StoreUnavailable(f"renew_worker: no answer within {limit_s:g} s", unknown=True) from None
