"""Writes the outcomes of runs: batched, fenced, repeated while the lease lasts; its buffer is bounded."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

from holdfast.core.errors import LeaseLost, StoreDataError, StoreUnavailable
from holdfast.core.job import WorkerId
from holdfast.core.outcome import describe
from holdfast.core.settlement import Bury, Settlement, Verdict
from holdfast.runtime.backoff import Backoff, retry_transient
from holdfast.runtime.batcher import Batcher
from holdfast.runtime.clock import Clock
from holdfast.stores.base import LeaseStore
from holdfast.stores.health import StoreHealth

MAX_BATCH = 500


class Settler:
    """One per identity. A slot is free as soon as its outcome is in the buffer."""

    def __init__(
        self,
        store: LeaseStore,
        worker: WorkerId,
        *,
        buffer: int,
        lease_lost: Callable[[], bool],
        clock: Clock,
        health: StoreHealth,
    ) -> None:
        self._store = store
        self._worker = worker
        self._lease_lost = lease_lost
        self._clock = clock
        self._health = health
        self._batcher: Batcher[Settlement, Verdict] = Batcher(
            self._flush,
            is_data_error=lambda error: isinstance(error, StoreDataError),
            max_batch=MAX_BATCH,
            max_pending=buffer,
        )

    async def hand_in(self, settlement: Settlement) -> asyncio.Future[Verdict]:
        """Wait for room in the buffer; the future brings the store's verdict."""
        await self._batcher.room()
        return self._batcher.submit(settlement)

    async def settle(self, settlement: Settlement) -> Verdict:
        """Hand in and wait for the verdict."""
        return await self.verdict_of(settlement, await self.hand_in(settlement))

    async def verdict_of(self, settlement: Settlement, pending: asyncio.Future[Verdict]) -> Verdict:
        """The verdict on what was handed in; what the store refuses to keep is buried with that as its reason."""
        try:
            return await pending
        except StoreDataError as error:
            burial = Bury(settlement.job_id, settlement.token, "unstorable", describe(error))
            return await self.verdict_of(burial, await self.hand_in(burial))
        except LeaseLost:
            return Verdict.LOST

    async def close(self) -> None:
        """Write what is in the buffer; gives up when the lease is lost."""
        await self._batcher.close()

    async def _flush(self, settlements: list[Settlement]) -> list[Verdict]:
        def worth_repeating(error: BaseException) -> bool:
            if not isinstance(error, StoreUnavailable) or self._lease_lost():
                return False
            self._health.failed(error)
            return True

        try:
            verdicts = await retry_transient(
                lambda: self._store.settle_jobs(self._worker, settlements),
                is_transient=worth_repeating,
                give_up_after_s=math.inf,
                backoff=Backoff(0.02, 1.0),
                clock=self._clock,
            )
        except StoreUnavailable as error:
            raise LeaseLost("the lease ran out before the store could be reached") from error
        self._health.worked()
        return verdicts
