"""Writes the outcomes of runs: batched, fenced, repeated while the lease lasts; its buffer is bounded.

Like `runtime.Batcher` it flushes on the next tick and gathers while a flush is in flight. Unlike it, nobody waits
for the verdict, so there is no future per item: the verdict is told to one callback.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from holdfast.core.breaker import BreakerMark
from holdfast.core.errors import NotOpen, StoreDataError, StoreUnavailable
from holdfast.core.job import WorkerId
from holdfast.core.outcome import describe
from holdfast.core.settlement import Bury, Settlement, Verdict
from holdfast.runtime.backoff import Backoff, retry_transient
from holdfast.runtime.clock import Clock
from holdfast.stores.base import LeaseStore
from holdfast.stores.health import StoreHealth

MAX_BATCH = 500
UNSTORABLE = "unstorable"


class Settled(NamedTuple):
    """What became of one settlement."""

    settlement: Settlement
    verdict: Verdict


class Settler:
    """One per identity. A slot is free as soon as its outcome is in the buffer."""

    def __init__(
        self,
        store: LeaseStore,
        worker: WorkerId,
        *,
        buffer: int,
        on_settled: Callable[[Settled], None],
        on_crash: Callable[[Exception], None],
        on_marked: Callable[[Sequence[BreakerMark]], None] = lambda _: None,
        lease_lost: Callable[[], bool],
        clock: Clock,
        health: StoreHealth,
    ) -> None:
        self._store = store
        self._worker = worker
        self._bound = buffer
        self._on_settled = on_settled
        self._on_crash = on_crash
        self._on_marked = on_marked
        self._lease_lost = lease_lost
        self._clock = clock
        self._health = health
        self._buffer: list[Settlement] = []
        self._marks: dict[int, tuple[BreakerMark, float]] = {}
        """With the moment at which each was handed in."""
        self._in_flight = 0
        self._flusher: asyncio.Task[None] | None = None
        self._room = asyncio.Event()

    def take(self, settlement: Settlement, mark: BreakerMark | None = None) -> bool:
        """Put an outcome into the buffer, if there is room; with what it says about a breaker."""
        if len(self._buffer) + self._in_flight >= self._bound:
            return False
        self.submit(settlement, mark)
        return True

    async def hand_in(self, settlement: Settlement, mark: BreakerMark | None = None) -> None:
        """Put an outcome into the buffer, once there is room."""
        while not self.take(settlement, mark):
            self._room.clear()
            await self._room.wait()

    def submit(self, settlement: Settlement, mark: BreakerMark | None = None) -> None:
        """Put an outcome into the buffer, whether there is room or not."""
        self._buffer.append(settlement)
        if mark is not None:
            self._marks[settlement.token] = mark, self._clock.monotonic()
        if self._flusher is None:
            self._flusher = asyncio.get_running_loop().create_task(self._flush_all(), name="settler")

    async def close(self) -> None:
        """Write what is in the buffer; given up when the lease is lost."""
        while self._flusher is not None:
            await asyncio.wait({self._flusher})

    async def _flush_all(self) -> None:
        try:
            while self._buffer:
                batch, self._buffer = self._buffer[:MAX_BATCH], self._buffer[MAX_BATCH:]
                self._in_flight = len(batch)
                for settled in await self._settle(batch):
                    self._on_settled(settled)
                self._in_flight = 0
                self._room.set()
                if self._marks:
                    self._told(batch)
        except Exception as error:
            # Nothing of this can be written any more under this identity: whoever ends it hands the jobs back.
            self._buffer.clear()
            self._marks.clear()
            self._on_crash(error)
        finally:
            self._in_flight = 0
            self._room.set()
            self._flusher = None

    async def _settle(self, batch: list[Settlement]) -> list[Settled]:
        """Write a batch; one that the store refuses to keep is found by halving, and buried for that reason."""
        try:
            verdicts = await self._write(batch)
        except (StoreDataError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            if len(batch) == 1:
                refused = batch[0]
                if isinstance(refused, Bury) and refused.reason == UNSTORABLE:
                    raise  # not even that: nothing can be written under this identity
                return await self._settle([Bury(refused.job_id, refused.token, UNSTORABLE, describe(error))])
            middle = len(batch) // 2
            return await self._settle(batch[:middle]) + await self._settle(batch[middle:])
        except (StoreUnavailable, NotOpen):  # the lease ran out before the store could be reached, or it is closed
            verdicts = [Verdict.LOST] * len(batch)
        return list(map(Settled, batch, verdicts))

    def _told(self, batch: list[Settlement]) -> None:
        marked = [found for each in batch if (found := self._marks.pop(each.token, None)) is not None]
        if marked:
            self._on_marked([mark for mark, _ in marked])

    def _marks_of(self, batch: list[Settlement]) -> list[BreakerMark]:
        """As of now: it may have taken long to reach the store, and meanwhile their runs have not become younger."""
        marked = [self._marks[each.token] for each in batch if each.token in self._marks] if self._marks else ()
        now_s = self._clock.monotonic()
        return [mark._replace(ran_s=mark.ran_s + now_s - at_s) for mark, at_s in marked]

    async def _write(self, batch: list[Settlement]) -> list[Verdict]:
        def worth_repeating(error: BaseException) -> bool:
            if not isinstance(error, StoreUnavailable) or self._lease_lost():
                return False
            self._health.failed(error)
            return True

        verdicts = await retry_transient(
            lambda: self._store.settle_jobs(self._worker, batch, marks=self._marks_of(batch)),
            is_transient=worth_repeating,
            give_up_after_s=math.inf,
            backoff=Backoff(0.02, 1.0),
            clock=self._clock,
        )
        self._health.worked()
        return verdicts
