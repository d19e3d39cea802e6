"""What the store says of the whole cluster, read at most about once a second however many ask.

A look is a bounded number of statements (reports of queues, workers and the lead), under a deadline. A store that does
not answer is an answer, too: `None`, with a reason.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from holdfast.core.errors import HoldfastError
from holdfast.core.queue import QueueInfo
from holdfast.core.worker import WorkerInfo
from holdfast.stores.base import Store
from holdfast.upkeep.leader import UPKEEP

FRESH_S: Final = 1.0
PATIENCE_S: Final = 3.0


class Cluster(NamedTuple):
    """As it was seen."""

    queues: list[QueueInfo]
    workers: list[WorkerInfo]
    """Those with a lease."""
    term: int | None
    """Of whoever leads the upkeep; None: nobody does."""

    def workers_of(self, queue: str) -> int:
        """How many serve it; one that was given no queues serves every one that its tasks know."""
        return sum(not worker.queues or queue in worker.queues for worker in self.workers)


class Away(NamedTuple):
    """Nothing was seen."""

    why: str


class ClusterView:
    """Shared by everything in a process that reports on the cluster."""

    def __init__(
        self,
        store: Callable[[], Awaitable[Store]],
        *,
        fresh_s: float = FRESH_S,
        patience_s: float = PATIENCE_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._fresh_s = fresh_s
        self._patience_s = patience_s
        self._monotonic = monotonic
        self._looking: asyncio.Task[Cluster | Away] | None = None
        self._seen: Cluster | Away | None = None
        self._seen_s = 0.0
        self.looks = 0

    async def look(self) -> Cluster | Away:
        """What was seen within the last second, or is seen now."""
        if self._seen is not None and self._monotonic() - self._seen_s < self._fresh_s:
            return self._seen
        looking = self._looking
        if looking is None or looking.done() or looking.get_loop() is not asyncio.get_running_loop():
            looking = self._looking = asyncio.ensure_future(self._look())
        # Whoever gives up waiting takes the look from nobody else.
        return await asyncio.shield(looking)

    async def _look(self) -> Cluster | Away:
        self.looks += 1
        try:
            async with asyncio.timeout(self._patience_s):
                store = await self._store()
                queues, workers = await store.list_queues(), await store.list_workers()
                lead, now = await store.leading(UPKEEP), await store.now()
        except TimeoutError:
            seen: Cluster | Away = Away(f"the store has not answered for {self._patience_s:g} s")
        except HoldfastError as error:
            seen = Away(str(error) or type(error).__name__)
        else:
            alive = [worker for worker in workers if worker.lease_until.timestamp() > now]
            seen = Cluster(queues, alive, None if lead is None else lead.term)
        self._seen, self._seen_s = seen, self._monotonic()
        return seen
