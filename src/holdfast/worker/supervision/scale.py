"""How many worker processes there should be: more while jobs wait and all are busy, fewer when there is less to do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Final

from holdfast.config import Config
from holdfast.worker.supervision.board import WorkerSeen
from holdfast.worker.supervision.recovery import Recovery

#: One process more after all have been busy, with jobs waiting, for so long; one fewer after this much idleness.
UP_AFTER_S: Final = 1.0
DOWN_AFTER_S: Final = 10.0
#: All are busy when this share of their slots is taken.
BUSY: Final = 0.9


class Scale:
    """Moves one process at a time between `processes` and `most_processes`."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._wanted = 0
        self._busy_since_s: float | None = None
        self._idle_since_s: float | None = None
        self._asking: asyncio.Task[None] | None = None

    def wanted(self, config: Config) -> int:
        """How many there should be now."""
        most = max(config.processes, config.most_processes)
        self._wanted = min(most, max(config.processes, self._wanted))
        return self._wanted

    def look(self, workers: Sequence[WorkerSeen], config: Config, recovery: Recovery) -> None:
        """Note how busy they are; ask the store whether jobs wait only when they are."""
        now_s = self._monotonic()
        taken, slots = sum(seen.taken for seen in workers), len(workers) * config.concurrency
        is_busy = len(workers) >= self._wanted and taken >= BUSY * slots
        is_idle = taken <= BUSY * (slots - config.concurrency) / 2
        self._busy_since_s = (self._busy_since_s or now_s) if is_busy else None
        self._idle_since_s = (self._idle_since_s or now_s) if is_idle else None
        if self._idle_since_s is not None and now_s - self._idle_since_s >= DOWN_AFTER_S:
            self._wanted, self._idle_since_s = self._wanted - 1, now_s
        if self._busy_since_s is not None and now_s - self._busy_since_s >= UP_AFTER_S and self._asking is None:
            self._asking = asyncio.create_task(self._ask(config, recovery))

    async def _ask(self, config: Config, recovery: Recovery) -> None:
        try:
            if await recovery.waiting(config):
                self._wanted, self._busy_since_s = self._wanted + 1, None
        finally:
            self._asking = None
