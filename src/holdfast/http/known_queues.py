"""Which queues there are, for callers who may not make new ones: a slip of the pen would be a queue that nobody serves.

A name that is known stays known. For one that is not, the store is asked: once for all who come while it is asked.
"""

from __future__ import annotations

import asyncio
import time

from holdfast.app import Holdfast


class KnownQueues:
    """Those of one server."""

    def __init__(self, hf: Holdfast) -> None:
        self._hf = hf
        self._names: set[str] = set()
        self._asked_at = float("-inf")
        self._asking = asyncio.Lock()

    async def has(self, queue: str) -> bool:
        """Whether the store or the app has heard of it."""
        if queue in self._names:
            return True
        came_at = time.monotonic()
        async with self._asking:
            if self._asked_at < came_at:
                self._asked_at = time.monotonic()
                self._names = await self._hf.queues.known()
        return queue in self._names
