"""How many jobs may run at once in this process, of all queues and of single ones, and waiting for room among them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping


class Slots:
    """A counter with one waiter: the fetcher. `caps` bounds single queues; only of those is it known how many run."""

    __slots__ = ("_by_queue", "_waiter", "_wanted", "caps", "on_room", "size", "taken")

    def __init__(self, size: int, caps: Mapping[str, int] | None = None) -> None:
        self.size = size
        self.taken = 0
        self.caps = caps or {}
        self._by_queue = dict.fromkeys(self.caps, 0)
        self.on_room: Callable[[], None] | None = None
        """Called when a queue that had reached its bound has room again."""
        self._wanted = 0
        self._waiter: asyncio.Future[None] | None = None

    @property
    def free(self) -> int:
        return self.size - self.taken

    @property
    def rooms(self) -> dict[str, int]:
        """How many more jobs of each bounded queue may run."""
        return (
            self._by_queue
            if not self.caps
            else {queue: max(0, cap - self._by_queue[queue]) for queue, cap in self.caps.items()}
        )

    def set_caps(self, caps: Mapping[str, int], running: Iterable[str]) -> None:
        """Other bounds from now on. More may run of a queue than it may have now: nothing more begins until fewer do.

        `running`: the queue of each job that has a slot, to count those of queues that had no bound so far.
        """
        full = [queue for queue, room in self.rooms.items() if not room]
        counts = Counter(running)
        self._by_queue = {queue: self._by_queue.get(queue, counts[queue]) for queue in caps}
        self.caps = caps
        rooms = self.rooms
        if self.on_room is not None and any(rooms.get(queue) != 0 for queue in full):
            self.on_room()

    def take(self, queue: str = "") -> None:
        self.taken += 1
        if self.caps and queue in self.caps:
            self._by_queue[queue] += 1

    def give_back(self, queue: str = "") -> None:
        self.taken -= 1
        if self.caps and queue in self.caps:
            self._by_queue[queue] -= 1
            if self._by_queue[queue] == self.caps[queue] - 1 and self.on_room is not None:
                self.on_room()
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
