"""Which queues there are, for callers who may not make new ones: a slip of the pen would be a queue that nobody serves.

A name that is known stays known. For one that is not, the store is asked: once for all who come while it is asked,
who are told, too, where it could not answer.
"""

from __future__ import annotations

import asyncio
import time

from holdfast.app import Holdfast
from holdfast.core.errors import StoreError


class KnownQueues:
    """Those of one server."""

    def __init__(self, hf: Holdfast) -> None:
        self._hf = hf
        self._names: set[str] = set()
        self._asked_at = float("-inf")
        self._asking = asyncio.Lock()
        self._failure: StoreError | None = None

    async def has(self, queue: str) -> bool:
        """Whether the store or the app has heard of it."""
        if queue in self._names:
            return True
        came_at = time.monotonic()
        async with self._asking:
            if self._asked_at < came_at:
                await self._ask()
            elif self._failure is not None:
                raise self._failure
        return queue in self._names

    async def _ask(self) -> None:
        """A question that was given up is none: whoever comes next asks it again."""
        asked_at = time.monotonic()
        try:
            self._names, self._failure = await self._hf.queues.known(), None
        except StoreError as error:
            self._asked_at, self._failure = asked_at, error
            raise
        self._asked_at = asked_at
