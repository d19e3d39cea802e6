"""Requests that wait for a job to end: only so many at once, and none for longer than its client, or the server, is
there. Nothing that happens here is a failure of the request: its job is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


class Waits:
    """Those of one server."""

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._stopped = asyncio.Event()
        self.count = 0
        """Requests that wait now."""

    def stop(self) -> None:
        """Nobody waits any longer, nor from now on."""
        self._stopped.set()

    async def until(self, ending: Coroutine[Any, Any, Any], gone: Coroutine[Any, Any, Any], *, within_s: float) -> bool:
        """Whether there is an ending to look for; not where the client has `gone`, or too many wait already."""
        if self.count >= self._most or self._stopped.is_set():
            ending.close()
            gone.close()
            return False
        self.count += 1
        ended = asyncio.create_task(ending, name="holdfast-wait")
        others = [asyncio.create_task(each, name="holdfast-wait-end") for each in (gone, self._stopped.wait())]
        try:
            await asyncio.wait([ended, *others], timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
            return ended.done()
        finally:
            self.count -= 1
            for task in (ended, *others):
                task.cancel()
            await asyncio.gather(ended, *others, return_exceptions=True)
