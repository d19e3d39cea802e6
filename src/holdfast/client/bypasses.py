"""Who may go past a full queue: jobs from the priority on that operators name for it, or else the settings do.

What operators say is asked for only when a queue has refused, and then at most once a second, whoever is refused.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Collection
from typing import Final

from holdfast.config import Config
from holdfast.core.errors import StoreUnavailable
from holdfast.core.job import NewJob
from holdfast.core.priority import HIGHEST
from holdfast.core.queue_options import QueueOptions
from holdfast.runtime.clock import Clock
from holdfast.stores.base import Store

_KNOWN_FOR_S: Final = 1.0
#: Whoever is refused has waited since this was asked: a pause that is older than this may be over.
_BELIEVED_S: Final = 10.0


class Bypasses:
    """One per client."""

    def __init__(self, store: Store, config: Config, *, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._configured = _priorities(config.queue_options)
        self._in_force = self._configured
        self._paused: frozenset[str] = frozenset()
        self._asked_s = -math.inf
        self._asking = asyncio.Lock()

    async def let_pass(self, jobs: Collection[NewJob]) -> bool:
        """Whether all of these may."""
        if self._clock.monotonic() - self._asked_s >= _KNOWN_FOR_S:
            async with self._asking:  # others who are refused meanwhile wait for the same answer
                if self._clock.monotonic() - self._asked_s >= _KNOWN_FOR_S:
                    await self._ask()
        return all(job.priority >= self._in_force.get(job.queue, HIGHEST + 1) for job in jobs)

    def is_paused(self, queue: str) -> bool:
        """As the latest answer had it by the way: nobody asks for it."""
        return queue in self._paused and self._clock.monotonic() - self._asked_s < _BELIEVED_S

    async def _ask(self) -> None:
        asked_s = self._clock.monotonic()
        try:
            settings = await self._store.queue_settings()
        except StoreUnavailable:  # what was known last has to do: they are refused, and may wait
            pass
        else:
            said = _priorities({name: each.options for name, each in settings.items()})
            self._in_force = {**self._configured, **said}
            self._paused = frozenset(name for name, each in settings.items() if each.paused)
        self._asked_s = asked_s


def _priorities(options: dict[str, QueueOptions]) -> dict[str, int]:
    """From which priority on; where it is said that nobody passes, from one that no job has."""
    found = {name: each.bypass_priority for name, each in options.items()}
    return {name: int(priority) for name, priority in found.items() if priority is not None}
