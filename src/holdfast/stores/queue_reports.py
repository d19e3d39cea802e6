"""The part of the contract that tells how queues and workers are doing."""

from __future__ import annotations

from typing import Protocol

from holdfast.core.queue import QueueInfo, QueueRates
from holdfast.core.worker import WorkerInfo


class QueueReports(Protocol):
    """Never used for decisions of the engine."""

    async def list_queues(self) -> list[QueueInfo]: ...

    async def queue_rates(self) -> dict[str, QueueRates]:
        """How many jobs came, began and ended lately, of the queues in which any did. From a bounded number of the
        newest rows, so that it costs no more when there are many: then it speaks of a shorter time."""
        ...

    async def list_workers(self) -> list[WorkerInfo]: ...
