"""How many jobs may run at once in this process, and waiting for room among them."""

from __future__ import annotations

import asyncio


class Slots:
    """A counter with one waiter: the fetcher."""

    __slots__ = ("_waiter", "_wanted", "size", "taken")

    def __init__(self, size: int) -> None:
        self.size = size
        self.taken = 0
        self._wanted = 0
        self._waiter: asyncio.Future[None] | None = None

    @property
    def free(self) -> int:
        return self.size - self.taken

    def take(self) -> None:
        self.taken += 1

    def give_back(self) -> None:
        self.taken -= 1
        if self._waiter is not None and not self._waiter.done() and self._is_enough():
            self._waiter.set_result(None)

    async def wait(self, wanted: int, *, at_most_s: float | None = None) -> None:
        """Until `wanted` slots are free, or all of them, or the time has passed."""
        self._wanted = wanted
        if self._is_enough():
            return
        loop = asyncio.get_running_loop()
        waiter = self._waiter = loop.create_future()
        timer = None if at_most_s is None else loop.call_later(at_most_s, _finish, waiter)
        try:
            await waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    def interrupt(self) -> None:
        """End the wait, whatever is free."""
        if self._waiter is not None:
            _finish(self._waiter)

    def _is_enough(self) -> bool:
        return self.taken == 0 or self.size - self.taken >= self._wanted


def _finish(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
